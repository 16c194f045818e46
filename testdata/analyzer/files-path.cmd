files -P /data/log ledger.tape
