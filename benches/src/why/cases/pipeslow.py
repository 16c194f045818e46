#: what A program writes 30 MB into a pipe whose reader sleeps 10 ms after each piece of a MiB.
#: cause syscall=write by=sink
#: cause comm=sink syscall=clock_nanosleep
import os
from shared import *

r, w = os.pipe()


def sink():
    os.close(w)
    n = 0
    while piece := os.read(r, 65536):
        n += len(piece)
        if n >= 1 << 20:
            n = 0
            if ON:
                time.sleep(0.02)


name("source")
reader = fork("sink", sink)
os.close(r)
data = b"x" * 65536
for _ in range(30 * 16):
    os.write(w, data)
os.close(w)
wait(reader)
