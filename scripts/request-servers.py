#!/usr/bin/env python3
"""Records servers of others under load, and compares what `analyze requests` counts with what each server counted itself.

A server that is not installed is left out, and that is said. Needs root; exits with 1 when a count differs.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent.parent
# requests of one client program, and how many of its clients work at a time
REQUESTS, CLIENTS = 2000, 8


class Missing(Exception):
    """A program of a case is not installed."""


def needs(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Missing(program)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def until_open(port):
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise TimeoutError(f"port {port}")


def run(*words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=120, **more)
    if done.returncode:
        raise RuntimeError(f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def ab(port, *options, path="", scheme="http"):
    said = run("ab", "-q", "-n", REQUESTS, "-c", CLIENTS, *options, f"{scheme}://127.0.0.1:{port}/{path}")
    assert f"Complete requests:      {REQUESTS}" in said, said
    return said


def lines(file):
    return len(file.read_text().splitlines())



# Each case is a generator: it yields the command of its server; is resumed once the server's port is open and it is recorded; then yields a
# function that makes `count` requests and says how many the server counted meanwhile. It is called twice, with a count and with twice as
# many: what clients ask besides (a start-up, the question for the count itself) is the same in both and cancels out.


def counted(ask, load):
    def both(count):
        before = ask()
        load(count)
        return ask() - before

    return both


def ab(port, path="", keep=False, scheme="http"):
    def load(count):
        keeps = ["-k"] if keep else []
        said = run("ab", "-q", "-n", count, "-c", CLIENTS, *keeps, f"{scheme}://127.0.0.1:{port}/{path}")
        assert re.search(f"Complete requests: +{count}\\b", said) and re.search("Failed requests: +0\\b", said), said

    return load


def log_lines(file):
    def ask():
        time.sleep(0.4)
        return len(file.read_text().splitlines())

    return ask


def nginx_conf(where, server, more=""):
    (where / "index.html").write_text("hello\n" * 200)
    temporary = "".join(f"{name}_temp_path {where}/{name};" for name in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"])
    (where / "nginx.conf").write_text(
        f"daemon off; worker_processes 2; pid {where}/pid; error_log {where}/errors; user root; events {{ worker_connections 64; }}\n"
        f"http {{ access_log {where}/access; root {where}; keepalive_requests 300; {temporary} {more} server {{ {server} }} }}\n"
    )
    return ["nginx", "-p", where, "-c", where / "nginx.conf"]


def nginx(where, port, keep=False):
    needs("nginx", "ab")
    yield nginx_conf(where, f"listen 127.0.0.1:{port};")
    yield counted(log_lines(where / "access"), ab(port, "index.html", keep))


def nginx_proxy(where, port):
    """nginx before a server of Python."""
    needs("nginx", "ab")
    behind = free_port()
    server = subprocess.Popen([sys.executable, "-c", HTTP_THREADS, str(behind), where / "count"], stderr=subprocess.DEVNULL)
    try:
        until_open(behind)
        yield nginx_conf(where, f"listen 127.0.0.1:{port}; location / {{ proxy_pass http://127.0.0.1:{behind}; }}")
        yield counted(log_lines(where / "access"), ab(port, "x", True))
    finally:
        server.kill()


def nginx_tls(where, port, keep=False):
    needs("nginx", "ab", "openssl")
    run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
        "-keyout", where / "key.pem", "-out", where / "cert.pem")
    yield nginx_conf(where, f"listen 127.0.0.1:{port} ssl; ssl_certificate {where}/cert.pem; ssl_certificate_key {where}/key.pem;")
    yield counted(log_lines(where / "access"), ab(port, "index.html", keep, "https"))


def apache(where, port, keep=False, mpm="event"):
    needs("apache2", "ab")
    modules = "".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n" for name in [f"mpm_{mpm}", "authz_core"])
    (where / "index.html").write_text("hello\n" * 200)
    (where / "apache.conf").write_text(
        f"{modules}ServerRoot {where}\nServerName localhost\nPidFile {where}/pid\nListen 127.0.0.1:{port}\nDocumentRoot {where}\n"
        f"ErrorLog {where}/errors\nLogFormat \"%r\" short\nCustomLog {where}/access short\nKeepAlive On\nMaxKeepAliveRequests 300\n"
        f"User www-data\nGroup www-data\n<Directory {where}>\n  Require all granted\n</Directory>\n"
    )
    yield ["apache2", "-DFOREGROUND", "-f", where / "apache.conf"]
    yield counted(log_lines(where / "access"), ab(port, "index.html", keep))


def redis(where, port, depth=1):
    needs("redis-server", "redis-benchmark", "redis-cli")
    yield ["redis-server", "--port", port, "--save", "", "--dir", where, "--logfile", where / "log"]

    def ask():
        return int(re.search(r"total_commands_processed:(\d+)", run("redis-cli", "-p", port, "info", "stats"))[1])

    def load(count):
        run("redis-benchmark", "-p", port, "-q", "-n", count * depth, "-c", CLIENTS, "-P", depth, "-t", "get")

    yield counted(ask, load)


def memcached(where, port):
    needs("memcached")
    yield ["memcached", "-u", "nobody", "-l", "127.0.0.1", "-p", port, "-t", "2"]

    def ask():
        with socket.create_connection(("127.0.0.1", port)) as one, one.makefile("rwb", buffering=0) as file:
            file.write(b"stats\r\n")
            stats = {}
            while (line := file.readline()) != b"END\r\n":
                _, name, value = line.split(None, 2)
                stats[name] = int(value) if value.strip().isdigit() else 0
            return stats[b"cmd_get"] + stats[b"cmd_set"]

    def load(count):
        clients = [socket.create_connection(("127.0.0.1", port)).makefile("rwb", buffering=0) for _ in range(CLIENTS)]
        for number in range(count // CLIENTS // 2):
            for client in clients:
                client.write(b"set key%d 0 0 5\r\nhello\r\n" % number)
            for client in clients:
                assert client.readline() == b"STORED\r\n"
            for client in clients:
                client.write(b"get key%d\r\n" % number)
            for client in clients:
                while client.readline() != b"END\r\n":
                    pass

    yield counted(ask, load)


def postgres(where, port, unix=False, script="-S", statements=1):
    needs("postgres", "initdb", "pgbench", "psql")
    where.chmod(0o777)
    as_user = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "env", f"HOME={where}"]
    run(*as_user, "initdb", "-D", where / "data", "-U", "bench", "--auth=trust")
    settings = {"port": port, "unix_socket_directories": where, "fsync": "off", "autovacuum": "off"}
    yield [*as_user, "postgres", "-D", where / "data", *(word for name, value in settings.items() for word in ["-c", f"{name}={value}"])]
    host = [str(word) for word in ["-h", where if unix else "127.0.0.1", "-p", port, "-U", "bench"]]
    while subprocess.run(["psql", *host, "-c", "select 1", "postgres"], capture_output=True).returncode:
        time.sleep(0.1)
    run("pgbench", *host, "-i", "-q", "postgres")
    # its farewell is read by now
    time.sleep(0.5)

    def load(count):
        said = run("pgbench", *host, "-c", CLIENTS, "-t", count // CLIENTS // statements, script, "-n", "postgres")
        return int(re.search(r"actually processed: (\d+)", said)[1]) * statements

    yield load


def haproxy(where, port):
    needs("haproxy", "ab")
    behind = free_port()
    server = subprocess.Popen([sys.executable, "-c", HTTP_THREADS, str(behind), where / "count"], stderr=subprocess.DEVNULL)
    try:
        until_open(behind)
        (where / "haproxy.conf").write_text(
            f"global\n  stats socket {where}/admin\ndefaults\n  mode http\n  timeout client 10s\n  timeout server 10s\n  timeout connect 5s\n"
            f"frontend f\n  bind 127.0.0.1:{port}\n  default_backend b\nbackend b\n  server s 127.0.0.1:{behind}\n"
        )
        yield ["haproxy", "-db", "-f", where / "haproxy.conf"]

        def ask():
            with socket.socket(socket.AF_UNIX) as one:
                one.connect(str(where / "admin"))
                one.sendall(b"show stat\n")
                text = b"".join(iter(lambda: one.recv(65536), b"")).decode()
            head, *rows = [line.split(",") for line in text.strip().splitlines()]
            return next(int(row[head.index("req_tot")]) for row in rows if row[1] == "FRONTEND")

        yield counted(ask, ab(port, "x", True))
    finally:
        server.kill()


# servers of a few lines, which write down how many requests they answered
HTTP_THREADS = """
import sys, http.server, pathlib
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    done = 0
    def do_GET(self):
        Handler.done += 1
        pathlib.Path(sys.argv[2]).write_text(str(Handler.done))
        self.send_response(200); self.send_header("Content-Length", "5")
        if self.headers.get("Connection", "").lower() == "keep-alive": self.send_header("Connection", "keep-alive")
        self.end_headers(); self.wfile.write(b"hello")
    def log_message(self, *words): pass
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64
Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
HTTP_ASYNCIO = """
import sys, asyncio, pathlib
done = 0
async def serve(reader, writer):
    global done
    while True:
        try: head = await reader.readuntil(b"\\r\\n\\r\\n")
        except asyncio.IncompleteReadError: break
        done += 1
        pathlib.Path(sys.argv[2]).write_text(str(done))
        await asyncio.sleep(0.001)
        keep = b"keep-alive" in head.lower()
        writer.write(b"HTTP/1.0 200 OK\\r\\nContent-Length: 5\\r\\n" + (b"Connection: keep-alive\\r\\n" if keep else b"") + b"\\r\\nhello")
        await writer.drain()
        if not keep: break
    writer.close()
async def main():
    async with await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]), backlog=64) as server: await server.serve_forever()
asyncio.run(main())
"""
HTTP_NODE = """
let done = 0;
require("http").createServer((asked, answer) => {
  done += 1;
  require("fs").writeFileSync(process.argv[2], String(done));
  answer.setHeader("Content-Length", 5);
  answer.end("hello");
}).listen(Number(process.argv[1]), "127.0.0.1");
"""
HTTP_GO = """
package main

import (
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
)

func main() {
	var done atomic.Int64
	handle := func(w http.ResponseWriter, r *http.Request) {
		count := done.Add(1)
		os.WriteFile(os.Args[2]+fmt.Sprint(count%16), []byte(fmt.Sprint(count)), 0o644)
		w.Write([]byte("hello"))
	}
	fmt.Println(http.ListenAndServe("127.0.0.1:"+os.Args[1], http.HandlerFunc(handle)))
}
"""
HTTP_JAVA = """
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.file.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicInteger;

public class Answers {
    public static void main(String[] words) throws Exception {
        AtomicInteger done = new AtomicInteger();
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(words[0])), 64);
        server.createContext("/", asked -> {
            synchronized (done) { Files.writeString(Path.of(words[1]), String.valueOf(done.incrementAndGet())); }
            asked.sendResponseHeaders(200, 5);
            asked.getResponseBody().write("hello".getBytes());
            asked.close();
        });
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.start();
    }
}
"""


