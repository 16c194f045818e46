#!/usr/bin/env python3
"""Plants a cause of slow answers in a server, and asks whether `analyze requests --slowest 20 --where` names it.

Each case is one recording of a server with four threads and four clients, of which one request in twenty meets the cause: its line of what
the slowest have more of must be the first. Needs root; exits with 1 below 11 of 13. `--plant CASE DIR` is the server itself.
"""

import argparse
import ctypes
import gc
import json
import os
import pathlib
import queue
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent.parent
REQUESTS, CLIENTS, ONE_IN = 150, 4, 20
# of each case what the first line must have
CASES = {
    "lock": {"comm": "rotate", "cause": "sleep"},
    "fsync": {"cause": "disk", "syscall": "fsync"},
    "backend": {"comm": "backend", "cause": "sleep"},
    "gc": {"who": "gc"},
    "quota": {"cause": "throttled"},
    "backlog": {"comm": "server", "cause": "sleep"},
    "dns": {"comm": "dnsd", "cause": "sleep"},
    "disk": {"cause": "disk", "syscall": "pread64"},
    "cpu-pin": {"cause": "runqueue"},
    "log-rotation": {"who": "gzip"},
    "pool-of-two": {"comm": "backend", "cause": "sleep"},
    "retry": {"comm": "worker", "cause": "sleep"},
    "nagle": {"comm": "worker", "cause": "held"},
}


def call_it(name):
    ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)


def listen():
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(64)
    return server, server.getsockname()[1]


def connect(port, delays=False):
    one = socket.create_connection(("127.0.0.1", port))
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0 if delays else 1)
    return one


def child(run, *args):
    pid = os.fork()
    if pid == 0:
        run(*args)
        os._exit(0)
    return pid


def burn(ms):
    end = time.thread_time() + ms / 1000
    while time.thread_time() < end:
        sum(range(2000))


class Planted:
    """A server with one cause."""

    def __init__(self, case, where):
        self.case, self.where = case, pathlib.Path(where)
        self.lock, self.local, self.count = threading.Lock(), threading.local(), 0
        self.log = open(self.where / "app.log", "ab", buffering=0)
        self.children, self.pool = [], queue.Queue()
        self.slow_ms = {"backend": 60, "pool-of-two": 60}.get(case, 0)
        if case in ("backend", "pool-of-two", "retry"):
            self.backends, self.backend_port = listen()
            self.children.append(child(self.backend))
        if case == "pool-of-two":
            for _ in range(2):
                self.pool.put(connect(self.backend_port))
        if case == "dns":
            self.names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.names.bind(("127.0.0.1", 0))
            self.children.append(child(self.name_server))
        if case == "disk":
            (self.where / "data").write_bytes(os.urandom(1 << 20) * 64)
            os.sync()
            self.data = os.open(self.where / "data", os.O_RDONLY)
        self.kept = [[number] for number in range(1_500_000)] if case == "gc" else []

    def backend(self):
        call_it("backend")

        def serve(connection):
            while question := connection.recv(10, socket.MSG_WAITALL):
                slow = question.startswith(b"slow")
                time.sleep(self.slow_ms / 1000 if slow else 0)
                connection.sendall((b"no" if slow and self.case == "retry" else b"ok") * 10)

        while True:
            threading.Thread(target=serve, args=(self.backends.accept()[0],), daemon=True).start()

    def name_server(self):
        call_it("dnsd")
        while True:
            question, whose = self.names.recvfrom(512)
            time.sleep(0.07)
            self.names.sendto(question, whose)

    def is_slow(self):
        self.count += 1
        return self.count % ONE_IN == 7

    def ask(self, slow):
        if not hasattr(self.local, "connection"):
            self.local.connection = connect(self.backend_port)
        self.local.connection.sendall(b"slow______" if slow else b"fast______")
        return self.local.connection.recv(20, socket.MSG_WAITALL)

    def work(self, slow):
        if self.case == "lock":
            with self.lock:
                pass
        elif self.case == "fsync":
            self.log.write(b"x" * (256 << 10))
            if slow:
                os.fsync(self.log.fileno())
        elif self.case == "backend":
            self.ask(slow)
        elif self.case == "quota":
            burn(2)
        elif self.case == "dns" and slow:
            asks = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            asks.connect(self.names.getsockname())
            asks.send(b"who is api.local")
            asks.recv(100)
        elif self.case == "disk":
            at = random.randrange(56) << 20 if slow else 0
            if slow:
                os.posix_fadvise(self.data, at, 8 << 20, os.POSIX_FADV_DONTNEED)
            os.pread(self.data, 8 << 20 if slow else 100, at)
        elif self.case == "cpu-pin":
            burn(1)
        elif self.case == "log-rotation":
            with self.lock:
                self.log.write(b"request\n")
        elif self.case == "pool-of-two":
            connection = self.pool.get()
            connection.sendall(b"slow______" if slow else b"fast______")
            connection.recv(20, socket.MSG_WAITALL)
            self.pool.put(connection)
        elif self.case == "retry" and self.ask(slow).startswith(b"no"):
            time.sleep(0.08)
            self.ask(False)

    def serve(self, connection):
        call_it("worker")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0 if self.case == "nagle" else 1)
        while connection.recv(10, socket.MSG_WAITALL):
            slow = self.is_slow()
            self.work(slow)
            for part in (20, 80) if slow and self.case == "nagle" else (100,):
                connection.sendall(b"a" * part)

    def client(self, port):
        call_it("client")
        anew = self.case == "backlog"
        connection = None if anew else connect(port)
        for _ in range(REQUESTS):
            one = connect(port) if anew else connection
            one.sendall(b"q" * 10)
            assert len(one.recv(100, socket.MSG_WAITALL)) == 100
            if anew:
                one.close()
            time.sleep(random.random() * 0.008)

    def beside(self):
        """What another thread does from time to time."""
        call_it("gc" if self.case == "gc" else "rotate")
        while True:
            time.sleep(0.2)
            if self.case == "gc":
                gc.collect()
                continue
            with self.lock:
                if self.case == "lock":
                    time.sleep(0.06)
                else:
                    (self.where / "app.log.1").write_bytes(os.urandom(2 << 20))
                    subprocess.run(["gzip", "-f", self.where / "app.log.1"], check=True)

    def around(self):
        """What is set about the process."""
        if self.case == "cpu-pin":
            os.sched_setaffinity(0, {0})

            def batch():
                call_it("batch")
                while True:
                    burn(60)
                    time.sleep(0.2)

            self.children.append(child(batch))
        if self.case == "quota":
            v1, v2 = pathlib.Path("/sys/fs/cgroup/cpu"), pathlib.Path("/sys/fs/cgroup")
            group = (v1 if v1.is_dir() else v2) / "systape-request-causes"
            group.mkdir(exist_ok=True)
            if v1.is_dir():
                (group / "cpu.cfs_quota_us").write_text("30000")
            else:
                (group / "cpu.max").write_text("30000 100000")
            (group / "cgroup.procs").write_text(str(os.getpid()))

    def run(self):
        server, port = listen()
        print(port, flush=True)
        clients = [child(self.client, port) for _ in range(CLIENTS)]
        self.around()
        call_it("server")
        if self.case in ("lock", "log-rotation", "gc"):
            threading.Thread(target=self.beside, daemon=True).start()
        if self.case == "backlog":
            for _ in range(REQUESTS * CLIENTS):
                connection, _ = server.accept()
                # who accepts has something else to do
                time.sleep(0.05 if self.is_slow() else 0)
                connection.recv(10, socket.MSG_WAITALL)
                connection.sendall(b"a" * 100)
                connection.close()
        else:
            threads = [threading.Thread(target=self.serve, args=(server.accept()[0],)) for _ in clients]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        for pid in clients:
            os.waitpid(pid, 0)
        for pid in self.children:
            os.kill(pid, signal.SIGKILL)


