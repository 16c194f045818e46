#!/usr/bin/env python3
"""Follows CONTRIBUTING's recipes in a copy of the tree: adds a family of events and a view, builds, records and asks.

A recipe is what a person would type: files of this directory, and lines behind others. Each is counted, and may not need more
files or lines than the guide promises. The family's rows are compared with bpftrace's count in the same run, the view's with the listing.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
COPY = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "recipes"

# Of each recipe: new files (name here, place there), and lines behind the first line of a file that begins with a text.
FAMILY = {
    "files": [("page.bpf.h", "bpf/src/c/page.bpf.h"), ("page.rs", "recorder/src/encode/page.rs")],
    "lines": [
        ("bpf/src/c/events.def.h", "FAMILY(Lock,", 'FAMILY(Page, "page", Named)'),
        ("bpf/src/c/events.def.h", "KIND(LOCK,", 'KIND(PAGE, Page, wire_page, row.ts, Fixed, "The kernel gave pages to a task.")'),
        ("bpf/src/c/events.def.h", "DROP(LOCK,", 'DROP(PAGE, Page, RingFull, Page, "Bulk ring more than three quarters full: pages.")'),
        ("bpf/src/c/events.def.h", "TRACEPOINT(lock_end,", "TRACEPOINT(page_alloc, Page, mm_page_alloc, 0, OneOf, Family)"),
        ("bpf/src/c/systape.bpf.c", '#include "lock.bpf.h"', '#include "page.bpf.h"'),
        ("recorder/src/encode/mod.rs", "mod operations;", "mod page;"),
        ("recorder/src/encode/mod.rs", "            Record::Lock(l) =>", "            Record::Page(p) => page::record(&p, world, rows),"),
        ("format/src/families.rs", "    Lock = 13,", '    Page = 14, "page";'),
        ("format/src/families.rs", "    Recorded { family: Family::Lock, def: &LOCK_CONTENTION },", "    Recorded { family: Family::Page, def: &MM_PAGE_ALLOC },"),
        (
            "format/src/families.rs",
            "];",
            """
