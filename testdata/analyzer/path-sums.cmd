path --sums sched-lost.tape
