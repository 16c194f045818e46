top --by host,tape,comm sample.tape ledger.tape lost.tape
