top -e sched:sched_switch --by prev_state,comm events.tape
