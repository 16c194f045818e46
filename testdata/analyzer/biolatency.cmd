biolatency events.tape
