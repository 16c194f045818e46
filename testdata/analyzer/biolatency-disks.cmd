biolatency -D -Q events.tape
