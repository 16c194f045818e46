trace sample.tape
