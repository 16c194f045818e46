locks --format json looks.tape
