"""A server that reads late, one that has its answers held back by Nagle's algorithm, one that does neither, and a client that waits before it reads.
With "packets DIR" it reads meanwhile what comes and goes on the loopback device, from "ready" in DIR until "ports" is there, which the servers' run writes. Then
it writes a line an exchange: the case, the server's port, when the last byte of the answer left and when the client had acknowledged all of it, in ns since the
first byte of the request came."""

import os
import select
import socket
import struct
import sys
import threading
import time

ETH_P_ALL, SO_TIMESTAMPNS = 3, 35
EXCHANGES = 12
CASES = ["late", "held", "quick", "slow"]


class Packets(threading.Thread):
    """Packets that leave by the loopback device: when, ports, numbers, length of the data."""

    def __init__(self):
        super().__init__(daemon=True)
        self.seen = []
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.socket.bind(("lo", ETH_P_ALL))

    def run(self):
        while True:
            data, ancillary, _, address = self.socket.recvmsg(128, 128)
            if address[2] != socket.PACKET_OUTGOING or data[12:14] != b"\x08\x00" or data[23] != socket.IPPROTO_TCP:
                continue
            seconds, ns = struct.unpack("qq", ancillary[0][2])
            length = struct.unpack_from("!H", data, 16)[0]
            source, dest, seq, ack, offset = struct.unpack_from("!HHIIB", data, 34)
            size = length - 20 - (offset >> 4) * 4
            self.seen.append((seconds * 10**9 + ns, source, dest, seq, ack, size))


def serve(listener, case):
    connection, _ = listener.accept()
    while True:
        if case == "late":
            select.select([connection], [], [])
            time.sleep(0.02)
        if not connection.recv(100):
            break
        connection.send(b"a" * 50)
        if case == "held":
            connection.send(b"b" * 50)
    connection.close()


def exchanges(case):
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    server = threading.Thread(target=serve, args=(listener, case))
    if case != "slow":
        server.start()
    client = socket.socket()
    client.connect(listener.getsockname())
    if case == "slow":
        # the connection waits to be accepted
        time.sleep(0.03)
        server.start()
    ports = listener.getsockname()[1], client.getsockname()[1]
    for _ in range(EXCHANGES):
        client.send(b"q" * 10)
        left = 100 if case == "held" else 50
        if case == "slow":
            time.sleep(0.01)
        while left:
            left -= len(client.recv(left))
        # an answer is acknowledged at once, or late; or by the next request, where the client does not wait for long
        time.sleep(0 if case == "held" else 0.06)
    client.close()
    server.join()
    return ports


def after(seq, than):
    return (seq - than) % 2**32 < 2**31


def watch(directory):
    packets = Packets()
    packets.start()
    place = lambda name: os.path.join(directory, name)
    open(place("ready"), "w").close()
    while not os.path.exists(place("ports")):
        time.sleep(0.01)
    time.sleep(0.1)
    with open(place("ports")) as ports, open(place("log.new"), "w") as log:
        for case, server, client in (line.split() for line in ports):
            server, client = int(server), int(client)
            of = [packet for packet in packets.seen if set(packet[1:3]) == {server, client}]
            asked = [packet for packet in of if packet[1] == client and packet[5]]
            assert len(asked) == EXCHANGES, (case, len(asked))
            for at, question in enumerate(asked):
                end = asked[at + 1][0] if at + 1 < len(asked) else float("inf")
                last = [packet for packet in of if packet[1] == server and packet[5] and question[0] < packet[0] < end][-1]
                arrives = lambda packet: packet[1] == client and packet[0] > last[0] and after(packet[4], last[3] + last[5])
                acked = next(packet[0] for packet in of if arrives(packet))
                print(case, server, last[0] - question[0], acked - question[0], file=log)
    os.rename(place("log.new"), place("log"))


def main():
    if sys.argv[1:2] == ["packets"]:
        return watch(sys.argv[2])
    ports = {case: exchanges(case) for case in CASES}
    # the last packets are seen by then
    time.sleep(0.3)
    with open("ports.new", "w") as out:
        for case, (server, client) in ports.items():
            print(case, server, client, file=out)
    os.rename("ports.new", "ports")


main()
