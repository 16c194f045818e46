#: what The server that a client waits for is stopped (SIGSTOP) for 0.6 s.
#: record -a
#: helper {prog} {mode} helper
#: cause text*=stopped text*=server
#: cause syscall=recvfrom by=server
#: cause syscall=recvfrom object*=127.0.0.1:7419
import os
import signal
from shared import *

if ROLE:
    pid = fork("server", slow_server, 7419, 0.001, "server")
    time.sleep(0.2)
    subject()
    time.sleep(0.25)
    if ON:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.6)
        os.kill(pid, signal.SIGCONT)
    forever()
name("client")
c = client_of(7419)
for _ in range(50):
    ask(c)
    spin(0.008)
