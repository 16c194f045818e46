requests --slowest 1 --where --format json served.tape
