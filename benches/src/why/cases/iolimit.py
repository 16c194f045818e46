#: what A control group may write 4 MB/s; the program writes 3 MB past the page cache.
#: record -a
#: needs /sys/fs/cgroup/blkio/blkio.throttle.write_bps_device
#: prepare {prog} on prepare
#: run /bin/sh -c 'echo $$ > /sys/fs/cgroup/blkio/{group}-io-{mode}/cgroup.procs && exec "$@"' sh {prog} {mode}
#: cause text*=limit|throttl text*={group}-io syscall!=write
#: innocent *
import mmap
import os
from shared import *

if ROLE:
    d = os.stat(".").st_dev
    for mode in ("on", "off"):
        group = cgroup("blkio", f"{GROUP}-io-{mode}")
        if mode == "on":
            put(f"{group}/blkio.throttle.write_bps_device", f"{os.major(d)}:{os.minor(d)} 4000000")
    f = os.open("limited", os.O_WRONLY | os.O_CREAT, 0o600)
    os.write(f, b"x" * 3000000)
    os.fsync(f)
    sys.exit()
name("writer")
f = os.open("limited", os.O_WRONLY | os.O_DIRECT)
b = mmap.mmap(-1, 1 << 18)
for i in range(11):
    os.pwrite(f, b, i << 18)
    spin(0.02)
