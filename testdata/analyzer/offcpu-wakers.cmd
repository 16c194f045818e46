offcpu --wakers 100 sched.tape
