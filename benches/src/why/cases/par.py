#: what A thread waits 0.6 s for a slow server while the main thread sleeps 0.55 s anyway.
#: costless
#: helper {prog} {mode} helper
#: cause syscall=recvfrom object*=127.0.0.1:7411
import threading
from shared import *

if ROLE:
    slow_server(7411, 0.6 if ON else 0)
name("front")
t = threading.Thread(target=ask, args=(client_of(7411),))
t.start()
time.sleep(0.55)
t.join()
