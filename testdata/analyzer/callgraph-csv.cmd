callgraph --of wakeup --format csv stacks.tape
