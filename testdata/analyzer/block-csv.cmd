block --format csv events.tape
