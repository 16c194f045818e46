path --without read sched.tape
