"""Compares the answers of Spark and DuckDB to the questions of `questions.sql` with those of `analyze` on the tapes.

    test_fleet.py [TAPE...]

Without tapes: those of testdata, and made-up ones of three machines. Prints 'N passed, N failed' at the end."""

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "sql/tests"))
from tapes import Exported, difference, report, run

BENCH = Path(os.environ.get("BENCH", ROOT / "target/release/bench"))
# two workers of one core each, as far apart as machines: code and rows are sent
MASTER = os.environ.get("SPARK_MASTER", "local-cluster[2,1,1024]")
LIMIT = 100
SLOW = 10_000_000


def expected(tapes):
    """The answers of `analyze`, by question."""
    losses, summary, slow, kills, storms = [], {}, [], [], []
    for tape in tapes:
        info = report(tape, "info")[0]
        host, name = info["hostname"], info["tape_id"]
        for family, count in info["lost"].items():
            losses.append([host, name, family, count])
        for row in report(tape, "--summary", "--summary-mode", "total"):
            sums = summary.setdefault((host, row["syscall"]), [0, 0, 0, 0])
            for at, key in enumerate(["calls", "errors", "total_ns"]):
                sums[at] += row[key]
            sums[3] = max(sums[3], int(row["calls_at_least"]))
        programs = defaultdict(int)
        for row in report(tape, "--duration", "9.999999"):
            if "syscall" in row and row["dur_ns"] is not None and row["dur_ns"] >= SLOW and row["ts_ns"] is not None:
                slow.append([host, name, row["ts_ns"], row["dur_ns"], row["dur_ns_at_least"], row["pid"], row["comm"], row["syscall"]])
        for row in report(tape, "kills"):
            if row["outcome"] and row["outcome"]["exit_signal"] is not None:
                sender, target = row["sender"] or {}, row["target"]
                kills.append([info["start_time"], host, name, row["ts_ns"], sender.get("comm"), row["signal_name"], target["pid"], target["comm"], row["outcome"]["exit_signal"]])
        for row in report(tape, "exec"):
            if row["ret"] == 0:
                programs[row["ts_ns"] // 1_000_000_000 * 1_000_000_000] += 1
        storms += [[host, name, second, count] for second, count in programs.items()]
    calls = defaultdict(lambda: [0, 0, 0])
    for (_, syscall), sums in summary.items():
        calls[syscall] = [calls[syscall][0] + sums[0], calls[syscall][1] + sums[2], max(calls[syscall][2], sums[3])]
    machines = []
    for (host, syscall), (count, _, total, _) in summary.items():
        every, total_of_all, at_least = calls[syscall]
        if every > count:
            others = (total_of_all - total) / (every - count)
            machines.append([host, syscall, count, total / count, others, total - count * others, at_least])
    return {
        "losses": sorted(losses),
        "summary": [[*key, *sums] for key, sums in summary.items()],
        "slow_calls": sorted(slow, key=lambda row: (-row[3], *row[:3], row[5]))[:LIMIT],
        "kills": [row[1:] for row in kills],
        "storms": sorted(storms, key=lambda row: (-row[3], *row[:3]))[:LIMIT],
        "slow_machines": sorted(machines, key=lambda row: (-row[5], *row[:2]))[:LIMIT],
    }


def comparable(question, rows):
    """Rows of an engine as `expected` has them."""
    if question == "losses":
        sums = defaultdict(int)
        for host, tape, family, _, in_ledger, events in rows:
            if not in_ledger:
                sums[host, tape, family] += events
        return sorted([*key, count] for key, count in sums.items())
    if question == "slow_calls":
        return [row[:8] for row in rows]
    return rows


def spark(directory):
    """Spark's rows by question."""
    words = [sys.executable, str(ROOT / "fleet/ask.py"), str(directory)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, env=os.environ | {"SPARK_MASTER": MASTER})
    if done.returncode != 0:
        raise SystemExit(f"fleet: Spark failed:\n{done.stderr[-4000:]}")
    found = defaultdict(list)
    for line in done.stdout.splitlines():
        _, *cells = json.loads(line).values()
        found[json.loads(line)["question"]].append(cells)
    return found


def made_up(directory):
    """Tapes of three machines."""
    tapes = []
    for host in (1, 2, 3):
        tapes.append(Path(directory) / f"host-{host}.tape")
        run(BENCH, "tape", "--calls", "60000", "--processes", "300", "--host", host, "-o", tapes[-1])
    return tapes


def main():
    sys.path.insert(0, str(ROOT / "fleet"))
    from ask import questions

    failed = passed = 0
    with tempfile.TemporaryDirectory() as scratch:
        tapes = [Path(word).resolve() for word in sys.argv[1:]]
        tapes = tapes or sorted((ROOT / "testdata/tapes").glob("*.tape")) + made_up(scratch)
        exported = Exported(tapes, Path(scratch) / "export")
        wanted = expected(tapes)
        asked = questions((ROOT / "fleet/questions.sql").read_text())
        if set(asked) != set(wanted):
            raise SystemExit(f"fleet: questions without a comparison: {set(asked) ^ set(wanted)}")
        page = (ROOT / "docs/guides/many-machines.md").read_text()
        answers = {"Spark": spark(Path(scratch) / "export"), "DuckDB": {}}
        for name, query in asked.items():
            rows, why = exported.rows(query)
            if rows is None:
                raise SystemExit(f"fleet: DuckDB refuses {name}: {why}")
            answers["DuckDB"][name] = rows
            shown = "\n".join(f"    {line}" for line in query.splitlines()) in page
            for who, why in [(who, difference(comparable(name, found[name]), wanted[name], name in ("slow_calls", "storms"))) for who, found in answers.items()] + [
                ("docs/guides/many-machines.md", None if shown else "the question is not shown")
            ]:
                passed, failed = passed + (why is None), failed + (why is not None)
                print(f"{'ok    ' if why is None else 'FAILED'} {name}, {who}: {len(wanted[name])} rows{'' if why is None else f': {why}'}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
