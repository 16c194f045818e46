sched latency sched.tape
