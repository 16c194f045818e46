stays looks.tape
