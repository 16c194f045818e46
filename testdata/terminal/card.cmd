life.tape
