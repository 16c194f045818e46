diff stacks.tape more.tape --format json -e read,kill
