requests --slowest 1 --where served.tape
