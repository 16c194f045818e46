kills -v stacks.tape
