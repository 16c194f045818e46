#!/usr/bin/env python3
"""Compares estimates of looks (record --sample) with a full recording of the same time, cell by cell.

Runs e2e/workloads/cells.c (thirty threads in known waits, periods of 1 ms to 10 s, some in step with the looks), with both recordings
beside it, and asks for each window of time how long each thread was in each state, call and file. A cell is one of these with at least
20 looks. Says how many cells have the full recording's time within their bars, and how wide bars are beside the errors.

Needs root, a C compiler, and `record` and `analyze` in --bin. Exits with 1 when bars are too narrow or too wide.
"""

import argparse
import datetime
import json
import math
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent.parent
BY = "comm,state,syscall,file"
# calls that looks only count, and states that have no rows
COUNTED = {"clock_nanosleep", "nanosleep", "poll", "wait4"}


def rows(analyze, report, tape, window):
    """The rows of a report about a window."""
    command = [analyze, report, tape, "--by", BY, "--time", ",".join(window), "--format", "json"]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in said.stdout.splitlines()]


def key(row, files):
    """Thread, state, call, file. What a thread does while it runs, samples do not say by call."""
    if row["state"] == "RUN":
        return row["comm"], "RUN", "", ""
    if row["state"] == "RQ":
        return row["comm"], "RQ", "", ""
    # a full recording has no name of a lock
    is_lock = (row["syscall"] or "").startswith("futex")
    return row["comm"], row["state"], row["syscall"] or "", "" if is_lock or not files else row["file"] or ""


def states(analyze, tape, window, files):
    """Time by cell of the full recording."""
    sums = {}
    for row in rows(analyze, "states", tape, window):
        sums[key(row, files)] = sums.get(key(row, files), 0) + row["time_ns"]
    return sums


def looks(analyze, tape, window, files):
    """Looks, estimate and bars by cell. A row is one cell but for RUN, whose rows are added up as independent ones."""
    sums = {}
    for row in rows(analyze, "stays", tape, window):
        found, estimate, low, high = sums.get(key(row, files), (0, 0, 0, 0))
        part = row["time_ns"]
        low = math.hypot(low, part - row["time_low_ns"])
        high = math.hypot(high, row["time_high_ns"] - part)
        sums[key(row, files)] = (found + row["looks"], estimate + part, low, high)
    return sums


def record(args, where):
    """Makes both tapes; returns the time that both are about."""
    program = where / "cells"
    subprocess.run(["cc", "-O2", "-pthread", "-o", program, HERE / "e2e/workloads/cells.c"], check=True)
    length = args.windows * args.window
    work = subprocess.Popen([program, str(length + 20)], cwd=where)
    time.sleep(1)
    both = [
        subprocess.Popen([args.bin / "record", "-q", "-a", *options, "-o", where / tape, "--for", f"{length + 6}s"])
        for tape, options in [("looks.tape", [f"--sample={args.rate}"]), ("full.tape", ["--families", "syscall,sched"])]
    ]
    time.sleep(3)
    begin = datetime.datetime.now(datetime.timezone.utc)
    if any(one.wait() for one in both):
        sys.exit("a recording failed")
    work.kill()
    work.wait()
    return begin


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, default=HERE / "target/release")
    parser.add_argument("--dir", type=pathlib.Path, default=pathlib.Path("/tmp/look-bars"))
    parser.add_argument("--rate", type=int, default=20, help="looks a second")
    parser.add_argument("--windows", type=int, default=8)
    parser.add_argument("--window", type=int, default=20, help="seconds of each")
    parser.add_argument("--all", action="store_true", help="print every cell")
    parser.add_argument("--no-files", dest="files", action="store_false",
                        help="cells by state and call alone: on a busy machine files of short stays are not read in time")
    parser.add_argument("--again", action="store_true", help="compare the tapes that are there once more")
    args = parser.parse_args()
    args.dir.mkdir(parents=True, exist_ok=True)
    noted = args.dir / "begin"
    if not args.again:
        noted.write_text(record(args, args.dir).isoformat())
    begin = datetime.datetime.fromisoformat(noted.read_text().strip())
    analyze = args.bin / "analyze"
    cells = []
    for number in range(args.windows):
        edges = [begin + datetime.timedelta(seconds=args.window * (number + part)) for part in (0, 1)]
        window = [edge.strftime("%Y-%m-%dT%H:%M:%S.%fZ") for edge in edges]
        truth = states(analyze, args.dir / "full.tape", window, args.files)
        for at, (found, estimate, low, high) in looks(analyze, args.dir / "looks.tape", window, args.files).items():
            is_cell = found >= 20 and at[0].startswith("w") and at[0][1:].isdigit() and at[2] not in COUNTED
            if is_cell:
                cells.append((number, at, found, truth.get(at, 0), estimate, low, high))
    within = errors = bars = 0
    for number, at, found, true, estimate, low, high in cells:
        error = true - estimate
        inside = -low <= error <= high
        within += inside
        errors += error * error
        bars += (low + high) / 2
        if args.all or not inside:
            name = " ".join(at)
            print(f"{number} {name}: {true / 1e6:.1f} ms, looks {found}: {estimate / 1e6:.1f} -{low / 1e6:.1f} +{high / 1e6:.1f}"
                  f"{'' if inside else ' OUT'}")
    if not cells:
        sys.exit("no cell has enough looks")
    rms, mean = math.sqrt(errors / len(cells)), bars / len(cells)
    part = within / len(cells)
    print(f"{len(cells)} cells of {len({at for _, at, *_ in cells})} kinds: {100 * part:.1f} % within their bars, "
          f"mean bar {mean / 1e6:.1f} ms, {mean / rms:.2f} times the root mean square of the errors ({rms / 1e6:.1f} ms)")
    sys.exit(0 if len(cells) >= 200 and 0.9 <= part <= 0.99 and mean <= 1.5 * rms else 1)


if __name__ == "__main__":
    main()
