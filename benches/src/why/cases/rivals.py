#: what Two threads at once: one waits 0.7 s for a slow server, the other 0.4 s for a file's lock; without the cause the server is fast.
#: helper {prog} {mode} helper
#: cause syscall=recvfrom object*=127.0.0.1:7416
import fcntl
import threading
from shared import *

if ROLE:
    slow_server(7416, 0.07 if ON else 0)


def holder():
    f = open("rival.lock", "w")
    for _ in range(10):
        fcntl.flock(f, fcntl.LOCK_EX)
        time.sleep(0.04)
        fcntl.flock(f, fcntl.LOCK_UN)
        time.sleep(0.002)


def locker():
    f = open("rival.lock", "w")
    for _ in range(10):
        fcntl.flock(f, fcntl.LOCK_EX)
        fcntl.flock(f, fcntl.LOCK_UN)
        time.sleep(0.003)


def asker():
    c = client_of(7416)
    for _ in range(10):
        ask(c)


name("front")
pid = fork("holder", holder)
threads = [threading.Thread(target=f) for f in (locker, asker)]
for t in threads:
    t.start()
for t in threads:
    t.join()
wait(pid)
spin(0.2)
