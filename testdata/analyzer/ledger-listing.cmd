ledger.tape
