check sample.tape
