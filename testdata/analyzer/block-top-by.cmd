block --top --by disk,cause events.tape
