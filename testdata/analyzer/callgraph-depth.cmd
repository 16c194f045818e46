callgraph --of syscall --max-depth 3 --min-percent 10 -p 100 stacks.tape
