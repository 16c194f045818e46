opensnoop sample.tape
