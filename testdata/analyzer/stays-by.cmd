stays --by comm,state looks.tape
