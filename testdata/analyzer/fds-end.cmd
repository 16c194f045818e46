fds -p 70000 held.tape
