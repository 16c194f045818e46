probes --by comm tools.tape
