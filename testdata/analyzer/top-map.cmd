top --by second,comm --hist sample.tape
