fds --at 85us held.tape
