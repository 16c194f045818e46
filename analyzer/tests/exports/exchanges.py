"""A server and a client that ask each other fifty times over TCP, what tapes of exchanges and of looks at all threads are recorded of."""

import socket
import threading
import time

EXCHANGES = 50


def serve(listening):
    connection, _ = listening.accept()
    with connection:
        while asked := connection.recv(100):
            time.sleep(0.002)
            connection.sendall(asked * 3)


with socket.create_server(("127.0.0.1", 0)) as listening:
    threading.Thread(target=serve, args=(listening,), daemon=True).start()
    with socket.create_connection(listening.getsockname()) as client:
        for number in range(EXCHANGES):
            client.sendall(b"question %d" % number)
            client.recv(400)
