#: what The name server takes 120 ms for each of six names.
#: needs /etc/resolv.conf
#: helper {prog} {mode} helper
#: prepare /bin/sh -c 'echo nameserver 127.1.2.3 > resolv.conf; echo hosts: files dns > nsswitch.conf; mount --bind resolv.conf /etc/resolv.conf; mount --bind nsswitch.conf /etc/nsswitch.conf'
#: cause object*=127.1.2.3:53
#: cause text*=127.1.2.3:53
from shared import *

if ROLE:
    import threading

    name("resolver")
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("127.1.2.3", 53))
    ready()

    def answer(q, who):
        if ON:
            time.sleep(0.12)
        is_a = q[-4:-2] == b"\0\1"
        head = q[:2] + b"\x81\x80" + q[4:6] + (b"\0\1" if is_a else b"\0\0") + b"\0\0\0\0"
        s.sendto(head + q[12:] + (b"\xc0\x0c\0\1\0\1\0\0\0\1\0\4\x7f\0\0\1" if is_a else b""), who)

    while True:
        q, who = s.recvfrom(512)
        threading.Thread(target=answer, args=(q, who)).start()
name("client")
for i in range(6):
    assert socket.getaddrinfo(f"host{i}.example.org", 80, type=socket.SOCK_STREAM)
    spin(0.03)
