callgraph --of syscall --callee --metric time stacks.tape
