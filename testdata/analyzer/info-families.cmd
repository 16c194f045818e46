info events.tape
