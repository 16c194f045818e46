"""Compares `analyze sql`, `analyze export` and the reports, with DuckDB on the exported tapes as the judge.

    against_duckdb.py [--long SECONDS] [TAPE...]

Prints a line a check, and 'N passed, N failed' at the end."""

import csv
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import corpus
from tapes import ANALYZE, ROOT, SQL, Exported, ask, difference, report, run, value

passed, failed = 0, []
# tables and the reports that make them
REPORTS = [
    ("summary", ["--summary"]), ("kills", ["kills"]), ("exec", ["exec"]), ("files", ["files", "--top", "4294967295"]), ("opens", ["files", "--opens"]), ("block", ["block"]),
    ("net", ["net"]), ("net_udp", ["net", "--udp"]), ("peers", ["net", "--by", "peer"]),
    ("offcpu", ["offcpu", "--by", "pid,comm,state,syscall", "--top", "4294967295"]), ("states", ["states", "--by", "pid,state,syscall", "--top", "4294967295"]),
    ("sched_latency", ["sched", "latency", "--by", "task"]), ("sched_timehist", ["sched", "timehist"]), ("runqlat", ["runqlat"]), ("locks", ["locks"]), ("why", ["why"]), ("info", ["info"]),
]


def check(what, why):
    """Counts a check; `why` it failed, or None."""
    global passed
    if why is None:
        passed += 1
    else:
        failed.append(what)
        print(f"FAILED {what}: {why}", flush=True)


def flat(row):
    """A row of a report by the names of columns."""
    found = {}
    for name, cell in row.items():
        if isinstance(cell, dict) and not {"text", "hex"} == set(cell):
            found.update({f"{name}_{part}": inner for part, inner in cell.items()})
        found[name] = cell
    return found


def plain(cell):
    """A cell of a report as a table has it."""
    if isinstance(cell, dict) and {"text", "hex"} == set(cell):
        return cell["text"]
    if isinstance(cell, (dict, list)):
        return json.dumps(cell, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
    return cell


def normal(text):
    """JSON in a column in one spelling."""
    if not isinstance(text, str) or (text[:1], text[-1:]) not in (("[", "]"), ("{", "}")):
        return text
    try:
        return json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False, sort_keys=True)
    except ValueError:
        return text


def argument(cell):
    """An argument of the listing's JSON as the map has it."""
    if cell is None or isinstance(cell, str):
        return cell
    if isinstance(cell, dict) and "fd" in cell:
        return cell.get("text") or str(cell["fd"])
    if isinstance(cell, dict) and "text" in cell and "missing" not in cell:
        return cell["text"]
    return json.dumps(cell, separators=(",", ":"), ensure_ascii=False, sort_keys=True)


def listing(tape, exported):
    """Counts, sums and arguments of calls are the listing's."""
    rows = [row for row in report(tape) if "syscall" in row]
    ours, _ = exported.rows("SELECT rel_ns, dur_ns, dur_ns_at_least, pid, tid, utid, comm, syscall, ret, errno, incomplete, args FROM syscalls WHERE rel_ns IS NOT NULL")
    theirs = []
    for row in rows:
        ret = row["ret"]
        ret = int(ret, 0) if isinstance(ret, str) else ret
        # an address has 64 bits without a sign in hex
        ret = ret - (1 << 64) if ret is not None and ret >= 1 << 63 else ret
        args = None if row["args"] is None else value({name: argument(cell) for name, cell in row["args"].items()})
        theirs.append([row["ts_ns"], row["dur_ns"], row["dur_ns_at_least"], row["pid"], row["tid"], row["utid"], plain(row["comm"]), row["syscall"],
                       ret, row["errno"], row["incomplete"], args])
    check(f"{tape.name}: syscalls are the listing", difference(ours, theirs, False))
    times, _ = exported.rows("SELECT rel_ns FROM syscalls WHERE rel_ns IS NOT NULL")
    check(f"{tape.name}: rows of a file are in order of time", None if times == sorted(times) else "they are not")


