block --sizes --format json events.tape
