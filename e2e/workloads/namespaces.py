"""Connections with equal addresses in several network namespaces at the same time. "alone": two namespaces, a server and its client in each.
"between N": N times two namespaces with a link, the server in one and the client in the other. With a directory behind that, connections are there
before "ready" in it, and go on when there is "go". Writes a line a connection: namespace and pid of the server, those of the client, exchanges, bytes in and out at the server."""

import ctypes
import fcntl
import multiprocessing
import os
import socket
import struct
import subprocess
import sys
import time

CLONE_NEWNET = 0x40000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
SERVER_PORT, CLIENT_PORT = 8080, 40000


def enter():
    """A network namespace of its own."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
    return os.stat("/proc/self/ns/net").st_ino


def get(connection, size):
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            break
        data += more
    return data


def serve(address, number, ready, said):
    """Answers requests of 10 * number bytes by as many hundred until the client closes."""
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((address, SERVER_PORT))
        server.listen()
        ready.wait()
        connection, _ = server.accept()
        count = 0
        while get(connection, 10 * number):
            connection.sendall(b"a" * 100 * number)
            count += 1
        connection.close()
        said.put((number, count))


def ask(own, address, number, ready, turn):
    """2 * number + 1 requests, with a turn of all clients before each."""
    ready.wait()
    with socket.socket() as client:
        client.bind((own, CLIENT_PORT))
        client.connect((address, SERVER_PORT))
        turn.wait()
        if len(sys.argv) > 3 and number == 1:
            open(os.path.join(sys.argv[3], "ready"), "w").close()
        while len(sys.argv) > 3 and not os.path.exists(os.path.join(sys.argv[3], "go")):
            time.sleep(0.01)
        for count in range(2 * pairs() + 1):
            turn.wait()
            if count < 2 * number + 1:
                client.sendall(b"q" * 10 * number)
                assert len(get(client, 100 * number)) == 100 * number
        turn.wait()


def pairs():
    return 2 if sys.argv[1] == "alone" else int(sys.argv[2])


def one(number, turn, said):
    """A namespace with both ends."""
    inode = enter()
    ready = multiprocessing.Barrier(2)
    server = multiprocessing.Process(target=serve, args=("127.0.0.1", number, ready, said))
    server.start()
    said.put((number, inode, server.pid, inode, os.getpid()))
    ask("127.0.0.1", "127.0.0.1", number, ready, turn)
    server.join()


def half(number, which, pipe, ready, turn, said):
    """A namespace with one of the ends."""
    pipe.send(enter())
    pipe.recv()
    subprocess.run(["ip", "address", "add", f"10.9.0.{which}/24", "dev", "veth"], check=True)
    subprocess.run(["ip", "link", "set", "veth", "up"], check=True)
    if which == 1:
        serve("10.9.0.1", number, ready, said)
    else:
        ask("10.9.0.2", "10.9.0.1", number, ready, turn)


def two(number, turn, said):
    ready = multiprocessing.Barrier(2)
    pipes = [multiprocessing.Pipe() for _ in range(2)]
    halves = [
        multiprocessing.Process(target=half, args=(number, which, pipes[which - 1][1], ready, turn, said))
        for which in (1, 2)
    ]
    for process in halves:
        process.start()
    inodes = [pipe.recv() for pipe, _ in pipes]
    ends = [str(process.pid) for process in halves]
    link = ["type", "veth", "peer", "name", "veth", "netns"]
    subprocess.run(["ip", "link", "add", "name", "veth", "netns", ends[0], *link, ends[1]], check=True)
    said.put((number, inodes[0], halves[0].pid, inodes[1], halves[1].pid))
    for pipe, _ in pipes:
        pipe.send("linked")
    for process in halves:
        process.join()
        assert process.exitcode == 0


def main():
    multiprocessing.set_start_method("fork")
    turn, said = multiprocessing.Barrier(pairs()), multiprocessing.Queue()
    each = one if sys.argv[1] == "alone" else two
    running = [multiprocessing.Process(target=each, args=(number, turn, said)) for number in range(1, pairs() + 1)]
    for process in running:
        process.start()
    told = [said.get() for _ in range(2 * pairs())]
    for process in running:
        process.join()
        assert process.exitcode == 0
    with open(os.environ.get("LOG", "log"), "w") as log:
        for number, *ends in (row for row in told if len(row) == 5):
            count = next(row[1] for row in told if len(row) == 2 and row[0] == number)
            print(*ends, count, count * 10 * number, count * 100 * number, file=log)


main()
