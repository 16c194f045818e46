top -e block:* --by rwbs --value nr_sector --hist events.tape
