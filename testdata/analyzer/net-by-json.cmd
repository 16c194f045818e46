net --by pid --format json events.tape
