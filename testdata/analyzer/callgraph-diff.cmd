callgraph --of syscall --folded --diff more.tape stacks.tape
