kills lost.tape
