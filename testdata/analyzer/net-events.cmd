net --events events.tape
