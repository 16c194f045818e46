kills --format json stacks.tape
