states --at 0.35 --format json looks.tape
