rate sample.tape --slices 20
