fds --at 105us --format json -p 70000 held.tape
