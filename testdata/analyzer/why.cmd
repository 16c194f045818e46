why life.tape
