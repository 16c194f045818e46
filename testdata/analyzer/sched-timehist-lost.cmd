sched sched-lost.tape
