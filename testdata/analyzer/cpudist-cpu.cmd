cpudist --by comm sched.tape
