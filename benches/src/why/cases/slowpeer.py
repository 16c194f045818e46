#: what A server answers each of 25 requests after 30 ms; without the cause at once. Only the client is recorded.
#: helper {prog} {mode} helper
#: cause syscall=recvfrom|recv|read|recvmsg object*=127.0.0.1:7401
from shared import *

if ROLE:
    name("backend")
    s = listen(7401)
    ready()
    while True:
        c, _ = s.accept()
        while c.recv(100):
            if ON:
                time.sleep(0.03)
            c.sendall(b"answer")
        c.close()
name("client")
c = socket.create_connection(("127.0.0.1", 7401))
for _ in range(25):
    c.sendall(b"question")
    assert c.recv(100)
    spin(0.01)
