export strace -y --clock start sample.tape
