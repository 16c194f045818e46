stays --time 0.3,0.6 --idle=list looks.tape
