#: what A client sends, then polls its own socket until the slow server answers, 30 ms each of 20 times.
#: helper {prog} {mode} helper
#: cause syscall=poll|ppoll object*=127.0.0.1:7402
#: cause syscall=poll|ppoll text*=127.0.0.1:7402
import select
from shared import *

if ROLE:
    name("backend")
    s = listen(7402)
    ready()
    while True:
        c, _ = s.accept()
        while c.recv(100):
            if ON:
                time.sleep(0.03)
            c.sendall(b"answer")
        c.close()
name("client")
c = socket.create_connection(("127.0.0.1", 7402))
c.setblocking(False)
p = select.poll()
p.register(c, select.POLLIN)
for _ in range(20):
    c.sendall(b"question")
    p.poll()
    assert c.recv(100)
    spin(0.01)
