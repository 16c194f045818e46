tables exceptions:page_fault_user -i tables.tape
