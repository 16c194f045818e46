#: what A process syncs a file again and again beside one that takes longer.
#: costless
#: cause syscall=fsync object*=beside.log
import os
from shared import *


def syncer():
    f = os.open("beside.log", os.O_WRONLY | os.O_CREAT, 0o600)
    for _ in range(20):
        os.pwrite(f, b"x" * 4096, 0)
        if ON:
            os.fsync(f)
        time.sleep(0.01)


name("front")
pid = fork("syncer", syncer)
for _ in range(50):
    time.sleep(0.015)
    spin(0.005)
wait(pid)
