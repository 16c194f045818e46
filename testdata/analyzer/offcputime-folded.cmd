offcputime -f stacks.tape
