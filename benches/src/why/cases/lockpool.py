#: what Four processes work 10 ms outside a file's lock and 5 inside, 30 times each; without the cause each has a lock of its own.
#: cause syscall=flock object*=pool.lock
import fcntl
from shared import *


def worker(i):
    f = open("pool.lock" if ON else f"own.{i}", "w")
    for _ in range(30):
        time.sleep(0.01)
        fcntl.flock(f, fcntl.LOCK_EX)
        time.sleep(0.005)
        fcntl.flock(f, fcntl.LOCK_UN)


name("starter")
wait(*[fork("worker", worker, i) for i in range(4)])
