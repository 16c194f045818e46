"""A service for the examples of docs/guides/notebook.md: 60 requests, each of which reads a template and writes a line."""
import os
import socket
import sys
import threading

slow = sys.argv[1] == "bad"
here, there = socket.socketpair()


def serve():
    log = os.open("requests.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    template = None
    while here.recv(64):
        # the fault of the bad version: the template is read anew for each request, and each line is forced to the disk
        if template is None or slow:
            for part in range(20 if slow else 1):
                with open(f"template-{part}.html") as file:
                    template = file.read()
        os.write(log, b"GET / 200\n")
        if slow:
            os.fsync(log)
        here.send(template.encode()[:64])


for part in range(20):
    with open(f"template-{part}.html", "w") as file:
        file.write("<p>hello</p>\n" * 40)
thread = threading.Thread(target=serve)
thread.start()
for request in range(60):
    there.send(b"GET /")
    there.recv(64)
there.send(b"")
there.shutdown(socket.SHUT_WR)
thread.join()
