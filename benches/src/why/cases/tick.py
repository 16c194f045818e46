#: what A loop with a period of 50 ms waits 30 ms of each for a slow server; without it sleeps longer.
#: costless
#: helper {prog} {mode} helper
#: cause syscall=recvfrom object*=127.0.0.1:7412
from shared import *

if ROLE:
    slow_server(7412, 0.03 if ON else 0)
name("ticker")
c = client_of(7412)
end = time.monotonic()
for _ in range(20):
    end += 0.05
    ask(c)
    time.sleep(max(0, end - time.monotonic()))
