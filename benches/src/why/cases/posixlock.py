#: what A neighbour that is not recorded holds a record lock (fcntl) for 150 ms at a time.
#: record -a
#: helper {prog} {mode} helper
#: cause syscall=fcntl object*=db.records by=dbkeeper
#: cause syscall=fcntl object*=db.records text*=dbkeeper
import fcntl
from shared import *

if ROLE:
    name("dbkeeper")
    f = open("db.records", "w")
    ready()
    while True:
        if ON:
            fcntl.lockf(f, fcntl.LOCK_EX)
            time.sleep(0.15)
            fcntl.lockf(f, fcntl.LOCK_UN)
        time.sleep(0.02)
name("client")
f = open("db.records", "r+")
for _ in range(5):
    fcntl.lockf(f, fcntl.LOCK_EX)
    spin(0.02)
    fcntl.lockf(f, fcntl.LOCK_UN)
    time.sleep(0.04)
