#: what A Python thread keeps a threading.Lock while it waits for a slow pipe; the main thread queues for the lock.
#: cause syscall=futex by=slowpoke
#: cause syscall=futex object*={lock}
import threading
from shared import *

lock = threading.Lock()
done = False


def slowpoke():
    name("slowpoke")
    while not done:
        if ON:
            with lock:
                time.sleep(0.03)
        else:
            time.sleep(0.03)
        time.sleep(0.008)


name("front")
truth("lock", hex(ctypes.c_void_p.from_address(id(lock) + 16).value))
t = threading.Thread(target=slowpoke)
t.start()
for _ in range(20):
    time.sleep(0.006)
    with lock:
        spin(0.005)
done = True
t.join()
