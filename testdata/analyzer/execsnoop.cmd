execsnoop --fails --clock start life.tape
