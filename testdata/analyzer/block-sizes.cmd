block --sizes --by comm events.tape
