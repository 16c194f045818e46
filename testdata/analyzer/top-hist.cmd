top --by comm --metric count --hist ledger.tape
