states sched.tape
