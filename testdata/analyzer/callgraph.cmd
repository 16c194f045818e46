callgraph stacks.tape
