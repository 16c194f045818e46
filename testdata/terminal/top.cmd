top --by comm,file kernel-6.1-mix.tape
