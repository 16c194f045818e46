block events.tape
