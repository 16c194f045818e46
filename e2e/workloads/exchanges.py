"""Servers and their clients, each case on a port of its own, and what they did: one line a case in LOG, "case port exchanges errors in out".

With "passed" only the case in which descriptors are passed to another process, with "chain" only that of a server that asks another one. With "attach DIR": one server that has a connection from before, says "ready" in DIR, and goes on when there is "go"."""

import array
import os
import select
import socket
import struct
import sys
import threading
import time

LOG = []


def listen(address=("127.0.0.1", 0), family=socket.AF_INET):
    server = socket.socket(family)
    server.bind(address)
    server.listen(64)
    return server


def connect(server):
    client = socket.socket(server.family)
    client.connect(server.getsockname())
    return client


def get(connection, size):
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            break
        data += more
    return data


def ask(server, connections, exchanges, request=10, answer=100):
    """So many connections, one after the other, each with so many exchanges."""
    for _ in range(connections):
        client = connect(server)
        for _ in range(exchanges):
            client.sendall(b"q" * request)
            assert len(get(client, answer)) == answer
        client.close()


def answer(connection, request=10, size=100):
    """Answers until the client closes."""
    while get(connection, request):
        connection.sendall(b"a" * size)
    connection.close()


def told(name, server, exchanges, errors, received, sent):
    address = server.getsockname()
    LOG.append((name, address if isinstance(address, str) else address[1], exchanges, errors, received, sent))


def in_thread(run, *args):
    thread = threading.Thread(target=run, args=args)
    thread.start()
    return thread


def serving(server, connections, serve):
    """Accepts so many, each served by a thread of its own."""

    def run():
        threads = [in_thread(serve, server.accept()[0]) for _ in range(connections)]
        for thread in threads:
            thread.join()

    return in_thread(run)


def keep_alive():
    server = listen()
    thread = serving(server, 5, answer)
    ask(server, 5, 7)
    thread.join()
    told("keep_alive", server, 35, 0, 350, 3500)


def closes():
    server = listen()
    thread = serving(server, 11, answer)
    ask(server, 11, 1)
    thread.join()
    told("closes", server, 11, 0, 110, 1100)


def six():
    """A client of IPv4 at a server of IPv6."""
    server = socket.socket(socket.AF_INET6)
    server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    server.bind(("::", 0))
    server.listen(64)
    thread = serving(server, 2, answer)
    for _ in range(2):
        client = socket.socket()
        client.connect(("127.0.0.1", server.getsockname()[1]))
        for _ in range(3):
            client.sendall(b"q" * 10)
            get(client, 100)
        client.close()
    thread.join()
    told("six", server, 6, 0, 60, 600)


def handed_over():
    """One thread accepts and reads the beginning, another one the rest, a third one answers."""
    server = listen()

    def serve():
        for _ in range(3):
            connection = server.accept()[0]
            for _ in range(2):
                get(connection, 4)
                in_thread(get, connection, 6).join()
                in_thread(connection.sendall, b"a" * 100).join()
            connection.close()

    thread = in_thread(serve)
    ask(server, 3, 2)
    thread.join()
    told("handed_over", server, 6, 0, 60, 600)


def forks():
    """A process for each connection, which ends without closing it."""
    server = listen()

    def serve():
        for _ in range(3):
            connection = server.accept()[0]
            child = os.fork()
            if child == 0:
                # it has the client's descriptor too: there is no end to read
                for _ in range(3):
                    get(connection, 10)
                    connection.sendall(b"a" * 100)
                os._exit(0)
            connection.close()
            os.waitpid(child, 0)

    thread = in_thread(serve)
    ask(server, 3, 3)
    thread.join()
    told("forks", server, 9, 0, 90, 900)


def unix():
    server = listen("unix.sock", socket.AF_UNIX)
    thread = serving(server, 4, answer)
    ask(server, 4, 3)
    thread.join()
    told("unix", server, 12, 0, 120, 1200)


