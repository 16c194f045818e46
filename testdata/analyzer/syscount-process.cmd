syscount -P ledger.tape
