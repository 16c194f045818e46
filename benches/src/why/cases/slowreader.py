#: what A client sends 12 MB to a server that reads 0.5 MB each 20 ms.
#: helper {prog} {mode} helper
#: cause syscall=sendto|write|sendmsg object*=127.0.0.1:7418
from shared import *

if ROLE:
    name("backend")
    s = listen(7418)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    ready()
    while True:
        c, _ = s.accept()
        n = 0
        while piece := c.recv(65536):
            n += len(piece)
            if ON and n > 1 << 19:
                n = 0
                time.sleep(0.03)
        c.close()
name("client")
c = client_of(7418)
for _ in range(12 * 16):
    c.sendall(b"x" * 65536)
    spin(0.001)
c.shutdown(socket.SHUT_WR)
assert not c.recv(1)
