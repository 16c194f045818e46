rate sample.tape --slices 4 --by comm,errno --format json
