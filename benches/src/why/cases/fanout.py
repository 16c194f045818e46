#: what Six processes at once, five of which take 0.3 s; one waits 0.75 s for a server of the machine.
#: helper {prog} {mode} helper
#: cause syscall=recvfrom object*=127.0.0.1:7417
#: innocent quick
from shared import *

if ROLE:
    slow_server(7417, 0.05 if ON else 0.01)


def quick():
    time.sleep(0.3)


def slow():
    c = client_of(7417)
    for _ in range(15):
        ask(c)


name("starter")
wait(*[fork("quick", quick) for _ in range(5)] + [fork("slow", slow)])
spin(0.2)
