"""analyze export firefox beside the Firefox Profiler's own loader and the reports of analyze.

npm's @firefox-devtools/profiler-cli loads the profile as profiler.firefox.com does, and says which threads, markers and samples there are;
`analyze --format json` what the tape has. The file itself is looked at too: columns of a table are equally long, numbers are in range.
"""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

ANALYZE = os.environ["ANALYZE"]
LOADER = os.environ["PROFILER_CLI"]
# tries to start the loader
ATTEMPTS = 20
# more markers than these tapes have: the loader lists 100 without it
ALL = "100000"


def run(*words, env=None):
    done = subprocess.run(list(map(str, words)), capture_output=True, check=False, timeout=300, env=env)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))}: {done.stderr.decode()}")
    return done.stdout.decode()


def rows(*words):
    return [json.loads(line) for line in run(ANALYZE, *words, "--format", "json").splitlines()]


class Loader:
    """A profile that the loader has open."""

    def __init__(self, path, scratch):
        # the path of its socket is short
        self.env = {**os.environ, "PROFILER_CLI_SESSION_DIR": str(scratch)}
        for left in reversed(range(ATTEMPTS)):
            try:
                self.ask("load", path, form=())
                return
            except SystemExit as error:
                # its daemon has half a second to begin, which on a busy machine is not enough
                late = re.search(r"did not become ready.*pid (\d+)", str(error), re.DOTALL)
                if not late or not left:
                    raise
                try:
                    os.kill(int(late[1]), signal.SIGTERM)
                except ProcessLookupError:
                    pass
                time.sleep(1)

    def ask(self, *words, form=("--json",)):
        answer = run("node", Path(LOADER, "dist", "profiler-cli.js"), *words, *form, env=self.env)
        return json.loads(answer) if form else answer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ask("stop", form=())


def tables(value, path="profile"):
    """The tables of a profile, with their places."""
    if isinstance(value, dict):
        if isinstance(value.get("length"), int):
            yield path, value
        for key, inner in value.items():
            yield from tables(inner, f"{path}.{key}")
    elif isinstance(value, list) and value and isinstance(value[0], dict) and not path.endswith(".data"):
        for at, inner in enumerate(value):
            yield from tables(inner, f"{path}[{at}]")


def faults(profile):
    """What is wrong in the file itself."""
    for path, table in tables(profile):
        for name, column in table.items():
            if isinstance(column, list) and len(column) != table["length"]:
                yield f"{path}.{name}: {len(column)} values, {table['length']} rows"
    shared, meta = profile["shared"], profile["meta"]
    sizes = {name: table["length"] for name, table in shared.items() if name != "stringArray"}
    sizes |= {"strings": len(shared["stringArray"]), "categories": len(meta["categories"]), "nobody": 0}

    def outside(path, column, of):
        return [f"{path}: {number} of {sizes[of]} {of}" for number in column if number is not None and not 0 <= number < sizes[of]]

    stacks, frames, funcs = shared["stackTable"], shared["frameTable"], shared["funcTable"]
    yield from outside("stackTable.frame", stacks["frame"], "frameTable")
    yield from (f"stackTable.prefix: {prefix} of {at}" for at, prefix in enumerate(stacks["prefix"]) if prefix is not None and not 0 <= prefix < at)
    yield from outside("frameTable.func", frames["func"], "funcTable")
    yield from outside("frameTable.category", frames["category"], "categories")
    yield from outside("funcTable.name", funcs["name"], "strings")
    yield from outside("funcTable.resource", [at for at in funcs["resource"] if at != -1], "resourceTable")
    yield from outside("funcTable.source", funcs["source"], "sources")
    yield from outside("resourceTable.name", shared["resourceTable"]["name"], "strings")
    yield from outside("sources.filename", shared["sources"]["filename"], "strings")
    schemas = {schema["name"]: {field["key"] for field in schema["fields"]} for schema in meta["markerSchema"]}
    for at, thread in enumerate(profile["threads"]):
        path, samples, markers = f"threads[{at}]", thread["samples"], thread["markers"]
        yield from outside(f"{path}.samples.stack", samples["stack"], "stackTable")
        if None in samples["stack"]:
            yield f"{path}.samples.stack: a sample without a stack"
        yield from outside(f"{path}.markers.name", markers["name"], "strings")
        yield from outside(f"{path}.markers.category", markers["category"], "categories")
        for times in (samples["time"], markers["startTime"]):
            if times != sorted(times) or (times and times[0] < 0):
                yield f"{path}: times go back"
        for start, end, phase, data in zip(markers["startTime"], markers["endTime"], markers["phase"], markers["data"]):
            if (end is None) != (phase == 0) or (end is not None and end < start):
                yield f"{path}: a marker of phase {phase} from {start} to {end}"
            data = {**data}
            cause = data.pop("cause", None)
            yield from outside(f"{path}.markers.cause", [cause["stack"]] if cause else [], "stackTable")
            if set(data) - {"type"} - schemas[data["type"]]:
                yield f"{path}: {data} beside its schema"
    ids = Counter(thread["tid"] for thread in profile["threads"])
    yield from (f"thread {tid} is there {count} times" for tid, count in ids.items() if count > 1)


