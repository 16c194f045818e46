kills --format json --max-events 1 lost.tape
