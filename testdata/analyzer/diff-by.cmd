diff sample.tape more.tape --by comm,file
