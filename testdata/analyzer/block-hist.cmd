block --hist events.tape
