kills life.tape
