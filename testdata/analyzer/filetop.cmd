filetop -a sample.tape
