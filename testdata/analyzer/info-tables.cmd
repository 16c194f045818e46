info tables.tape
