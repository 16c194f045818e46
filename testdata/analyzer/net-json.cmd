net --format json events.tape
