why --floor 0 sched.tape
