why looks.tape
