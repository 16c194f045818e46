locks --idle=fold locks.tape
