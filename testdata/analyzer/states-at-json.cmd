states --at 0.0012 --format json sched.tape
