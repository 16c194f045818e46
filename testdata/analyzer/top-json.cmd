top --by dir,ext --hist --format json sample.tape