def own(where, port, program, keep=True):
    needs(program[0], "ab")
    count = where / "count"
    yield [*program, str(port), count]

    def ask():
        time.sleep(0.2)
        return max((int(file.read_text() or 0) for file in where.glob("count*")), default=0)

    yield counted(ask, ab(port, "", keep))


def own_go(where, port):
    needs("go")
    (where / "answers.go").write_text(HTTP_GO)
    run("go", "build", "-o", where / "answers", where / "answers.go", env={**os.environ, "GOFLAGS": "-mod=mod", "GOCACHE": str(where / "cache")})
    yield from own(where, port, [str(where / "answers")])


def own_java(where, port):
    needs("java", "javac")
    (where / "Answers.java").write_text(HTTP_JAVA)
    run("javac", "-d", where, where / "Answers.java")
    yield from own(where, port, ["java", "-Xmx128m", "-cp", str(where), "Answers"])


CASES = {
    "nginx": nginx,
    "nginx-keep": lambda where, port: nginx(where, port, True),
    "nginx-tls": nginx_tls,
    "nginx-tls-keep": lambda where, port: nginx_tls(where, port, True),
    "nginx-proxy": nginx_proxy,
    "apache": apache,
    "apache-keep": lambda where, port: apache(where, port, True),
    "apache-prefork": lambda where, port: apache(where, port, True, "prefork"),
    "redis": redis,
    "redis-pipelined": lambda where, port: redis(where, port, 16),
    "memcached": memcached,
    "postgres": postgres,
    "postgres-tpcb": lambda where, port: postgres(where, port, False, "-N", 5),
    "postgres-unix": lambda where, port: postgres(where, port, True),
    "haproxy": haproxy,
    "python-threads": lambda where, port: own(where, port, [sys.executable, "-c", HTTP_THREADS]),
    "python-asyncio": lambda where, port: own(where, port, [sys.executable, "-c", HTTP_ASYNCIO]),
    "python-asyncio-close": lambda where, port: own(where, port, [sys.executable, "-c", HTTP_ASYNCIO], False),
    "node": lambda where, port: own(where, port, ["node", "-e", HTTP_NODE]),
    "go": own_go,
    "java": own_java,
}
# what the server counts is not what was exchanged: pipelined commands are one exchange, a handshake of TLS is exchanges of its own, as many
# as connections were made
PER_REQUEST = {"redis-pipelined": 1 / 16}
AT_LEAST = {"nginx-tls", "nginx-tls-keep"}


