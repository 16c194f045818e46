top -e sched:*,signal:* --by comm,signal_name,cpu --top 3 --format json events.tape