def reports(tape, exported):
    """Tables of reports are their rows to the digit."""
    for table, words in REPORTS:
        out, status, said = run(ANALYZE, *words, "--format", "json", "-i", tape, ok=False)
        columns = exported.columns(table)
        ours, why = exported.rows(f'SELECT * FROM {table}')
        if status != 0:
            check(f"{tape.name}: {table} is empty where the report fails", None if ours == [] else f"{len(ours or [])} rows: {said}")
            continue
        theirs = [flat(row) for row in report(tape, *words)]
        # times of tables are since 1970 and since the start, of reports since the start
        def pick(row):
            picked = []
            for name in columns:
                of = {"rel_ns": "ts_ns"}.get(name, name.replace("_rel_ns", "_ns"))
                picked.append(value(plain(row.get(of))))
            return picked
        known = [at for at, name in enumerate(columns) if name not in ("tape", "host", "date", "raw", "ts", "ts_ns", "ts_uncertain_ns") and not (f"{name[:-3]}_rel_ns" in columns)]
        def kept(rows):
            return [[normal(row[at]) for at in known] for row in rows]
        check(f"{tape.name}: {table} is the report", why or difference(kept(ours), kept([pick(row) for row in theirs]), False))


def views(tape, exported):
    """Views over stored and counted calls are the summary to the digit."""
    for view, words, keys in [
        ("calls_by_process", ["--summary", "--summary-mode", "process"], ["pid", "upid", "abi", "syscall"]),
        ("calls_by_syscall", ["--summary", "--summary-mode", "total"], ["abi", "syscall"]),
    ]:
        columns = keys + ["calls", "errors", "total_ns", "min_ns", "max_ns", "incomplete_calls", "ledger_calls"]
        ours, why = exported.rows(f"SELECT {', '.join(columns)}, at_least FROM {view}")
        def unknown(row, name):
            return None if name == "upid" and row[name] == 0 else row[name]
        # an open call makes a sum a bound in its row; what is lost in the tape does in all
        theirs = [[unknown(row, name) for name in columns] + [int(row["calls_at_least"])] for row in report(tape, *words)]
        check(f"{tape.name}: {view} is the summary", why or difference(ours, theirs, False))
    ours, why = exported.rows("SELECT abi, syscall, coalesce(errno, '?'), errors FROM errors_by_syscall")
    theirs = [[row["abi"], row["syscall"], row["errno"] or "?", row["errors"]] for row in report(tape, "top", "--by", "errno,syscall", "--top", "4294967295") if row["errors"]]
    check(f"{tape.name}: errors_by_syscall is top", why or difference(ours, theirs, False))


def queries(tape, exported, asked, words=()):
    """Equal to DuckDB, or refused."""
    equal = refused = 0
    for query in asked:
        ours, said = ask(tape, query, *words)
        if ours is None:
            refused += 1
            check(query, None)
            continue
        theirs, why = exported.rows(query)
        ordered = " ORDER BY " in query.rsplit(")", 1)[-1]
        wrong = f"DuckDB refuses it: {why}" if theirs is None else difference(ours, theirs, ordered)
        check(f"{tape.name}: {query}", wrong)
        equal += wrong is None
    print(f"{tape.name}: {len(asked)} queries: {equal} equal, {refused} refused, {len(asked) - equal - refused} different", flush=True)
    return equal


def tables(tape, exported, names):
    """Whole tables by SQL are the exported ones, and so with predicates that leave out nothing."""
    # of damage an export knows what it met in all tables, a query what it met itself
    for table in (name for name in names if name != "gaps" or not is_damaged(tape)):
        columns = ", ".join(f'"{name}"' for name in exported.columns(table))
        query = f"SELECT {columns} FROM {table}"
        ours, why = ask(tape, query)
        theirs, _ = exported.rows(query)
        if ours is None:
            check(f"{tape.name}: {table} is empty where it is refused", None if theirs == [] else f"{why}: {len(theirs)} rows")
            continue
        check(f"{tape.name}: {table} by SQL", difference(ours, theirs, False))
    for where in corpus.CONDITIONS + ["rel_ns > 200000000", "pid = 127 AND syscall = 'read'", "rel_ns < 0"]:
        query = f"SELECT rel_ns, utid, syscall, pid FROM syscalls WHERE {where}"
        (left, _), (every, _) = ask(tape, query), ask(tape, query, "--read-all")
        check(f"{tape.name}: leaving out segments by {where}", difference(left, every, False))


def headings(tape, exported):
    """Columns that a query does not name have DuckDB's names."""
    for query in corpus.HEADINGS:
        out, status, said = run(SQL, "sql", "--format", "csv", "-i", tape, query, ok=False)
        theirs = exported.headings(query)
        ours = next(csv.reader(out.splitlines()), None)
        check(f"headings of {query}", None if status == 0 and ours == theirs else f"{ours or said}, not {theirs}")


