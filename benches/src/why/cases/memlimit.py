#: what A control group has less memory than the file that is read again and again needs.
#: record -a
#: needs /sys/fs/cgroup/memory/memory.limit_in_bytes
#: prepare {prog} on prepare
#: run /bin/sh -c 'echo $$ > /sys/fs/cgroup/memory/{group}-mem-{mode}/cgroup.procs && exec "$@"' sh {prog} {mode}
#: cause text*=limit|reclaim text*={group}-mem syscall!=write
#: innocent *
import os
from shared import *

SIZE = 96 << 20
if ROLE:
    for mode in ("on", "off"):
        group = cgroup("memory", f"{GROUP}-mem-{mode}")
        put(f"{group}/memory.limit_in_bytes", (48 << 20) if mode == "on" else (1 << 30))
        with open(f"data-{mode}", "wb") as f:
            for _ in range(SIZE >> 20):
                f.write(os.urandom(1 << 20))
            f.flush()
            os.fsync(f.fileno())
            # whoever reads a page first pays for it
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    put(f"/sys/fs/cgroup/memory/{GROUP}-mem-off/cgroup.procs", 0)
    open("data-off", "rb").read()
    sys.exit()
name("reader")
f = os.open("data-on" if ON else "data-off", os.O_RDONLY)
for _ in range(6):
    for at in range(0, SIZE, 1 << 20):
        os.pread(f, 1 << 20, at)
