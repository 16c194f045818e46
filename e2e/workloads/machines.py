"""Two network namespaces with a link, as two machines: a server in one, a client with four connections in the other, two of which are there before
"go" in the current directory. `pids` has both processes by then. Each connection asks 60 times, with pauses of any length."""

import ctypes
import multiprocessing
import os
import random
import socket
import subprocess
import threading
import time

CLONE_NEWNET = 0x40000000
TIMES = 60
SLOW = 17


def machine(which, pipe, work):
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
    pipe.send("there")
    pipe.recv()
    subprocess.run(["ip", "address", "add", f"10.9.1.{which}/24", "dev", "veth"], check=True)
    subprocess.run(["ip", "link", "set", "veth", "up"], check=True)
    work()


def answer(connection):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with connection:
        while data := connection.recv(4096):
            number = int(data.split()[0])
            time.sleep(0.05 if number == SLOW else 0.002)
            connection.sendall(b"a" * (100 + number))


def server():
    with socket.create_server(("10.9.1.1", 8080)) as listening:
        threads = []
        for _ in range(4):
            threads.append(threading.Thread(target=answer, args=(listening.accept()[0],)))
            threads[-1].start()
        for thread in threads:
            thread.join()


def connect():
    for _ in range(200):
        try:
            return socket.create_connection(("10.9.1.1", 8080), 5)
        except OSError:
            time.sleep(0.02)
    raise TimeoutError("the server")


def ask(connection, first=0):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for number in range(first, TIMES):
        connection.sendall(b"%d" % number)
        left = 100 + number
        while left:
            left -= len(connection.recv(left))
        time.sleep(random.random() * 0.01)


def client():
    before = [connect() for _ in range(2)]
    for number, connection in enumerate(before):
        connection.sendall(b"%d" % number)
        assert len(connection.recv(4096)) == 100 + number
    with open("connected", "w") as ready:
        print(os.getpid(), file=ready)
    while not os.path.exists("go"):
        time.sleep(0.01)
    threads = [threading.Thread(target=ask, args=(one, 2)) for one in before]
    threads += [threading.Thread(target=lambda: ask(connect())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for connection in before:
        connection.close()


def main():
    multiprocessing.set_start_method("fork")
    pipes = [multiprocessing.Pipe() for _ in range(2)]
    machines = [
        multiprocessing.Process(target=machine, args=(which, pipes[which - 1][1], work)) for which, work in [(1, server), (2, client)]
    ]
    for one in machines:
        one.start()
    for pipe, _ in pipes:
        pipe.recv()
    link = ["type", "veth", "peer", "name", "veth", "netns"]
    subprocess.run(["ip", "link", "add", "name", "veth", "netns", str(machines[0].pid), *link, str(machines[1].pid)], check=True)
    with open("pids", "w") as file:
        print(*[one.pid for one in machines], file=file)
    for pipe, _ in pipes:
        pipe.send("linked")
    for one in machines:
        one.join()
        assert one.exitcode == 0


main()
