exec --tree life.tape
