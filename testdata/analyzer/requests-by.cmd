requests --by thread,peer requests.tape
