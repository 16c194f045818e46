net --format csv events.tape
