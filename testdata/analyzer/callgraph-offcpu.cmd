callgraph --idle --of offcpu --min-percent 0 stacks.tape
