files kernel-6.1-mix.tape
