statsnoop stats.tape
