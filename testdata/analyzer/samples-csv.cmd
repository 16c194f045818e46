samples --format csv stacks.tape
