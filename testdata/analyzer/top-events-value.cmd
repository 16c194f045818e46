top -e block:* --by dev,rwbs --value nr_sector events.tape
