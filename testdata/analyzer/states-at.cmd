states --at 700us sched.tape
