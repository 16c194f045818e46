block --format json events.tape
