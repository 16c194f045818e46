#: what Connects to a UNIX socket wait because its server takes 30 ms before it accepts each of 20.
#: cause syscall=connect by=doorman
#: cause syscall=connect object*=door.sock
#: cause comm=doorman syscall=clock_nanosleep
import os
from shared import *

if os.path.exists("door.sock"):
    os.unlink("door.sock")
s = socket.socket(socket.AF_UNIX)
s.bind("door.sock")
s.listen(0)


def doorman():
    for _ in range(20):
        if ON:
            time.sleep(0.03)
        c, _ = s.accept()
        c.close()


name("guest")
pid = fork("doorman", doorman)
for _ in range(20):
    c = socket.socket(socket.AF_UNIX)
    c.connect("door.sock")
    spin(0.006)
    c.close()
wait(pid)
