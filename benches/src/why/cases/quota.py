#: what A control group allows 20 % of a CPU; the program computes for 0.25 s.
#: record -a
#: needs /sys/fs/cgroup/cpu/cpu.cfs_quota_us
#: run /bin/sh -c 'echo $$ > /sys/fs/cgroup/cpu/{group}-cpu-{mode}/cgroup.procs && exec "$@"' sh {prog} {mode}
#: prepare {prog} on prepare
#: cause text*=throttl|quota text*={group}-cpu syscall!=write
#: innocent *
from shared import *

if ROLE:
    for mode, quota in (("on", 20000), ("off", -1)):
        group = cgroup("cpu", f"{GROUP}-cpu-{mode}")
        put(f"{group}/cpu.cfs_period_us", 100000)
        put(f"{group}/cpu.cfs_quota_us", quota)
        # beside others the group counts as much as twenty programs: only its quota holds it up
        put(f"{group}/cpu.shares", 20480)
    sys.exit()
name("victim")
spin(0.25)
