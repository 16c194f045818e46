#: what Four processes accept on one socket; a client comes each 100 ms.
#: healthy
import os
import signal
from shared import *

s = listen(7432)


def worker():
    while True:
        c, _ = s.accept()
        c.recv(100)
        c.sendall(b"answer")
        c.close()


workers = [fork("worker", worker) for _ in range(4)]
for _ in range(10):
    c = client_of(7432)
    ask(c)
    c.close()
    time.sleep(0.1)
for pid in workers:
    os.kill(pid, signal.SIGTERM)
for pid in workers:
    os.waitpid(pid, 0)
