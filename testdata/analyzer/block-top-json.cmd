block --top --by cgroup,op --format json events.tape
