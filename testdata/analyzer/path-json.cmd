path -t 101 --format json sched.tape
