states --by task,state sched-lost.tape
