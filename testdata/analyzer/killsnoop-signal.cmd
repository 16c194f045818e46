killsnoop --signal KILL tools.tape
