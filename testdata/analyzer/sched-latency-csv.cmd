sched latency --by task --format csv sched.tape
