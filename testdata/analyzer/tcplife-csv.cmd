tcplife --format csv tools.tape
