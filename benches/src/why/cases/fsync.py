#: what A program syncs its journal after each of 150 lines, and once without the cause.
#: cause syscall=fsync object*=journal
import os
from shared import *

name("writer")
f = os.open("journal", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
for _ in range(150):
    os.write(f, b"x" * 2000)
    if ON:
        os.fsync(f)
    spin(0.002)
os.fsync(f)
