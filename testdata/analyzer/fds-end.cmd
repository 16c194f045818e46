fds -p 200 held.tape
