#: what A thread of a Python program computes and keeps the interpreter's lock while another has 60 short steps to do.
#: cause text*=GIL
#: cause syscall=futex by=cruncher
import os
import threading
from shared import *

done = False


def cruncher():
    name("cruncher")
    x = 0
    while not done:
        if ON:
            for i in range(10000):
                x += i
        else:
            time.sleep(0.01)


name("front")
t = threading.Thread(target=cruncher)
t.start()
for _ in range(60):
    os.stat("/")
    time.sleep(0.006)
done = True
t.join()
