env --format csv held.tape
