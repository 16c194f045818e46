sched latency sched-lost.tape
