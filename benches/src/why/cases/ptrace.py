#: what A debugger attaches to the program and holds it for 0.6 s.
#: record -a
#: helper {prog} {mode} helper
#: cause text*=trace|debugger comm=victim by=debugger
import os
from shared import *

if ROLE:
    name("debugger")
    ready()
    pid = subject()
    time.sleep(0.3)
    if ON:
        assert libc.ptrace(0x4206, pid, 0, 0) == 0
        assert libc.ptrace(0x4207, pid, 0, 0) == 0
        os.waitpid(pid, 0x40000000)
        time.sleep(0.6)
        assert libc.ptrace(17, pid, 0, 0) == 0
    forever()
name("victim")
for _ in range(40):
    time.sleep(0.01)
    spin(0.005)
