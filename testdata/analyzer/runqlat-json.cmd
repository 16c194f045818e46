runqlat --by task --format json -p 102 sched.tape
