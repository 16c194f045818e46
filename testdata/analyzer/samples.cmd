samples stacks.tape
