info stacks.tape
