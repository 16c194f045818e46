kills --format json --max-events 5 life.tape