def first_line(where, case, release):
    """The first line of what the slowest have more of; None: there is none."""
    tape = where / "t.tape"
    planted = [sys.executable, __file__, "--plant", case, where]
    done = subprocess.run([release / "record", "-q", "-a", "-o", tape, "--", *planted], capture_output=True, text=True, check=True)
    ask = [release / "analyze", "requests", tape, "--port", done.stdout.split()[0], "--slowest", "20", "--where", "--format", "json"]
    rows = map(json.loads, subprocess.run(ask, capture_output=True, text=True, check=True).stdout.splitlines())
    return next((row for row in rows if "more_ns" in row), None)


def is_named(row, wanted):
    who = wanted.get("who")
    return row is not None and all(row[key] == value for key, value in wanted.items() if key != "who") and (who is None or who in (row["comm"], row["other_comm"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plant", nargs=2, metavar=("CASE", "DIR"), help=argparse.SUPPRESS)
    parser.add_argument("--release", type=pathlib.Path, default=HERE / "target/release", help="where record and analyze are")
    parser.add_argument("cases", nargs="*", choices=[[], *CASES], help="cases; all without")
    args = parser.parse_args()
    if args.plant:
        Planted(*args.plant).run()
        return
    cases, named = args.cases or list(CASES), 0
    for case in cases:
        with tempfile.TemporaryDirectory(dir=HERE / "target") as where:
            row = first_line(pathlib.Path(where), case, args.release)
        good = is_named(row, CASES[case])
        named += good
        said = "nothing" if row is None else f"{row['more_ns'] / 1e6:.3f} ms {row['comm']} {row['cause']} {row['syscall']} {row['other_comm']}"
        print(f"{case:<14}{'named' if good else 'NOT NAMED':<11}{said}", flush=True)
    print(f"{named} of {len(cases)} named")
    sys.exit(0 if named * 13 >= 11 * len(cases) else 1)


if __name__ == "__main__":
    main()
