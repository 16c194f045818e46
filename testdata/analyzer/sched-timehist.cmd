sched sched.tape
