#: what Three processes compute and take one file's lock for a moment; the lock costs next to nothing.
#: costless
#: cause syscall=flock object*=mixed.lock
import fcntl
from shared import *


def worker(i):
    f = open("mixed.lock" if ON else f"own.{i}", "w")
    for _ in range(25):
        spin(0.012)
        fcntl.flock(f, fcntl.LOCK_EX)
        spin(0.0005)
        fcntl.flock(f, fcntl.LOCK_UN)


name("starter")
wait(*[fork("worker", worker, i) for i in range(3)])
