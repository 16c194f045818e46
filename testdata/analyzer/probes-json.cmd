probes --format json tools.tape
