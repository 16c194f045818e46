#!/usr/bin/env python3
"""Compares the JSON of two builds of analyze across the change of names of November 2026.

    scripts/json-renames.py OLD_ANALYZE NEW_ANALYZE [TAPE...]

OLD_ANALYZE is one of before reports declared their columns ("complete", "dur_exact", "at_least" ...), NEW_ANALYZE one of
after it. Each line of the old one is turned into one of the new one by the table below and nothing else; the order of
keys does not matter. Every other difference is printed; the status is then 1. Without TAPE: those of testdata.
KEEP_TAPES=DIR cargo test -p systape-analyzer --test golden writes those of testdata/analyzer to DIR.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

# A report as typed -> ways to ask for it.
COMMANDS = {
    "": [
        [],
        ["--sort", "end", "--clone-child"],
        ["-e", "all,sched:*,signal:*,block:*,sock:*,io_uring:*,process:*"],
        ["-e", "all,sched:*,signal:*,block:*,process:*", "--call-graph"],
        ["--failure"],
        ["--time", "10%,60%"],
        ["--duration", "0.05"],
        ["--max-events", "7"],
    ],
    "summary": [
        ["-s"],
        ["-s", "--cpu", "--errno-summary", "--summary-mode", "process"],
        ["-s", "--errno-summary", "--summary-mode", "cgroup"],
        ["-s", "--cpu", "--summary-mode", "total"],
        ["-s", "--time", "10%,60%"],
        ["-S"],
    ],
    "block": [["block"], ["block", "--time", "10%,60%"]],
    "block --top": [
        ["block", "--top"],
        ["block", "--top", "--by", "comm,tid,uid,cgroup,cause,task"],
        ["block", "--hist"],
        ["block", "--hist", "--by", "op,comm"],
    ],
    "net": [["net"], ["net", "--time", "10%,60%"]],
    "net --events": [["net", "--events"]],
    "kills": [["kills"], ["kills", "--all"]],
    "exec": [["exec"], ["exec", "--failure"]],
    "exec --tree": [["exec", "--tree"], ["exec", "--tree", "--all"]],
    "sched timehist": [["sched", "timehist"], ["sched", "timehist", "--time", "10%,60%"]],
    "sched latency": [["sched", "latency"], ["sched", "latency", "--by", "task"]],
    "runqlat": [["runqlat"], ["runqlat", "--by", "task"], ["runqlat", "--by", "cpu"]],
    "offcpu": [["offcpu"], ["offcpu", "--by", "file,task,comm,process,syscall,state"], ["offcpu", "--time", "10%,60%"]],
    "offcpu --wakers": [["offcpu", "--wakers", "100"], ["offcpu", "--wakers", "1"]],
    "states": [["states"], ["states", "--by", "cgroup,user,process"]],
    "states --at": [["states", "--at", "0.0012"], ["states", "--at", "100%"], ["states", "--at", "50%"]],
    "states --at --call-graph": [["states", "--at", "90%", "--call-graph"]],
    "callgraph": [
        ["callgraph"],
        ["callgraph", "--of", "syscall", "--metric", "time"],
        ["callgraph", "--of", "syscall", "--metric", "bytes"],
        ["callgraph", "--of", "offcpu", "--callee"],
    ],
    "diff": [["diff", "TAPE"]],
    "info": [["info"]],
    "check": [["check"]],
    "repair": [["repair"]],
    "redact": [["redact"]],
}


def words(text):
    return text.split()


class Table:
    """How rows of one kind are renamed.

    drop: fields of the old rows that are gone. new: fields that are there always now, with the value where there was none.
    at_least, at_most, of_known: fields beside which stands a flag now. short: whether all flags of a row are set. also:
    field -> whether its own flag is.
    """

    def __init__(self, drop="", new=None, at_least="", at_most="", of_known="", short=None, also=None):
        self.drop = words(drop)
        self.new = new or {}
        self.flags = [(field, "_at_least") for field in words(at_least)]
        self.flags += [(field, "_at_most") for field in words(at_most)]
        self.flags += [(field, "_of_known") for field in words(of_known)]
        self.short = short or (lambda row, lost: False)
        self.also = also or {}

    def rename(self, row, lost):
        out = {name: value for name, value in row.items() if name not in self.drop}
        for name, value in self.new.items():
            out.setdefault(name, value)
        for field, suffix in self.flags:
            if field not in row:
                continue
            also = self.also.get(field, lambda row: False)
            flag = self.short(row, lost) or also(row)
            out[field + suffix] = None if row[field] is None else bool(flag)
        return out


def incomplete(row, lost):
    return not row["complete"]


TIME = {"time_uncertain_ns": None}
COUNTED = lambda row: row["incomplete_calls"] > 0
UNTIMED = lambda row: row["timed_ios"] < row["ios"]
UNSEEN = lambda row: row["cpu_unknown_calls"] is not None and row["cpu_unknown_calls"] > 0

LOSS = Table(new={"segment": None, "why": None, "cpu": None, "pid": None, "ledger": False})
EVENT = Table(new=TIME)
STACKED_EVENT = Table(new={**TIME, "stack": None, "stack_status": None})
URING = Table(drop="complete", at_least="count", short=incomplete)

TABLES = {
    "": Table(
        new=TIME,
        at_least="dur_ns",
        also={"dur_ns": lambda row: row["incomplete"] is not None},
    ),
    "summary": Table(
        drop="complete",
        at_least="calls errors total_ns max_ns incomplete_calls ledger_calls cpu_ns off_cpu_ns cpu_calls"
        " cpu_unknown_calls errnos",
        at_most="min_ns",
        of_known="avg_ns stddev_percent p50_ns p99_ns",
        short=incomplete,
        also={"total_ns": COUNTED, "max_ns": COUNTED, "cpu_ns": UNSEEN, "off_cpu_ns": UNSEEN},
    ),
    "block": Table(new=TIME),
    "block --top": Table(
        drop="complete",
        at_least="ios read_bytes written_bytes errors requeues timed_ios total_ns max_ns histogram",
        of_known="avg_ns share",
        short=incomplete,
        also={name: UNTIMED for name in words("total_ns max_ns avg_ns share histogram")},
    ),
    "net": Table(
        drop="dur_exact", new=TIME, at_least="dur_ns", also={"dur_ns": lambda row: not row["dur_exact"]}
    ),
    "net --events": Table(new=TIME),
    "kills": Table(new=TIME),
    "exec": Table(drop="dur_is", new=TIME, at_least="dur_ns", also={"dur_ns": lambda row: row["dur_is"] == "at-least"}),
    "sched timehist": Table(
        drop="wait_at_least delay_at_least run_at_least",
        at_least="wait_ns delay_ns run_ns",
        also={
            "wait_ns": lambda row: row["wait_at_least"],
            "delay_ns": lambda row: row["delay_at_least"],
            "run_ns": lambda row: row["run_at_least"],
        },
    ),
    "sched latency": Table(
        drop="complete",
        at_least="threads run_ns switches delays max_delay_ns",
        of_known="avg_delay_ns max_delay_start_ns max_delay_end_ns",
        short=incomplete,
    ),
    "runqlat": Table(at_least="count", short=lambda row, lost: lost),
    "offcpu": Table(
        drop="complete at_least max_at_least",
        at_least="total_ns count max_ns",
        of_known="avg_ns share",
        short=incomplete,
        also={
            "total_ns": lambda row: row["at_least"],
            "avg_ns": lambda row: row["at_least"],
            "max_ns": lambda row: row["max_at_least"],
        },
    ),
    "offcpu --wakers": Table(
        drop="complete at_least",
        at_least="count slept_ns max_ns",
        short=incomplete,
        also={"slept_ns": lambda row: row["at_least"], "max_ns": lambda row: row["at_least"]},
    ),
    "states": Table(drop="complete", at_least="time_ns", of_known="share avg_threads", short=incomplete),
    "states --at": Table(
        drop="off_cpu_at_least call_at_least",
        at_least="off_cpu_ns call_ns",
        also={"off_cpu_ns": lambda row: row["off_cpu_at_least"], "call_ns": lambda row: row["call_at_least"]},
    ),
    "states --at --call-graph": Table(
        drop="off_cpu_at_least",
        at_least="threads off_cpu_ns",
        also={"off_cpu_ns": lambda row: row["off_cpu_at_least"], "threads": lambda row: row["lost"]},
    ),
    "callgraph": Table(
        drop="complete at_least",
        at_least="count self_count time_ns self_time_ns bytes self_bytes",
        of_known="percent self_percent",
        short=incomplete,
        also={"time_ns": lambda row: row["at_least"], "self_time_ns": lambda row: row["at_least"]},
    ),
    "diff": Table(
        drop="complete at_least_before at_least_after",
        at_least="calls_before calls_after errors_before errors_after total_ns_before total_ns_after",
        of_known="calls_diff errors_diff total_ns_diff",
        short=incomplete,
        also={
            "total_ns_before": lambda row: row["at_least_before"],
            "total_ns_after": lambda row: row["at_least_after"],
            "total_ns_diff": lambda row: row["at_least_before"] or row["at_least_after"],
        },
    ),
    "info": Table(),
    "check": Table(),
    "repair": Table(),
    "redact": Table(),
}
TABLES["exec --tree"] = TABLES["exec"]


def rename(report, options, row, lost):
    if "lost" in row and "cause" in row and "family" in row:
        return LOSS.rename(row, lost)
    if row.get("kind") == "io_uring":
        return URING.rename(row, lost)
    if "event" in row:
        return (STACKED_EVENT if "--call-graph" in options else EVENT).rename(row, lost)
    if report == "summary" and "ret" in row:
        report = ""
    if report == "states --at --call-graph":
        out = TABLES[report].rename({**row, "lost": lost}, lost)
        del out["lost"]
        return out
    return TABLES[report].rename(row, lost)


def ask(analyze, options, tape, out):
    if out.exists():
        out.unlink()
    command = [analyze] + [str(tape) if word == "TAPE" else word for word in options] + [str(tape)]
    if options[:1] in (["repair"], ["redact"]):
        command.append(str(out))
    done = subprocess.run(command + ["--format", "json", "--fail-on-loss"], capture_output=True, text=True, errors="surrogateescape")
    return done.returncode, done.stdout.splitlines(), done.stderr


def differences(old, new, report, options, tape, out):
    """Yields what differs, and at the end how many lines were compared."""
    status, before, said = ask(old, options, tape, out)
    other, after, says = ask(new, options, tape, out)
    if status == 2:
        yield f"the command is wrong: {said.strip()}"
    if status != other:
        yield f"status {status}, now {other}: {says.strip()}"
    if said != says:
        yield f"stderr {said!r}, now {says!r}"
    if len(before) != len(after):
        yield f"{len(before)} lines, now {len(after)}"
    for number, (line, now) in enumerate(zip(before, after), 1):
        wanted = rename(report, options, json.loads(line), status == 3)
        got = json.loads(now)
        if report in ("repair", "redact"):
            # of the copy, which each build writes in its own version of the format
            wanted["bytes"] = got["bytes"]
        if wanted == got:
            continue
        for name in sorted(wanted.keys() | got.keys()):
            if wanted.get(name, "absent") != got.get(name, "absent"):
                yield f"line {number}: {name}: {wanted.get(name, 'absent')!r}, now {got.get(name, 'absent')!r}"
    return len(before)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    old, new = sys.argv[1:3]
    here = pathlib.Path(__file__).resolve().parent.parent / "testdata"
    tapes = [pathlib.Path(tape) for tape in sys.argv[3:]]
    tapes = tapes or sorted((here / "tapes").glob("*.tape")) + sorted((here / "fuzz/tapes").glob("*.tape"))
    bad = lines = runs = 0
    with tempfile.TemporaryDirectory() as place:
        out = pathlib.Path(place) / "out.tape"
        for tape in tapes:
            for report, ways in COMMANDS.items():
                for options in ways:
                    runs += 1
                    found = differences(old, new, report, options, tape, out)
                    while True:
                        try:
                            text = next(found)
                        except StopIteration as end:
                            lines += end.value
                            break
                        bad += 1
                        print(f"{tape.name}: {' '.join(options)}: {text}")
    print(f"{len(tapes)} tapes, {runs} pairs of runs, {lines} lines: {bad} differences")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
