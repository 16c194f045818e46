#: what A writer works 10 ms for each piece that fills its pipe, the reader 17; without the cause the reader takes 5.
#: cause by=eater
#: cause comm=eater syscall=clock_nanosleep
from shared import *
import fcntl
import os

r, w = os.pipe()
fcntl.fcntl(w, 1031, 65536)


def eater():
    os.close(w)
    while True:
        left = 65536
        while left and (piece := os.read(r, left)):
            left -= len(piece)
        if left:
            return
        time.sleep(0.017 if ON else 0.005)


name("feeder")
pid = fork("eater", eater)
os.close(r)
for _ in range(40):
    time.sleep(0.01)
    os.write(w, b"x" * 65536)
os.close(w)
wait(pid)