def ns(ms):
    """Milliseconds as the file has them, in ns."""
    return round(ms * 1e6)


def expected(tape, of):
    """Self weights by function, of callgraph's `of`; nothing if the tape has no such stacks."""
    sums = Counter()
    column = "self_time_ns" if of == "offcpu" else "self_count"
    asked = subprocess.run([ANALYZE, "callgraph", "--of", of, "--format", "json", tape], capture_output=True, check=False)
    for row in map(json.loads, asked.stdout.splitlines()):
        name = row["sym"] if row["named"] or not row["module"] else f"{row['sym']} ({row['module']})"
        sums[name] += int(row[column] or 0)
    return +sums


def main(tape):
    bad = []

    def same(what, found, want):
        if found != want:
            bad.append(f"{what}: {str(found)[:300]} in the profile, {str(want)[:300]} by analyze")

    with tempfile.TemporaryDirectory(prefix="fx") as scratch:
        path = Path(scratch, "p.json.gz")
        # what is missing is said
        whole = not subprocess.run([ANALYZE, "export", "firefox", tape, "-o", path], capture_output=True, check=True).stderr
        profile = json.loads(gzip.decompress(path.read_bytes()))
        bad += list(faults(profile))
        with Loader(path, scratch) as loader:
            threads = loader.ask("thread", "list")["threads"]
            markers = loader.ask("profile", "markers", "--limit", ALL)
            functions = {
                thread["threadHandle"]: loader.ask("thread", "functions", "--thread", thread["threadHandle"], "--limit", "0", "--include-idle")
                for thread in threads
                if profile["threads"][thread["threadIndex"]]["samples"]["length"]
            }
            meta = loader.ask("profile", "meta", form=())

    # threads: those that the file has, with their names and processes
    same("threads", sorted((t["name"], t["pid"], t["tid"]) for t in threads), sorted((t["name"], t["pid"], t["tid"]) for t in profile["threads"]))
    # looks at all threads record no calls; tapes of before there were families have calls
    has_calls = "syscall" in (rows("info", tape)[0]["families"] or ["syscall"])
    calls = [row for row in rows(tape) if "syscall" in row] if has_calls else []
    made = defaultdict(set)
    for call in calls:
        made[str(call["tid"])].add(call["comm"])
    for thread in profile["threads"]:
        names = made.get(thread["tid"])
        if names and thread["name"] not in names:
            bad.append(f"thread {thread['tid']} is called {thread['name']}, in calls {sorted(names)}")

    # markers: of each call as many as analyze lists and sums up, each with its time
    found = Counter(marker["name"] for marker in markers["markers"] if marker["category"] == "System calls")
    same("calls", found, Counter(call["syscall"] for call in calls))
    summed = Counter()
    for row in rows("-s", "--by", "syscall", tape) if has_calls else []:
        summed[row["syscall"]] += int(row["calls"])
    if whole:
        same("sums of calls", found, summed)
    elif found - summed:
        # calls that were counted and not stored are in sums alone
        bad.append(f"more markers than calls: {found - summed}")
    times = Counter(ns(marker["duration"]) for marker in markers["markers"] if marker["category"] == "System calls" and marker.get("duration") is not None)
    same("times of calls", times, Counter(int(call["dur_ns"]) for call in calls if call.get("dur_ns") is not None))

    # samples: what callgraph adds up, by function
    for of, away in (("cpu", False), ("offcpu", True)):
        sums, total = Counter(), 0
        for thread in threads:
            of_thread = profile["threads"][thread["threadIndex"]]
            if thread["name"].endswith(" (off CPU)") != away or not of_thread["samples"]["length"]:
                continue
            total += sum(map(ns, of_thread["samples"]["weight"])) if away else of_thread["samples"]["length"]
            for function in functions[thread["threadHandle"]]["functions"]:
                name = function["name"].split("!", 1)[-1]
                sums[name] += ns(function["selfSamples"]) if away else round(function["selfSamples"])
        want = expected(tape, of)
        same(f"sum of {of}", total, sum(want.values()))
        same(f"functions of {of}", +sums, want)
        print(f"{Path(tape).name}: {of}: {total} in {len(+sums)} functions")
    print(f"{Path(tape).name}: {len(threads)} threads, {sum(found.values())} calls, {len(markers['markers'])} markers")
    if "systape" not in meta:
        bad.append(f"no name of the program in: {meta}")
    for line in bad:
        print(f"WRONG: {tape}: {line}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(any([main(tape) for tape in sys.argv[1:]]))
