locks --metric avg --format json locks.tape
