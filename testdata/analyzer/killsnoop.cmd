killsnoop tools.tape
