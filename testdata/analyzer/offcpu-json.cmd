offcpu --format json -e file,read sched.tape
