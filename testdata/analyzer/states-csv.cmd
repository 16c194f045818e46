states --by comm,state,syscall,user,cgroup --format csv --time 0.0005,0.001 sched.tape
