top -e block:* --by disk,rwbs --value bytes events.tape
