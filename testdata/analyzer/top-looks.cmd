top --by comm,peer looks.tape
