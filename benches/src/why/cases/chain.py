#: what A asks B, B asks C (UNIX sockets), C sleeps 15 ms before each of 40 answers; 5 ms are B's own.
#: cause by=c-end
#: cause comm=c-end syscall=clock_nanosleep
#: innocent a-front
from shared import *

ab, ba = socket.socketpair()
bc, cb = socket.socketpair()


def b():
    ab.close()
    while ba.recv(10):
        time.sleep(0.005)
        bc.sendall(b"?")
        bc.recv(10)
        ba.sendall(b"!")


def c():
    for s in (ab, ba, bc):
        s.close()
    while cb.recv(10):
        if ON:
            time.sleep(0.015)
        cb.sendall(b"!")


third = fork("c-end", c)
cb.close()
second = fork("b-middle", b)
for s in (ba, bc):
    s.close()
name("a-front")
for _ in range(40):
    ab.sendall(b"?")
    assert ab.recv(10)
ab.close()
wait(second, third)
