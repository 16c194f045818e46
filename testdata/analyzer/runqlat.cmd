runqlat sched.tape
