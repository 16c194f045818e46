fds --at 105us --format json -p 200 held.tape
