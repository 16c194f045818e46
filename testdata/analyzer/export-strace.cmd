export strace -y --clock start events.tape
