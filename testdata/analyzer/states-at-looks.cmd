states --at 0.35 looks.tape
