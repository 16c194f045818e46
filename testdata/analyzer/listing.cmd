sample.tape
