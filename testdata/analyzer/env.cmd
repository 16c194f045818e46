env held.tape
