net --udp --format json udp.tape
