exec --format json --max-events 4 life.tape
