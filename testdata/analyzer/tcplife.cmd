tcplife events.tape
