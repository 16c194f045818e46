path --without runqueue sched-lost.tape
