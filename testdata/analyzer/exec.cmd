exec life.tape
