top -e sched:*,signal:* --by comm,sig,cpu --top 3 --format json events.tape
