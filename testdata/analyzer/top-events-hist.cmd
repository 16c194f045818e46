top -e block:* --by rwbs --value bytes --hist events.tape
