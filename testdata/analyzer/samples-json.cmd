samples --format json --max-stack 2 stacks.tape
