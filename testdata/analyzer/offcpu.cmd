offcpu sched.tape
