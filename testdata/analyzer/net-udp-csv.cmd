net --udp --format csv udp.tape