def passed():
    """One process accepts, and passes the connections to another one."""
    server = listen()
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        ours.close()
        for _ in range(3):
            _, ancillary, _, _ = theirs.recvmsg(1, socket.CMSG_SPACE(4))
            fd = array.array("i", ancillary[0][2][:4])[0]
            answer(socket.socket(fileno=fd))
        os._exit(0)
    theirs.close()

    def serve():
        for _ in range(3):
            connection = server.accept()[0]
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [connection.fileno()]))]
            ours.sendmsg([b"x"], rights)
            connection.close()

    thread = in_thread(serve)
    ask(server, 3, 2)
    thread.join()
    os.waitpid(child, 0)
    ours.close()
    told("passed", server, 6, 0, 60, 600)


def half_closed():
    """The server answers after it has read that there is no more."""
    server = listen()

    def serve(connection):
        get(connection, 1 << 20)
        connection.sendall(b"a" * 100)
        connection.close()

    thread = serving(server, 3, serve)
    for _ in range(3):
        client = connect(server)
        client.sendall(b"q" * 10)
        client.shutdown(socket.SHUT_WR)
        get(client, 1 << 20)
        client.close()
    thread.join()
    told("half_closed", server, 3, 0, 30, 300)


def pipelined():
    """Four requests at once, read at once, answered one by one: calls cannot tell them apart."""
    server = listen()

    def serve(connection):
        get(connection, 40)
        for _ in range(4):
            connection.sendall(b"a" * 100)
        connection.close()

    thread = serving(server, 1, serve)
    ask(server, 1, 1, 40, 400)
    thread.join()
    told("pipelined", server, 1, 0, 40, 400)


def reset():
    """The client is gone before it is answered."""
    server, gone = listen(), threading.Event()

    def serve(connection):
        get(connection, 10)
        gone.wait()
        try:
            connection.sendall(b"a" * 100)
        except OSError:
            pass
        connection.close()

    thread = serving(server, 1, serve)
    client = connect(server)
    client.sendall(b"q" * 10)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    time.sleep(0.05)
    client.close()
    gone.set()
    thread.join()
    told("reset", server, 1, 1, 10, 0)


def unanswered():
    server = listen()

    def serve(connection):
        get(connection, 10)
        connection.close()

    thread = serving(server, 2, serve)
    for _ in range(2):
        client = connect(server)
        client.sendall(b"q" * 10)
        get(client, 100)
        client.close()
    thread.join()
    told("unanswered", server, 2, 2, 20, 0)


def uploads():
    """A body that comes slowly: 5 parts, 20 ms apart. Then 30 ms of work."""
    server, seen = listen(), threading.Semaphore(0)

    def serve(connection):
        for _ in range(5):
            get(connection, 10)
            seen.release()
        time.sleep(0.03)
        connection.sendall(b"a" * 100)
        connection.close()

    thread = serving(server, 1, serve)
    client = connect(server)
    for part in range(5):
        # from when the part before was read
        time.sleep(0.02 if part else 0)
        client.sendall(b"q" * 10)
        seen.acquire()
    get(client, 100)
    client.close()
    thread.join()
    told("uploads", server, 1, 0, 50, 100)


def polled():
    """Two threads of one epoll; a connection is served by whichever comes first."""
    server, stop = listen(), os.eventfd(0)
    epoll, open_ones = select.epoll(), {}
    epoll.register(stop, select.EPOLLIN)

    def work():
        while True:
            for fd, _ in epoll.poll(maxevents=1):
                if fd == stop:
                    return
                connection = open_ones[fd]
                if get(connection, 10):
                    connection.sendall(b"a" * 100)
                    epoll.modify(fd, select.EPOLLIN | select.EPOLLONESHOT)
                else:
                    epoll.unregister(fd)
                    del open_ones[fd]
                    connection.close()

    workers = [in_thread(work) for _ in range(2)]
    clients = [in_thread(ask, server, 1, 5) for _ in range(4)]
    for _ in range(4):
        connection = server.accept()[0]
        open_ones[connection.fileno()] = connection
        epoll.register(connection, select.EPOLLIN | select.EPOLLONESHOT)
    for thread in clients:
        thread.join()
    os.eventfd_write(stop, 1)
    for thread in workers:
        thread.join()
    for connection in open_ones.values():
        connection.close()
    told("polled", server, 20, 0, 200, 2000)


