"""analyze export pprof: `go tool pprof` reads the profile, and its sums are those of analyze callgraph."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ANALYZE = os.environ["ANALYZE"]
GO = os.environ.get("GO", "go")
COLUMN = {"count": "self_count", "time": "self_time_ns", "bytes": "self_bytes"}


def run(*words):
    done = subprocess.run(list(map(str, words)), capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}: {done.stderr.decode()}")
    return done.stdout.decode()


def profile(path):
    """Sums by metric and innermost function, as pprof has them."""
    raw = run(GO, "tool", "pprof", "-raw", path)
    samples, locations = re.split(r"^Locations$", raw, flags=re.M)
    names = {int(at): name for at, name in re.findall(r"^ +(\d+): 0x0 M=\d+ (.*?) :0(?: s=0)?(?:\(.*\))?$", locations, flags=re.M)}
    names |= {int(at): name for at, name in re.findall(r"^ +(\d+): 0x0 (?!M=)(.*?) :0(?: s=0)?(?:\(.*\))?$", locations, flags=re.M)}
    head, values = re.split(r"^Samples:$", samples, flags=re.M)
    types = [word.split("/")[0] for word in values.strip().splitlines()[0].replace("[dflt]", "").split()]
    sums = {name: Counter() for name in types}
    for numbers, first in re.findall(r"^ +([\d ]+): (\d+)", values, flags=re.M):
        for name, number in zip(types, numbers.split()):
            sums[name][names[int(first)]] += int(number)
    return sums


def wanted(tape, of):
    rows = [json.loads(line) for line in run(ANALYZE, "callgraph", "--of", of, "--format", "json", tape).splitlines()]
    sums = {name: Counter() for name, column in COLUMN.items() if any(row.get(column) is not None for row in rows)}
    for row in rows:
        name = row["sym"]
        if row["inlined"]:
            name = f"{name} (inlined)"
        elif not row["named"] and row["module"]:
            name = f"{name} ({row['module']})"
        for metric in sums:
            sums[metric][name] += int(row[COLUMN[metric]] or 0)
    return {metric: Counter({name: sum_ for name, sum_ in some.items() if sum_}) for metric, some in sums.items()}


def main(tape, kinds):
    bad = False
    for of in kinds:
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch, "p.pb.gz")
            run(ANALYZE, "export", "pprof", "--of", of, tape, "-o", path)
            found = {metric: Counter({name: value for name, value in some.items() if value}) for metric, some in profile(path).items()}
            top = run(GO, "tool", "pprof", "-top", path)
        want = wanted(tape, of)
        print(f"{of}: {({metric: some.total() for metric, some in found.items()})}; {top.splitlines()[-1].strip()[:80]}")
        for metric in {*found, *want}:
            if (found.get(metric) or Counter()) != (want.get(metric) or Counter()):
                bad = True
                print(f"WRONG: {of}, {metric}: {str(found.get(metric))[:300]} in pprof, {str(want.get(metric))[:300]} by callgraph")
    sys.exit(bad)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
