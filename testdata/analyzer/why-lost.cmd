why lost.tape
