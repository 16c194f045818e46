"""Connections of several users and programs on loopback, and what each end says that it did.

Makes two connections and the file `ready`, waits for `go`, makes others, writes `log` and waits for `end`. A line of the log
is an end of a connection or a UDP socket as JSON: what it was, who, addresses, bytes that the program gave to the kernel
and got from it since `go` (`before`: until then), and for a connection that is open what `ss -i` printed of it."""
import array
import ctypes
import json
import os
import re
import socket
import struct
import subprocess
import sys
import time

LOOPBACK = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}
# other users write it too
LOG = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def name(address):
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class End:
    """A socket that counts."""

    def __init__(self, kind, sock, before=(0, 0)):
        self.kind, self.sock, self.sent, self.received, self.before = kind, sock, 0, 0, before
        self.local, self.remote = name(sock.getsockname()), None
        if sock.type == socket.SOCK_STREAM:
            self.remote = name(sock.getpeername())

    def send(self, count, to=None):
        while count:
            n = self.sock.sendto(b"x" * count, to) if to else self.sock.send(b"x" * count)
            self.sent += n
            count -= n

    def receive(self, count):
        while count:
            n = len(self.sock.recv(min(count, 65536)))
            if not n:
                raise EOFError
            self.received += n
            count -= n

    def log(self, **more):
        said = {
            "kind": self.kind, "pid": os.getpid(), "uid": os.getuid(), "comm": open("/proc/self/comm").read().strip(),
            "local": self.local, "remote": self.remote, "sent": self.sent, "received": self.received,
            "before": self.before, **more}
        os.write(LOG, (json.dumps(said) + "\n").encode())


def until(path):
    while not os.path.exists(path):
        time.sleep(0.005)


def say(word):
    with open(word, "w") as file:
        file.write(word)


def call(comm):
    ctypes.CDLL(None).prctl(15, comm.encode(), 0, 0, 0)


def listen(family):
    s = bind(socket.socket(family))
    s.listen()
    return s


def bind(sock, port=0):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((LOOPBACK[sock.family], port))
    return sock


def connect(listener, port=None):
    s = socket.socket(listener.family)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if port is not None:
        bind(s, port)
    s.connect(listener.getsockname())
    return s


def drop(sock, share):
    """The kernel drops this share of what comes for `sock`: a filter of two instructions, by chance."""
    program = [(0x20, 0, 0, 0xfffff038), (0x35, 0, 1, int(share * 0xffffffff)), (6, 0, 0, 0x40000), (6, 0, 0, 0)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    sock.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HL", len(program), ctypes.addressof(code)))


def client(kind, family, listener, uid, comm, work):
    """Runs `work` of a connection in a process of its own, and what answers in this one; both ends log."""
    pid = os.fork()
    if pid == 0:
        call(comm)
        os.setuid(uid)
        end = End(kind, connect(listener))
        work(end)
        end.log()
        os._exit(0)
    end = End(kind, listener.accept()[0])
    return pid, end


def closed(family, listener, uid, comm, there, back):
    def work(end):
        end.send(there)
        end.receive(back)
        end.sock.close()
    pid, end = client("closed", family, listener, uid, comm, work)
    end.receive(there)
    end.send(back)
    try:
        end.receive(1)
    except EOFError:
        pass
    end.sock.close()
    os.waitpid(pid, 0)
    end.log()


def reset(listener, port):
    a = End("reset", connect(listener, port))
    b = End("reset", listener.accept()[0])
    a.send(4321)
    b.receive(4321)
    a.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    a.sock.close()
    try:
        b.receive(1)
    except ConnectionResetError:
        pass
    b.sock.close()
    a.log()
    b.log()


def again(listener, port):
    """A connection from a port that another one had a moment ago."""
    a = End("again", connect(listener, port))
    b = End("again", listener.accept()[0])
    a.send(99)
    b.receive(99)
    b.sock.close()
    a.sock.close()
    a.log()
    b.log()


def lossy(listener):
    a = End("lossy", connect(listener))
    b = End("lossy", listener.accept()[0])
    drop(b.sock, 0.5)
    for _ in range(40):
        a.send(1500)
        time.sleep(0.002)
    # each loss of the same segment doubles the wait until it is sent again: for seconds, if all are left to chance
    time.sleep(0.3)
    b.sock.setsockopt(socket.SOL_SOCKET, 27, 0)
    b.receive(60000)
    return [a, b]


def passed(listener):
    """A connection that one process accepts and another one, which got it over a socket, uses too."""
    here, there = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        call("other")
        _, fds, _, _ = there.recvmsg(1, socket.CMSG_SPACE(4))
        fd = array.array("i", fds[0][2])[0]
        os.write(fd, b"y" * 300)
        os._exit(0)
    a = End("passed", connect(listener))
    b = End("passed", listener.accept()[0])
    b.send(200)
    here.sendmsg([b"f"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [b.sock.fileno()]))])
    os.waitpid(pid, 0)
    b.sent += 300
    a.receive(500)
    a.sock.close()
    b.sock.close()
    a.log()
    b.log()


