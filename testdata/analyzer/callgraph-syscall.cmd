callgraph --of syscall stacks.tape
