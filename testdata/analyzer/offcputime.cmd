offcputime stacks.tape
