net --udp udp.tape
