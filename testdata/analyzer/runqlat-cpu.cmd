runqlat --by cpu sched-lost.tape
