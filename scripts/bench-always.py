#!/usr/bin/env python3
"""Measures what `record -a --sample` costs beside work, with `perf record -F 20 -a -g` and a reader of /proc in xcapture's way.

Each round runs each workload without and with each of them, in an order that changes; a loss is that of a pair in one round. Prints a
table: median of the losses with the bounds that hold the true median in 95 of 100 cases (--rounds 15 or more; below 6 rounds the least and
the greatest), the CPU time of the watcher while the work runs (not that of its start), its memory, and of `record` what a tape of
--tape seconds grows by in a day. Needs root, `record` in --bin, a C compiler, and of redis-server, PostgreSQL and perf those that are to be
measured: what is missing is left out, and said to be.
"""

import argparse
import glob
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from math import comb

HERE = pathlib.Path(__file__).resolve().parent.parent
SOURCES = sorted((HERE / "e2e/workloads").glob("*.c"))
PORT = "17379"


def cpu_ns(pid):
    """CPU time of all threads of a process and of its children, ns."""
    total = 0
    pids = [pid]
    while pids:
        one = pids.pop()
        for path in glob.glob(f"/proc/{one}/task/*"):
            try:
                total += int(pathlib.Path(path, "schedstat").read_text().split()[0])
                pids += [int(child) for child in pathlib.Path(path, "children").read_text().split()]
            except (OSError, IndexError):
                pass  # it has ended
    return total


def peak_mib(pid):
    """The most memory that a process had."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0


def quietly(command, **options):
    """Runs a command whose output is of no interest unless it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stdout}")
    return done.stdout


class Redis:
    """Requests a second of redis-benchmark."""

    name = "redis"

    def __init__(self, args):
        self.seconds, self.server = args.seconds, None
        if not shutil.which("redis-server") or not shutil.which("redis-benchmark"):
            raise OSError("redis-server is missing")
        command = ["redis-server", "--port", PORT, "--save", "", "--daemonize", "no", "--dir", str(args.dir)]
        self.server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        time.sleep(1)
        self.requests = 20000
        self.requests = max(1000, int(self.run() * self.seconds))

    def run(self):
        begin = time.monotonic()
        quietly(["redis-benchmark", "-p", PORT, "-t", "get", "-n", str(self.requests), "-q"])
        return self.requests / (time.monotonic() - begin)

    def close(self):
        self.server.terminate()
        self.server.wait()


class Postgres:
    """Transactions a second of pgbench, which only reads."""

    name = "pgbench"

    def __init__(self, args):
        self.seconds, self.data = args.seconds, args.dir / "postgres"
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/pg_ctl"))
        if not found or not shutil.which("pgbench"):
            raise OSError("PostgreSQL is missing")
        self.bin = pathlib.Path(found[-1]).parent
        self.data.mkdir()
        shutil.chown(args.dir, "postgres")
        shutil.chown(self.data, "postgres")
        self.as_user("initdb", "-D", self.data)
        self.as_user("pg_ctl", "-D", self.data, "-w", "-l", self.data / "log", "-o", f"-k {self.data} -h ''", "start")
        self.as_user("pgbench", "-h", self.data, "-i", "-s", "5", "postgres")

    def as_user(self, program, *words):
        path = self.bin / program if (self.bin / program).exists() else program
        return quietly(["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", path, *map(str, words)], cwd=self.data)

    def run(self):
        said = self.as_user("pgbench", "-h", self.data, "-S", "-c", "4", "-j", "2", "-T", str(self.seconds), "postgres")
        return float(next(line for line in said.splitlines() if line.startswith("tps")).split()[2])

    def close(self):
        self.as_user("pg_ctl", "-D", self.data, "-m", "immediate", "stop")


class Build:
    """C files compiled in a second, two at a time."""

    name = "build"

    def __init__(self, args):
        self.dir, self.seconds = args.dir / "build", args.seconds
        self.dir.mkdir()
        self.files = SOURCES[:4]
        self.files = (SOURCES * 100)[: max(4, int(self.run() * self.seconds))]

    def run(self):
        begin = time.monotonic()
        queue = [["cc", "-O2", "-c", str(source), "-o", str(self.dir / f"{at}.o")] for at, source in enumerate(self.files)]
        running = []
        while queue or running:
            while queue and len(running) < 2:
                running.append(subprocess.Popen(queue.pop(0), stderr=subprocess.DEVNULL))
            running.pop(0).wait()
        return len(self.files) / (time.monotonic() - begin)

    def close(self):
        shutil.rmtree(self.dir)


