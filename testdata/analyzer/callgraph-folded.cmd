callgraph --of offcpu --folded stacks.tape
