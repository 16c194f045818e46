"""churn.py BURSTS EVERY [CGROUP]: what comes and goes on a busy machine. 50 processes and 100 connections a second, each over
at once, and 2 cgroups below CGROUP; bursts of calls, whose end is a line "burst" each. The next comes EVERY seconds later, or when
the file next-1 (next-2, ...) is there.
"""
import os
import socket
import subprocess
import sys
import threading
import time

BURST = "dd if=/dev/zero of=/dev/null bs=1 count=300000 status=none"


def again(rate, work, until):
    """Does it so often each second, as far as there is time."""
    due = time.monotonic()
    while not until.is_set():
        work()
        due = max(due + 1 / rate, time.monotonic())
        time.sleep(due - time.monotonic() if due > time.monotonic() else 0)


def process():
    subprocess.run(["sh", "-c", "cat /proc/version; true"], stdout=subprocess.DEVNULL, check=True)


def serve(listener):
    while True:
        connection, _ = listener.accept()
        connection.recv(64)
        connection.sendall(b"there")
        connection.close()


def connection(address):
    client = socket.create_connection(address)
    client.sendall(b"here")
    client.recv(64)
    client.close()


def cgroup(parent, numbers):
    group = f"{parent}/{next(numbers)}"
    os.mkdir(group)
    subprocess.run(["sh", "-c", f"echo $$ > {group}/cgroup.procs; cat /proc/version"], stdout=subprocess.DEVNULL, check=True)
    os.rmdir(group)


def main(bursts, every, parent=None):
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    threading.Thread(target=serve, args=(listener,), daemon=True).start()
    kinds = [(25, process), (25, process), (100, lambda: connection(listener.getsockname()))]
    if parent:
        numbers = iter(range(1_000_000))
        kinds.append((2, lambda: cgroup(parent, numbers)))
    done = threading.Event()
    threads = [threading.Thread(target=again, args=(*kind, done)) for kind in kinds]
    for thread in threads:
        thread.start()
    for burst in range(1, int(bursts) + 1):
        for dd in [subprocess.Popen(BURST, shell=True) for _ in range(3)]:
            dd.wait()
        print("burst", flush=True)
        over = time.monotonic()
        while time.monotonic() - over < float(every) and not os.path.exists(f"next-{burst}"):
            time.sleep(0.1)
    done.set()
    for thread in threads:
        thread.join()


main(*sys.argv[1:])
