env --format json held.tape
