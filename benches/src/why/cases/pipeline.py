#: what Three threads hand 40 items on: 5, 20 and 12 ms of sleep each; without the cause the middle takes 9.
#: cause comm=middle syscall=clock_nanosleep
#: cause by=middle
import queue
import threading
from shared import *

STEPS = {"first": 0.005, "middle": 0.02 if ON else 0.009, "last": 0.012}


def stage(comm, source, sink):
    name(comm)
    while (item := source.get()) is not None:
        time.sleep(STEPS[comm])
        sink.put(item)
    sink.put(None)


queues = [queue.Queue() for _ in range(4)]
for i in range(40):
    queues[0].put(i)
queues[0].put(None)
threads = [threading.Thread(target=stage, args=(c, *queues[i : i + 2])) for i, c in enumerate(STEPS)]
for t in threads:
    t.start()
for t in threads:
    t.join()
