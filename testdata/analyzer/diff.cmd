diff stacks.tape more.tape
