#: what A client tries a port again each 50 ms until its server listens, 0.6 s late.
#: helper {prog} {mode} helper
#: cause object*=127.0.0.1:7404 errno=ECONNREFUSED
#: cause text*=127.0.0.1:7404 text*=refused
from shared import *

if ROLE:
    name("backend")
    ready()
    if ON:
        subject()
        time.sleep(0.6)
    s = listen(7404)
    while True:
        c, _ = s.accept()
        c.close()
name("client")
time.sleep(0.05)
while True:
    try:
        socket.create_connection(("127.0.0.1", 7404)).close()
        break
    except ConnectionRefusedError:
        time.sleep(0.05)
spin(0.3)
