block --top events.tape
