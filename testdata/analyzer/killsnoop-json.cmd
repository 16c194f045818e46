killsnoop --format json tools.tape