crate::tables! {
    /// The kernel gave pages to a task, or in its name.
    pub MM_PAGE_ALLOC = "kmem:mm_page_alloc" {
        ts: Time "when"
        task: Task "whose"
        cpu: Int "where"
        order: Int "2^order pages"
        migratetype: Int "whether they can be moved, as the kernel's enum migratetype"
        stack: Stack "who asked for them"
    }
}""",
        ),
    ],
    "most files": 6,
    "most lines": 64,
}
VIEW = {
    "files": [("extremes.rs", "analyzer/src/reports/extremes.rs")],
    "lines": [
        ("analyzer/src/reports/mod.rs", "pub(crate) mod env;", "pub(crate) mod extremes;"),
        ("analyzer/src/cli/views.rs", "    &reports::samples::VIEW,", "    &reports::extremes::VIEW,"),
        (
            "analyzer/src/frames/list.rs",
            "const REPORTS:",
            """    (Report { name: "extremes", words: &["extremes"], keys: &[], columns: "extremes" }, &[Family::Syscall]),""",
        ),
    ],
    "most files": 4,
    "most lines": 93,
}


def run(*words, **more):
    print("$", *words, flush=True)
    return subprocess.run(list(map(str, words)), check=True, text=True, **more)


def copied():
    """The tree as it is here, also what is not committed; what was built in the copy before stays, and is brought up to date."""
    names = run("git", "ls-files", "-co", "--exclude-standard", cwd=ROOT, stdout=subprocess.PIPE).stdout.splitlines()
    wanted = {name for name in names if (ROOT / name).is_file()}
    COPY.mkdir(parents=True, exist_ok=True)
    for old in (path for path in COPY.rglob("*") if path.is_file() and "target" not in path.relative_to(COPY).parts):
        if str(old.relative_to(COPY)) not in wanted:
            old.unlink()
    for name in wanted:
        there = COPY / name
        if not there.is_file() or there.read_bytes() != (ROOT / name).read_bytes():
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, there)


def follow(what, recipe):
    """Does what the recipe says; fails if it takes more than it may."""
    touched, lines = set(), 0
    for name, place in recipe["files"]:
        text = (HERE / name).read_text()
        (COPY / place).write_text(text)
        touched.add(place)
        lines += sum(1 for line in text.splitlines() if line.strip())
    for place, behind, added in recipe["lines"]:
        path = COPY / place
        old = path.read_text().splitlines()
        at = next((number for number, line in enumerate(old) if line.startswith(behind)), None)
        if at is None:
            sys.exit(f"recipes: {place} has no line that begins with '{behind}'")
        old[at + 1 : at + 1] = added.splitlines()
        path.write_text("\n".join(old) + "\n")
        touched.add(place)
        lines += sum(1 for line in added.splitlines() if line.strip())
    print(f"recipes: {what}: {len(touched)} files, {lines} lines", flush=True)
    if len(touched) > recipe["most files"] or lines > recipe["most lines"]:
        sys.exit(f"recipes: {what} may take {recipe['most files']} files and {recipe['most lines']} lines")


def built():
    run("cargo", "build", "-p", "systape-recorder", "-p", "systape-analyzer", cwd=COPY, env=os.environ | {"CARGO_TARGET_DIR": str(COPY / "target")})
    return COPY / "target" / "debug"


def asked(*words):
    out = subprocess.run(list(map(str, words)), check=True, text=True, stdout=subprocess.PIPE).stdout
    return [json.loads(line) for line in out.splitlines()]


def family(bin):
    """The rows of the new family beside the count of bpftrace in the same run."""
    tape, program = COPY / "page.tape", "systape-pages"
    # it has the name while it touches memory: what a task is called in the midst of exec is another question
    rename = "open('/proc/self/comm', 'w').write('%s')"
    touch = "m = mmap.mmap(-1, 32 << 20); [m.__setitem__(at, 1) for at in range(0, len(m), 4096)]"
    touches = "; ".join(["import mmap", rename % program, touch, rename % "other"])
    count = 'tracepoint:kmem:mm_page_alloc /comm == "systape-pages"/ { @ = count(); }'
    peer = subprocess.Popen(["bpftrace", "-f", "json", "-e", count], text=True, stdout=subprocess.PIPE)
    while "attached" not in (line := peer.stdout.readline()):
        assert line, "bpftrace ended before it was attached"
    time.sleep(0.5)
    run(bin / "record", "--families", "page,process", "-o", tape, "--", "python3", "-c", touches)
    peer.send_signal(2)
    maps = [json.loads(line) for line in peer.stdout if '"map"' in line]
    theirs = maps[0]["data"]["@"]
    rows = asked(bin / "analyze", "-e", "kmem:mm_page_alloc", "--comm", program, "--format", "json", tape)
    ours = sum(1 for row in rows if row.get("event") == "kmem:mm_page_alloc")
    print(f"recipes: pages: {ours} rows, bpftrace counts {theirs}", flush=True)
    assert ours == theirs > 100, (ours, theirs)
    sums = asked(bin / "analyze", "top", "-e", "kmem:mm_page_alloc", "--by", "comm,order", "--format", "json", tape)
    assert sum(row["count"] for row in sums if row["comm"] == program) == ours, sums


def view(bin):
    """The new report in each form, beside the durations of the listing."""
    tapes = [ROOT / "testdata" / "tapes" / name for name in ("mix-1.5.tape", "kernel-6.1-mix.tape")]
    for tape in tapes:
        calls = [row for row in asked(bin / "analyze", "--format", "json", tape) if row.get("dur_ns") is not None]
        groups = {}
        for call in calls:
            groups.setdefault(call["cgroup"], []).append(call["dur_ns"])
        wanted = sorted((ns for all in groups.values() for ns in sorted(all)[-3:]), reverse=True)
        rows = asked(bin / "analyze", "extremes", "--each", 3, "--format", "json", tape)
        assert wanted and [row["dur_ns"] for row in rows] == wanted, (tape, wanted, rows)
        text = run(bin / "analyze", "extremes", "--each", 3, tape, stdout=subprocess.PIPE).stdout
        assert sum(1 for line in text.splitlines() if "." in line) == len(rows), text
    both = run(bin / "analyze", "extremes", "--format", "csv", *tapes, stdout=subprocess.PIPE).stdout.splitlines()
    assert both[0].startswith("host,tape,cgroup,ts_ns,dur_ns,dur_ns_at_least,") and {line.split(",")[1] for line in both[1:]} == set(map(str, tapes)), both[0]
    columns = asked(bin / "analyze", "tables", "extremes", "--format", "json")
    assert [column["column"] for column in columns if column.get("key")] == ["cgroup", "ts_ns", "tid", "syscall"], columns
    assert "extremes" in run(bin / "analyze", "--generate", "views", stdout=subprocess.PIPE).stdout.split()


def main():
    if os.geteuid() != 0:
        print("recipes: SKIPPED: recording needs root", file=sys.stderr)
        return
    copied()
    follow("a family", FAMILY)
    follow("a view", VIEW)
    bin = built()
    view(bin)
    family(bin)
    shutil.rmtree(COPY)


if __name__ == "__main__":
    main()
