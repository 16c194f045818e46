callgraph --of offcpu --idle=fold stacks.tape --min-percent 0
