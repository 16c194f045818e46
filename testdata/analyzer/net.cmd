net events.tape
