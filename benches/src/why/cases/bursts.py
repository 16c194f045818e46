#: what Twice, a second apart, 16 threads wait 100 ms at once for one file's lock.
#: cause syscall=flock object*=burst.lock
import fcntl
import threading
from shared import *


def hold(seconds):
    f = open("burst.lock", "w")
    fcntl.flock(f, fcntl.LOCK_EX)
    time.sleep(seconds)
    f.close()


name("front")
for again in (True, False):
    threads = []
    if ON:
        threads.append(threading.Thread(target=hold, args=(0.1,)))
        threads[0].start()
        time.sleep(0.01)
    else:
        time.sleep(0.01)
    threads += [threading.Thread(target=hold, args=(0,)) for _ in range(16)]
    for t in threads[-16:]:
        t.start()
    for t in threads:
        t.join()
    if again:
        time.sleep(1)
