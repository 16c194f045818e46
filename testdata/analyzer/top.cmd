top --by syscall,errno sample.tape
