locks locks.tape
