#: what A file system in user space takes 15 ms for each read; 30 are made.
#: needs /usr/include/fuse3/fuse.h fusermount3
#: helper {prog} {mode} helper {slowfs}
#: cause object*=/slow syscall=read|pread64|preadv|preadv2
import os
from shared import *

here = os.path.dirname(os.path.abspath(__file__))
if ROLE:
    os.makedirs("slow", exist_ok=True)
    os.execv(sys.argv[3], [sys.argv[3], here + "/slow", "0", "15" if ON else "0"])
name("client")
f = os.open("slow/big", os.O_RDONLY | os.O_DIRECT)
import mmap

b = mmap.mmap(-1, 4096)
for i in range(30):
    os.preadv(f, [b], i * 4096)
    spin(0.008)
