#: what Four threads of a pool make 80 requests; the server takes 25 ms for each.
#: helper {prog} {mode} helper
#: cause syscall=recvfrom object*=127.0.0.1:7410
#: innocent patient
from concurrent.futures import ThreadPoolExecutor
from shared import *
import threading

if ROLE:
    slow_server(7410, 0.025 if ON else 0)
local = threading.local()


def job(_):
    if not hasattr(local, "c"):
        local.c = client_of(7410)
    ask(local.c)
    time.sleep(0.003)


def patient():
    name("patient")
    stop.wait()


stop = threading.Event()
name("front")
threading.Thread(target=patient).start()
with ThreadPoolExecutor(4) as pool:
    list(pool.map(job, range(80)))
spin(0.2)
stop.set()
