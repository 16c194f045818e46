info sample.tape
