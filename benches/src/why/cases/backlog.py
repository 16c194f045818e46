#: what A server's accept queue is full, so that a client's connect is answered only when it is sent again a second later.
#: helper {prog} {mode} helper
#: cause syscall=connect object*=127.0.0.1:7415
#: cause text*=SYN text*=127.0.0.1:7415
from shared import *

if ROLE:
    name("backend")
    s = listen(7415, 0 if ON else 16)
    crowd = []
    if ON:
        for _ in range(2):
            c = socket.socket()
            c.setblocking(False)
            c.connect_ex(("127.0.0.1", 7415))
            crowd.append(c)
    ready()
    if ON:
        subject()
        time.sleep(0.5)
    while True:
        c, _ = s.accept()
        crowd.append(c)
name("client")
spin(0.2)
client_of(7415).close()