def is_damaged(tape):
    """Whether it is a copy that this program damaged."""
    return tape.name.startswith("damaged-")


def damaged(tape, directory):
    """A copy of `tape` with some bytes of its middle overwritten."""
    bytes_ = bytearray(tape.read_bytes())
    pick = random.Random(7)
    for _ in range(6):
        at = pick.randrange(len(bytes_) // 3, len(bytes_) - len(bytes_) // 4)
        bytes_[at:at + 8] = bytes(8)
    copy = directory / f"damaged-{tape.name}"
    copy.write_bytes(bytes_)
    return copy


def messages(tape):
    """Losses are told, hostile queries are refused in one line and in time, and the sandbox holds."""
    lossy = ROOT / "testdata/tapes/ledger-1.3.tape"
    _, status, said = run(SQL, "sql", "--fail-on-loss", "SELECT count(*) FROM syscalls", lossy, ok=False)
    check("--fail-on-loss", None if status == 3 and "LOST 47 syscall events" in said else f"status {status}: {said}")
    _, status, said = run(SQL, "sql", "--fail-on-loss", "SELECT sum(calls) FROM summary", lossy, ok=False)
    check("what is in the ledger is no loss of sums", None if status == 3 and "COUNTED ONLY" not in said else f"status {status}: {said}")
    hostile = [
        "SELECT " + "(" * 5000 + "1" + ")" * 5000, "SELECT " + "+".join("1" * 1 for _ in range(30000)), "SELECT " + "NOT " * 20000 + "true",
        "SELECT '" + "x" * 100_000 + "'", "SELECT CASE " + "WHEN true THEN 1 " * 3000 + "END", "SELECT " + ",".join("count(*)" for _ in range(5000)) + " FROM syscalls",
        "\0", "SELECT \"", "'", "SELECT * FROM " + "(SELECT * FROM " * 500 + "syscalls" + ")" * 500, "SELECT 'a' LIKE '" + "%a" * 5000 + "'",
        "SELECT count(*) FROM syscalls a, syscalls b, syscalls c, syscalls d", "SELECT count(*) FROM syscalls a JOIN syscalls b ON a.dur_ns < b.dur_ns, syscalls c, syscalls d",
        "SELECT a.comm, count(*) FROM syscalls a JOIN syscalls b ON a.host = b.host JOIN syscalls c ON a.host = c.host JOIN syscalls d ON a.host = d.host GROUP BY 1",
        "SELECT count(*) FROM syscalls WHERE comm LIKE '" + "%a_" * 300 + "'", "SELECT " + "replace(" * 60 + "comm" + ", 'a', 'aaaaaaaaaa')" * 60 + " FROM syscalls",
        "WITH t0 AS (SELECT comm AS x FROM syscalls)" + "".join(f", t{n} AS (SELECT x || x AS x FROM t{n - 1})" for n in range(1, 40)) + " SELECT max(length(x)) FROM t39",
        "WITH t0 AS (SELECT comm AS x FROM syscalls)" + "".join(f", t{n} AS (SELECT concat(x, x) AS x FROM t{n - 1})" for n in range(1, 40)) + " SELECT max(length(x)) FROM t39",
        "SELECT 1e400", "SELECT 99999999999999999999", "SELECT count(*) FROM syscalls WHERE " + " OR ".join(f"pid = {n}" for n in range(2000)),
    ]
    longest = 0
    for query in hostile:
        # more than an argument of a program may have
        if "\0" in query or len(query) > 120_000:
            continue
        begun = time.monotonic()
        ask(tape, query)
        took = time.monotonic() - begun
        check(f"hostile {query[:40]!r}", None if took < 60 else f"it took {took:.0f} s")
        longest = max(longest, took)
    print(f"hostile queries: at most {longest:.1f} s", flush=True)
    _, said = ask(tape, "SELECT count(*) FROM syscalls a, syscalls b, syscalls c, syscalls d")
    check("a join of all with all is refused", None if "pairs of rows" in str(said) else said)
    out, _, _ = run(SQL, "sql", "--explain", "-i", tape, "SELECT count(*) FROM syscalls WHERE rel_ns > 100000000000000")
    check("--explain: no segment is read", None if "segments  0 of" in out else out)
    _, status, said = run(ANALYZE, "sql", "SELECT 1", tape, ok=False)
    check("analyze starts it", None if status == 0 or not (ANALYZE.parent / "analyze-sql").exists() else said)


def again(tapes, directory):
    """What is exported twice is there once; JSON and CSV have as many rows."""
    count = lambda: sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())
    before = count()
    run(SQL, "export", "parquet", directory, *tapes)
    check("exported twice", None if count() == before else f"{len(count())} files, not {len(before)}")
    for form in ("json", "csv"):
        to = directory.parent / form
        run(SQL, "export", form, to, tapes[0])
        rows = [path.read_text().count("\n") for path in (to / "syscalls").rglob(f"*.{form}")]
        expected = len([row for row in report(tapes[0]) if "syscall" in row]) + (form == "csv")
        check(f"rows as {form}", None if rows == [expected] else f"{rows}, not {expected}")


