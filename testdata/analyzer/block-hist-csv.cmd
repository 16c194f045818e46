block --hist --by disk --format csv events.tape
