net --by user,peer events.tape