def exchanges(analyze, tape, server, window):
    span = ",".join(f"mono:{at:.9f}" for at in window)
    said = run(analyze, "requests", tape, "--format", "json", "--time", span)
    rows = [row for row in map(json.loads, said.splitlines()) if server in (row["server"] or "")]
    return sum(row["exchanges"] for row in rows), rows


def attempt(name, args, where):
    port = free_port()
    case = CASES[name](where, port)
    tape = where / "t.tape"
    command = [str(word) for word in next(case)]
    recorder = subprocess.Popen([args.record, "-o", tape, "--", *command], stderr=open(where / "record.log", "w"), start_new_session=True)
    try:
        until_open(port)
        load = next(case)
        marks, counts = [], []
        for count in [REQUESTS, 2 * REQUESTS]:
            begin = time.clock_gettime(time.CLOCK_MONOTONIC)
            counts.append(load(count))
            time.sleep(0.5)
            marks.append((begin, time.clock_gettime(time.CLOCK_MONOTONIC)))
    finally:
        os.killpg(recorder.pid, signal.SIGINT)
        time.sleep(0.1)
        if recorder.poll() is None:
            os.killpg(recorder.pid, signal.SIGTERM)
        recorder.wait(timeout=60)
        case.close()
    server = str(where) if name == "postgres-unix" else f":{port}"
    found = [exchanges(args.analyze, tape, server, window) for window in marks]
    meant = (counts[1] - counts[0]) * PER_REQUEST.get(name, 1)
    have = found[1][0] - found[0][0]
    right = have >= meant if name in AT_LEAST else have == meant
    print(f"{name:22} server {counts[0]:5} {counts[1]:5}  exchanges {found[0][0]:5} {found[1][0]:5}  {'right' if right else 'WRONG'}", flush=True)
    if not right:
        print((where / "record.log").read_text()[-600:], json.dumps(found[1][1])[:1500])
    return right


def main():
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--bin", default=HERE / "target/release", type=pathlib.Path)
    words.add_argument("--keep", help="directory for tapes")
    words.add_argument("cases", nargs="*", default=list(CASES))
    args = words.parse_args()
    args.record, args.analyze = args.bin / "record", args.bin / "analyze"
    wrong = 0
    for name in args.cases:
        with tempfile.TemporaryDirectory(prefix="systape-servers-") as where:
            try:
                wrong += not attempt(name, args, pathlib.Path(where))
            except Missing as missing:
                print(f"{name:22} left out: no {missing}", flush=True)
            if args.keep and (pathlib.Path(where) / "t.tape").exists():
                shutil.copy(pathlib.Path(where) / "t.tape", pathlib.Path(args.keep) / f"{name}.tape")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
