#: what A control group's freezer stops the program for 0.6 s.
#: record -a
#: needs /sys/fs/cgroup/freezer/cgroup.procs
#: helper {prog} {mode} helper
#: cause text*=frozen|freezer comm=victim
#: cause text*=frozen|freezer object*={group}-frozen
from shared import *

if ROLE:
    name("docker")
    group = cgroup("freezer", f"{GROUP}-frozen")
    ready()
    put(f"{group}/cgroup.procs", subject())
    time.sleep(0.3)
    if ON:
        put(f"{group}/freezer.state", "FROZEN")
        time.sleep(0.6)
        put(f"{group}/freezer.state", "THAWED")
    forever()
name("victim")
for _ in range(40):
    time.sleep(0.01)
    spin(0.005)
