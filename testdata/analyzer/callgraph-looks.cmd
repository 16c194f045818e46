callgraph --of look looks.tape
