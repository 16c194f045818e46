#: what Four processes work 5 ms outside a file's lock and 10 inside, 15 times each; without the cause each has a lock of its own.
#: cause syscall=flock object*=hot.lock
import fcntl
from shared import *


def worker(i):
    f = open("hot.lock" if ON else f"own.{i}", "w")
    for _ in range(15):
        time.sleep(0.005)
        fcntl.flock(f, fcntl.LOCK_EX)
        time.sleep(0.01)
        fcntl.flock(f, fcntl.LOCK_UN)


name("starter")
wait(*[fork("worker", worker, i) for i in range(4)])
