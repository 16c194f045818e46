#: what A client selects on its own UNIX socket until a slow process of the same program answers, 25 ms each of 25 times.
#: cause syscall=select|pselect6 by=oracle
#: cause comm=oracle syscall=clock_nanosleep
import select
from shared import *

here, there = socket.socketpair()


def oracle():
    here.close()
    while there.recv(10):
        if ON:
            time.sleep(0.025)
        there.sendall(b"!")


name("pilgrim")
pid = fork("oracle", oracle)
there.close()
for _ in range(25):
    here.sendall(b"?")
    select.select([here], [], [])
    assert here.recv(10)
    spin(0.008)
here.close()
wait(pid)
