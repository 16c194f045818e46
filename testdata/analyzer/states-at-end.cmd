states --at 100% sched-lost.tape
