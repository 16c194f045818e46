kills -v --signal KILL life.tape
