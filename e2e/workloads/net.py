"""TCP between two processes, and a log of it: "WHAT LOCAL-PORT REMOTE-PORT FROM TO" a line, ns of CLOCK_MONOTONIC.

net.py PORT LOG: a server on 127.0.0.1:PORT takes five connections of a client, each open for 50 ms more; the client
closes the even ones first, the server the odd ones; one connection goes to a port where nobody listens."""
import os
import socket
import sys
import time

PORT, LOG = int(sys.argv[1]), os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
COUNT = 5


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def log(*words):
    os.write(LOG, (" ".join(map(str, words)) + "\n").encode())


def talk(i, connection, first):
    """Holds a connection open for (i + 1) * 50 ms if `first`, else until the other side closes it."""
    if first:
        time.sleep((i + 1) * 0.05)
    else:
        while connection.recv(100):
            pass
    connection.close()


listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", PORT))
listener.listen()
if os.fork() == 0:
    listener.close()
    log("client", os.getpid(), 0, 0, 0)
    for i in range(COUNT):
        connection = socket.socket()
        start = now()
        connection.connect(("127.0.0.1", PORT))
        local = connection.getsockname()[1]
        talk(i, connection, i % 2 == 0)
        log("connect", local, PORT, start, now())
    refused = socket.socket()
    start = now()
    try:
        refused.connect(("127.0.0.1", 1))
    except ConnectionRefusedError:
        log("refused", 0, 1, start, now())
    os._exit(0)
log("server", os.getpid(), 0, 0, 0)
for i in range(COUNT):
    connection, (_, remote) = listener.accept()
    start = now()
    talk(i, connection, i % 2 == 1)
    log("accept", PORT, remote, start, now())
listener.close()
os.wait()
