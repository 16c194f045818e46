locks looks.tape
