offcpu --by task,state,syscall,file sched-lost.tape
