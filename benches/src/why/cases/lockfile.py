#: what A program waits for another's lock file: it tries to make it each 20 ms until the owner removes it after 0.6 s.
#: helper {prog} {mode} helper
#: cause object*=job.lock errno=EEXIST
import os
from shared import *

if ROLE:
    name("owner")
    if ON:
        put("job.lock", 1)
    ready()
    if ON:
        subject()
        time.sleep(0.65)
        os.unlink("job.lock")
    forever()
name("job")
while True:
    try:
        os.close(os.open("job.lock", os.O_CREAT | os.O_EXCL, 0o600))
        break
    except FileExistsError:
        time.sleep(0.02)
os.unlink("job.lock")
spin(0.3)
