"""What the cases in Python share."""
import ctypes
import os
import signal
import socket
import sys
import time

ON = len(sys.argv) > 1 and sys.argv[1] == "on"
# what control groups of this bench are called: others may run at the same time
GROUP = os.environ["BENCH_WHY_GROUP"]
ROLE = sys.argv[2] if len(sys.argv) > 2 else ""
libc = ctypes.CDLL(None, use_errno=True)


def name(comm):
    """Names the calling thread, which `comm` then is."""
    libc.prctl(15, comm.encode(), 0, 0, 0)


def spin(seconds):
    """Uses so much CPU time of the calling thread."""
    end = time.thread_time() + seconds
    x = 0
    while time.thread_time() < end:
        # half a millisecond: the clock is a call each time
        for _ in range(10000):
            x += 1


def fork(comm, work, *args):
    """A process of that name that does the work and ends; its pid."""
    pid = os.fork()
    if pid == 0:
        name(comm)
        try:
            work(*args)
            os._exit(0)
        except BaseException as e:
            print(comm, repr(e), file=sys.stderr)
            os._exit(1)
    return pid


def wait(*pids):
    """Waits for these children, in turn."""
    for pid in pids:
        _, status = os.waitpid(pid, 0)
        assert status == 0, status


def ready():
    """Tells the bench that the helper is ready."""
    print("ready", flush=True)


def subject():
    """The pid of the recorded program; a helper waits for it here."""
    while True:
        try:
            return int(open("start").read().split()[0])
        except (FileNotFoundError, IndexError):
            time.sleep(0.005)


def listen(port=0, backlog=16):
    """A TCP socket that listens on the loopback interface."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", port))
    s.listen(backlog)
    return s


def forever():
    """Waits to be ended."""
    while True:
        signal.pause()


def cgroup(controller, group):
    """The directory of a new control group; version 1 where the controller is mounted so."""
    path = f"/sys/fs/cgroup/{controller}/{group}"
    os.makedirs(path, exist_ok=True)
    return path


def put(path, text):
    """Writes into a file."""
    with open(path, "w") as f:
        f.write(str(text))


def truth(key, value):
    """Tells the bench what a pattern means by {key}."""
    with open("truth", "a") as f:
        f.write(f"{key} {value}\n")


def slow_server(port, seconds, comm="backend"):
    """Answers each request after so long; a thread for each client."""
    import threading

    def serve(c):
        while c.recv(100):
            time.sleep(seconds)
            c.sendall(b"answer")
        c.close()

    name(comm)
    s = listen(port)
    ready()
    while True:
        threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()


def ask(client):
    """One question, one answer."""
    client.sendall(b"question")
    assert client.recv(100)


def client_of(port):
    """A connection to a server of this machine."""
    return socket.create_connection(("127.0.0.1", port))