def ways():
    """Every call that reads or writes, and a look before each read."""
    server, size = listen(), 0
    with open("file", "wb") as file:
        file.write(b"f" * 100)

    def serve(connection):
        fd = connection.fileno()
        connection.recv(10, socket.MSG_PEEK)
        os.read(fd, 10)
        os.write(fd, b"a" * 100)
        os.readv(fd, [bytearray(4), bytearray(6)])
        os.writev(fd, [b"a" * 60, b"a" * 40])
        connection.recvmsg(10)
        connection.sendmsg([b"a" * 100])
        connection.recvfrom(10)
        with open("file", "rb") as file:
            os.sendfile(fd, file.fileno(), 0, 100)
        r, w = os.pipe()
        os.splice(fd, w, 10)
        os.read(r, 10)
        os.write(w, b"a" * 100)
        os.splice(r, fd, 100)
        connection.setblocking(False)
        try:
            connection.recv(10)
        except BlockingIOError:
            pass
        connection.close()
        os.close(r)
        os.close(w)

    thread = serving(server, 1, serve)
    ask(server, 1, 5)
    thread.join()
    told("ways", server, 5, 0, 50, 500)


def chain():
    """A server that asks another process, which sleeps 50 ms for 3 of 60 requests, and 1 ms for the others."""
    back, front = listen(), listen()
    child = os.fork()
    if child == 0:
        with open("/proc/self/comm", "w", encoding="ascii") as comm:
            comm.write("back")
        connection = back.accept()[0]
        for number in range(60):
            get(connection, 10)
            time.sleep(0.05 if number % 20 == 7 else 0.001)
            connection.sendall(b"a" * 100)
        os._exit(0)
    child_of_front = os.fork()
    if child_of_front == 0:
        with open("/proc/self/comm", "w", encoding="ascii") as comm:
            comm.write("front")
        behind = connect(back)
        connection = front.accept()[0]
        for _ in range(60):
            behind.sendall(get(connection, 10))
            connection.sendall(get(behind, 100))
        os._exit(0)
    ask(front, 1, 60)
    os.waitpid(child, 0)
    os.waitpid(child_of_front, 0)
    told("chain", front, 60, 0, 600, 6000)
    told("back", back, 60, 0, 600, 6000)


def attach(directory):
    """A connection from before, with an exchange that is under way, and another one later."""
    server = listen()
    go = os.path.join(directory, "go")
    thread = serving(server, 2, answer)
    client = connect(server)
    client.sendall(b"q" * 10)
    get(client, 100)
    client.sendall(b"q" * 5)
    time.sleep(0.05)
    with open(os.path.join(directory, "port"), "w", encoding="ascii") as file:
        file.write(str(server.getsockname()[1]))
    os.rename(os.path.join(directory, "port"), os.path.join(directory, "ready"))
    while not os.path.exists(go):
        time.sleep(0.01)
    client.sendall(b"q" * 5)
    get(client, 100)
    for _ in range(3):
        client.sendall(b"q" * 10)
        get(client, 100)
    client.close()
    ask(server, 1, 4)
    thread.join()


if sys.argv[1:2] == ["attach"]:
    attach(sys.argv[2])
else:
    CASES = [keep_alive, closes, six, handed_over, forks, unix, half_closed, pipelined, reset, unanswered]
    ALONE = {"passed": passed, "chain": chain}
    for case in [ALONE[word] for word in sys.argv[1:]] or [*CASES, uploads, polled, ways]:
        case()
    with open("log", "w", encoding="ascii") as log:
        for line in LOG:
            print(*line, file=log)
