#: what A threading socketserver, eight clients that think 150 ms before each question.
#: healthy
import socketserver
import threading
from shared import *


class Answers(socketserver.BaseRequestHandler):
    def handle(self):
        while self.request.recv(100):
            self.request.sendall(b"answer")


def thinker():
    c = client_of(7431)
    for _ in range(7):
        ask(c)
        time.sleep(0.15)
    c.close()


socketserver.ThreadingTCPServer.allow_reuse_address = True
with socketserver.ThreadingTCPServer(("127.0.0.1", 7431), Answers) as server:
    threading.Thread(target=server.serve_forever).start()
    threads = [threading.Thread(target=thinker) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    server.shutdown()