class Idle:
    """Calls a second of one thread beside many that wait."""

    def __init__(self, args, threads):
        self.name, self.seconds = f"{threads:,} idle threads", args.seconds
        program = args.dir / "idle_threads"
        quietly(["cc", "-O2", "-pthread", "-o", program, HERE / "e2e/workloads/idle_threads.c"])
        self.process = subprocess.Popen([program, str(threads)], stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            raise OSError(f"{threads} threads cannot be made")

    def run(self):
        calls, end = 0, time.monotonic() + self.seconds
        begin = time.thread_time()
        while time.monotonic() < end:
            for _ in range(1000):
                os.getppid()
            calls += 1000
        # of its own CPU time: others on the machine take the rest
        return calls / (time.thread_time() - begin)

    def close(self):
        self.process.kill()
        self.process.wait()


class Watcher:
    """A recorder beside the work."""

    def __init__(self, name, command):
        self.name, self.command = name, command
        self.process, self.cpu, self.peak, self.time = None, 0, 0.0, 0.0

    def start(self, settle):
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(settle)
        if self.process.poll() is not None:
            sys.exit(f"{self.name} ended with {self.process.returncode}")
        self.began, self.before = time.monotonic(), cpu_ns(self.process.pid)

    def stop(self):
        self.cpu += cpu_ns(self.process.pid) - self.before
        self.time += time.monotonic() - self.began
        self.peak = max(self.peak, peak_mib(self.process.pid))
        self.process.send_signal(signal.SIGINT)
        self.process.wait()


def growth(record, work, seconds):
    """MB that a tape of looks grows by in a day of this work, by the sizes between two of its segments; None: it is not asked for."""
    tape, sizes = pathlib.Path(record.command[-1]), []
    if seconds <= 0:
        return None
    record.start(0)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        work.run()
        size = tape.stat().st_size if tape.exists() else 0
        if not sizes or size > sizes[-1][1]:
            sizes.append((time.monotonic(), size))
    record.stop()
    # what a recording begins with is none of it
    grown = [(at, size) for at, size in sizes if at > end - seconds + 15]
    if len(grown) < 2:
        return None
    (begin, first), (last, most) = grown[0], grown[-1]
    return (most - first) / (last - begin) * 86400 / 1e6


def bounds(values):
    """Order statistics that hold the median in 95 of 100 cases; of few values the least and the greatest."""
    values, count = sorted(values), len(values)
    outside, rank = 0.0, 0
    while rank < count // 2 and 2 * (outside + comb(count, rank) / 2**count) <= 0.05:
        outside += comb(count, rank) / 2**count
        rank += 1
    rank = max(rank, 1)
    return values[rank - 1], values[count - rank]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, default=HERE / "target/release", help="where record is")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=5, help="of work in each measurement")
    parser.add_argument("--settle", type=float, default=15, help="seconds before it, in which watchers start and looks find their rate")
    parser.add_argument("--tape", type=float, default=120, help="seconds of a tape whose size is told; 0: none")
    parser.add_argument("--workloads", default="redis,pgbench,build,1000,5000", help="a number: so many idle threads")
    args = parser.parse_args()
    args.seconds = int(args.seconds) if args.seconds >= 1 else args.seconds
    with tempfile.TemporaryDirectory() as where:
        args.dir = pathlib.Path(where)
        os.chmod(where, 0o755)
        measure(args)


def measure(args):
    """Runs all, and prints the table."""
    reader = args.dir / "proc_looks"
    quietly(["cc", "-O2", "-o", reader, HERE / "e2e/workloads/proc_looks.c"])
    tape, data = args.dir / "t.tape", args.dir / "perf.data"
    watchers = [("record -a --sample", [args.bin / "record", "-q", "-a", "--sample", "-o", tape])]
    if shutil.which("perf"):
        watchers.append(("perf record -F 20 -a -g", ["perf", "record", "-q", "-F", "20", "-a", "-g", "-o", data]))
    else:
        print("perf is missing: left out")
    watchers.append(("20 reads of /proc a second", [reader, "20"]))
    cpus, kernel = os.cpu_count(), os.uname().release
    print(f"{args.rounds} rounds, {args.seconds} s of work each; {cpus} CPUs, kernel {kernel}, {time.strftime('%Y-%m-%d')}\n")
    print("| beside | watcher | lost, % (bounds) | CPU, % of one | peak, MiB | MB a day |")
    print("|---|---|--:|--:|--:|--:|")
    kinds = {"redis": Redis, "pgbench": Postgres, "build": Build}
    for asked in args.workloads.split(","):
        try:
            work = kinds[asked](args) if asked in kinds else Idle(args, int(asked))
        except OSError as error:
            print(f"{asked}: {error}: left out", file=sys.stderr)
            continue
        each = [Watcher(*watcher) for watcher in watchers]
        losses = {watcher.name: [] for watcher in each}
        for number in range(args.rounds):
            turns = [None, *each]
            turns = turns[number % len(turns) :] + turns[: number % len(turns)]
            speeds = {}
            for watcher in turns:
                if watcher:
                    watcher.start(args.settle)
                speeds[watcher.name if watcher else None] = work.run()
                if watcher:
                    watcher.stop()
            for name, of in losses.items():
                of.append(100 * (1 - speeds[name] / speeds[None]))
        table = [(watcher, watcher.cpu / watcher.time) for watcher in each]
        day = growth(each[0], work, args.tape)
        work.close()
        for watcher, cpu in table:
            low, high = bounds(losses[watcher.name])
            lost = f"{statistics.median(losses[watcher.name]):.1f} ({low:.1f} to {high:.1f})"
            grows = f"{day:.0f}" if watcher is each[0] and day is not None else "-"
            print(f"| {work.name} | {watcher.name} | {lost} | {cpu / 1e7:.2f} | {watcher.peak:.0f} | {grows} |", flush=True)


if __name__ == "__main__":
    main()
