kills --format csv --max-events 3 life.tape
