cpudist events.tape
