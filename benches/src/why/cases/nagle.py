#: what A client sends each of 15 requests in two pieces; the second waits for an acknowledgement that the server delays (40 ms).
#: helper {prog} {mode} helper
#: cause text*=Nagle|'delayed ACK'|NODELAY object*=127.0.0.1:7413
#: cause text*=Nagle|'delayed ACK'|NODELAY text*=127.0.0.1:7413
from shared import *

if ROLE:
    name("backend")
    s = listen(7413)
    ready()
    while True:
        c, _ = s.accept()
        got = 0
        while piece := c.recv(100):
            got += len(piece)
            if got % 20 == 0:
                c.sendall(b"answer")
        c.close()
name("client")
c = client_of(7413)
c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0 if ON else 1)
for _ in range(18):
    c.send(b"ten bytes.")
    c.send(b"ten bytes.")
    assert c.recv(100)
    spin(0.01)
