#: what A process holds a file's flock 40 of every 50 ms; the other, which needs it ten times, finds it free without that.
#: cause syscall=flock object*=shared.lock by=keeper
#: innocent bystander
import fcntl
import os
import signal
from shared import *


def keeper():
    f = open("shared.lock", "w")
    while True:
        if ON:
            fcntl.flock(f, fcntl.LOCK_EX)
            time.sleep(0.04)
            fcntl.flock(f, fcntl.LOCK_UN)
        time.sleep(0.01)


def bystander():
    while True:
        time.sleep(0.03)
        os.stat("/")


name("worker")
others = [fork("keeper", keeper), fork("bystander", bystander)]
time.sleep(0.05)
lock = open("shared.lock", "w")
for _ in range(10):
    fcntl.flock(lock, fcntl.LOCK_EX)
    spin(0.02)
    fcntl.flock(lock, fcntl.LOCK_UN)
    time.sleep(0.015)
for pid in others:
    os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)