def udp(family):
    bound = socket.socket(family, socket.SOCK_DGRAM)
    bound.bind((LOOPBACK[family], 0))
    one = socket.socket(family, socket.SOCK_DGRAM)
    one.connect(bound.getsockname())
    two = socket.socket(family, socket.SOCK_DGRAM)
    two.bind((LOOPBACK[family], 0))
    bound, one, two = (End(kind, sock) for kind, sock in (("bound", bound), ("connected", one), ("unconnected", two)))
    for n in range(7):
        one.send(100 + n)
        bound.receive(100 + n)
        two.send(10, bound.sock.getsockname())
        bound.receive(10)
        bound.send(33, one.sock.getsockname())
        one.receive(33)
    for end in (bound, one, two):
        end.sock.close()
        end.log()


def statistics(text):
    """What ss printed of a connection: those that are 0 are not there."""
    number = lambda pattern, default=0: float((re.search(pattern, text) or [0, default])[1])
    counts = {key: int(number(rf"\b{key}:(\d+)")) for key in (
        "bytes_sent", "bytes_retrans", "bytes_acked", "bytes_received", "segs_out", "segs_in", "data_segs_out",
        "data_segs_in", "cwnd", "mss")}
    us = {key: round(1000 * number(pattern)) for key, pattern in (
        ("rtt", r" rtt:([\d.]+)/"), ("rttvar", r" rtt:[\d.]+/([\d.]+)"), ("min_rtt", r" minrtt:([\d.]+)"))}
    return {**counts, **us, "retrans": int(number(r" retrans:\d+/(\d+)"))}


def main():
    four, six = listen(socket.AF_INET), listen(socket.AF_INET6)
    old = []
    for listener in (four, six):
        a, b = End("old", connect(listener)), End("old", listener.accept()[0])
        a.send(5000)
        b.receive(5000)
        old += [a, b]
    for end in old:
        end.before, end.sent, end.received = (end.sent, end.received), 0, 0
    say("ready")
    until("go")
    for end in old[::2]:
        end.send(1234)
    for end in old[1::2]:
        end.receive(1234)
    # one of the old ones ends, the other stays
    old[1].sock.close()
    time.sleep(0.05)
    old[0].sock.close()
    old[0].log()
    old[1].log()
    for n, (family, listener) in enumerate(((socket.AF_INET, four), (socket.AF_INET6, six)) * 3):
        closed(family, listener, (0, 1, 65534)[n % 3], f"client-{n % 2}", 10_000 * (n + 1), 777 * n)
    # bound for as long as both need its port, which no connection of others gets then
    holds = bind(socket.socket())
    reset(four, holds.getsockname()[1])
    again(four, holds.getsockname()[1])
    passed(four)
    udp(socket.AF_INET)
    udp(socket.AF_INET6)
    stay = old[2:] + lossy(four)
    for listener in (four, six):
        a, b = End("open", connect(listener)), End("open", listener.accept()[0])
        a.send(10_000)
        b.receive(10_000)
        stay += [a, b]
    time.sleep(0.3)
    printed = subprocess.run(["ss", "-tinHO"], capture_output=True, text=True, check=True).stdout
    lines = {tuple(line.split()[3:5]): statistics(line) for line in printed.splitlines()}
    for end in stay:
        end.log(ss=lines[end.local, end.remote])
    say("done")
    until("end")


main()
