exec --tree --format json -p 4721 life.tape
