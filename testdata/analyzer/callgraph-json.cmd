callgraph --of syscall --metric bytes --format json stacks.tape
