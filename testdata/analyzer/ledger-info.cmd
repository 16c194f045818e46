info ledger.tape
