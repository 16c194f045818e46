fds --at 105us --format csv held.tape
