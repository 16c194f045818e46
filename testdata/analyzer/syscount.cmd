syscount -L sample.tape
