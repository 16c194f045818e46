#: what Somebody stops the program (SIGSTOP) for 0.6 s in the middle of its work.
#: record -a
#: helper {prog} {mode} helper
#: cause text*=stopped|SIGSTOP by=stopper comm=victim
import os
import signal
from shared import *

if ROLE:
    name("stopper")
    ready()
    pid = subject()
    time.sleep(0.3)
    if ON:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.6)
        os.kill(pid, signal.SIGCONT)
    forever()
name("victim")
for _ in range(40):
    time.sleep(0.01)
    spin(0.005)
