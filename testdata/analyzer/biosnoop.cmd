biosnoop events.tape
