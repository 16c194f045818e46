#: what Three threads hand 20 items on: 5, 20 and 15 ms of work each; without the cause the middle takes 10.
#: cause comm=middle
#: cause by=middle
import queue
import threading
from shared import *

STEPS = {"first": 0.005, "middle": 0.02 if ON else 0.009, "last": 0.015}


def stage(comm, source, sink):
    name(comm)
    while (item := source.get()) is not None:
        time.sleep(STEPS[comm])
        sink.put(item)
    sink.put(None)


queues = [queue.Queue() for _ in range(4)]
for i in range(20):
    queues[0].put(i)
queues[0].put(None)
threads = [threading.Thread(target=stage, args=(c, *queues[i : i + 2])) for i, c in enumerate(STEPS)]
for t in threads:
    t.start()
for t in threads:
    t.join()
