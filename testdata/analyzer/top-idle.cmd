top --idle=fold sample.tape
