export strace life.tape
