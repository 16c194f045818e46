path -p 100 sched-lost.tape