CONFINED = ["CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"]


def threads(pid):
    """What the kernel says of each thread of a process."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/status"):
        try:
            found.append(task.read_text().splitlines())
        except OSError:
            pass
    return found


def confined(tape, scratch):
    """Every thread is confined as soon as there is a second one: the first confines itself before it makes any."""
    join = "SELECT a.ts FROM syscalls a JOIN syscalls b ON a.date = b.date AND a.tid <> b.tid ORDER BY a.dur_ns * b.dur_ns DESC LIMIT 3"
    for words in (["sql", join, tape], ["export", "parquet", scratch / "confined", tape], ["export", "csv", scratch / "confined", tape]):
        most, wrong = 0, None
        with subprocess.Popen([str(SQL), *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
            while child.poll() is None:
                found = threads(child.pid)
                if len(found) > 1:
                    most = max(most, len(found))
                    missing = [line for line in CONFINED for thread in found if line not in thread]
                    wrong = wrong or (missing and f"{missing[0]} is not of all of {len(found)} threads")
        check(f"confined: {words[:2]}", wrong or (None if most > 1 else "no second thread was seen"))


def permissions(tape, scratch):
    """A file of rows may be read by whom the tape may be."""
    for mode in (0o600, 0o644):
        copy, to = scratch / f"{mode:o}.tape", scratch / f"modes-{mode:o}"
        shutil.copy(tape, copy)
        copy.chmod(mode)
        for form in ("parquet", "json", "csv"):
            run(SQL, "export", form, to, copy)
        wrong = [path for path in to.rglob("*.*") if path.is_file() and "_systape" not in path.parts and path.stat().st_mode & 0o777 != mode]
        check(f"permissions of {mode:o}", wrong[0] if wrong else None)


def main():
    words = sys.argv[1:]
    seconds = 0
    if words[:1] == ["--long"]:
        seconds, words = int(words[1]), words[2:]
    given = [Path(word).resolve() for word in words]
    tapes = given or sorted((ROOT / "testdata/tapes").glob("*.tape"))
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        tapes += [damaged(tape, scratch) for tape in tapes[:3]]
        everything = scratch / "all"
        # a damaged copy has the id of its tape, so it takes its place
        ids = {report(tape, "info")[0]["tape_id"] for tape in tapes}
        total, why = Exported(tapes, everything).rows("SELECT count(DISTINCT tape) FROM info")
        check("tapes of several hosts together", why or (None if total == [[len(ids)]] else f"{total}, not {len(ids)}"))
        for tape in tapes:
            place = scratch / f"export-{tape.name}"
            alone = Exported([tape], place)
            listing(tape, alone)
            reports(tape, alone)
            views(tape, alone)
            names = sorted(path.name for path in place.iterdir() if path.name != "_systape")
            tables(tape, alone, names)
            if "mix-1.5" in tape.name or "ledger" in tape.name or given:
                queries(tape, alone, corpus.corpus())
            else:
                # rows whose times are unreadable have no order for a window
                queries(tape, alone, [query for query in corpus.FIXED[33:150:3] if not (is_damaged(tape) and " OVER " in query)])
            queries(tape, alone, [query for query in corpus.grammar(tape.name, 30) if not (is_damaged(tape) and " OVER " in query)])
            shutil.rmtree(place)
        one = scratch / "one"
        Exported(tapes[:2], one)
        again(tapes[:2], one)
        headings(tapes[0], Exported(tapes[:1], scratch / "headings"))
        messages(tapes[0])
        confined(next((tape for tape in tapes if "mix" in tape.name), tapes[0]), scratch)
        permissions(tapes[0], scratch)
        until, seed = time.monotonic() + seconds, 0
        while time.monotonic() < until:
            alone = Exported([tapes[0]], scratch / "long")
            queries(tapes[0], alone, corpus.grammar(seed, 200))
            seed += 1
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
