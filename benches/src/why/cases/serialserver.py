#: what A server of the same program answers one client at a time and sleeps 12 ms for each; four clients ask 12 times.
#: cause by=server
#: cause comm=server syscall=clock_nanosleep
#: innocent asker
from shared import *

s = listen(7414)


def server():
    for _ in range(48):
        c, _ = s.accept()
        c.recv(100)
        if ON:
            time.sleep(0.012)
        c.sendall(b"answer")
        c.close()


def asker():
    for _ in range(12):
        ask(client_of(7414))
        time.sleep(0.01)


name("starter")
wait(*[fork("server", server)] + [fork("asker", asker) for _ in range(4)])
spin(0.2)
