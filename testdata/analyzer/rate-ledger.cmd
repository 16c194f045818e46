rate ledger.tape --by comm --slices 10
