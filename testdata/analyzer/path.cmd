path sched.tape
