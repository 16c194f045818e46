tcplife -w -T tools.tape
