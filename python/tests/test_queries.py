"""Random queries of a LazyFrame over a tape, and the same ones over the exported Parquet, in both engines of polars."""

import random
from pathlib import Path
from typing import Any, Callable, List, Tuple

import pytest

import systape
from conftest import TAPES, files

pl = pytest.importorskip("polars")

QUERIES = 200
# with calls of several segments, losses, cuts and other kernels
ASKED = ["mix-1.5", "ledger-1.3", "kernel-6.1-mix", "kernel-6.12-sh", "stacks-1.2"]
PATHS = [path for path in TAPES if path.stem in ASKED]
WANTED = ["pid", "tid", "comm", "syscall", "dur_ns", "rel_ns", "ts_ns", "ts", "ret", "errno", "failed", "file", "cpu"]

Step = Callable[[Any], Any]


def predicate(random: random.Random, frame: Any) -> Any:
    """A predicate on values that the table has."""

    def some(column: str) -> Any:
        values = frame[column].drop_nulls()
        return values[random.randrange(len(values))] if len(values) else None

    kind = random.randrange(14)
    if kind == 0:
        return pl.col("pid") == some("pid")
    if kind == 1:
        return pl.col("syscall") == some("syscall")
    if kind == 2:
        return pl.col("syscall").is_in([some("syscall"), some("syscall"), "nosuch"])
    if kind == 3:
        return pl.col("pid").is_in([some("pid"), some("pid"), -1])
    if kind == 4:
        return pl.col("rel_ns") < some("rel_ns")
    if kind == 5:
        low, high = sorted([some("rel_ns"), some("rel_ns")])
        return pl.col("rel_ns").is_between(low, high, closed=random.choice(["both", "left", "right", "none"]))
    if kind == 6:
        return pl.col("dur_ns") >= some("dur_ns")
    if kind == 7:
        return pl.lit(some("dur_ns")) < pl.col("dur_ns")
    if kind == 8:
        return pl.col("file").str.starts_with("/")
    if kind == 9:
        return pl.col("ts") >= some("ts")
    if kind == 10:
        return pl.col("ts_ns") == some("ts_ns")
    if kind == 11:
        return pl.col("failed") & (pl.col("errno") != some("errno"))
    if kind == 12:
        return predicate(random, frame) | predicate(random, frame)
    return ~predicate(random, frame)


def query(random: random.Random, frame: Any) -> Tuple[str, Step, bool]:
    """A query, and whether the order of its rows is part of it."""
    steps: List[Step] = []
    said: List[str] = []

    def add(text: str, step: Step) -> None:
        said.append(text)
        steps.append(step)

    for _ in range(random.randrange(1, 4)):
        kind = random.randrange(7)
        rows = random.randrange(1, 2 * frame.height + 2)
        if kind in (0, 1, 2):
            asked = predicate(random, frame)
            add(f"filter({asked})", lambda lf, asked=asked: lf.filter(asked))
        elif kind == 3:
            add(f"head({rows})", lambda lf, rows=rows: lf.head(rows))
        elif kind == 4:
            add(f"tail({rows})", lambda lf, rows=rows: lf.tail(rows))
        elif kind == 5:
            from_ = random.randrange(frame.height)
            add(f"slice({from_}, {rows})", lambda lf, from_=from_, rows=rows: lf.slice(from_, rows))
        else:
            add("with_columns", lambda lf: lf.with_columns(ms=pl.col("dur_ns") // 1_000_000))
    ordered, last = True, random.randrange(6)
    if last == 0:
        add("select(len)", lambda lf: lf.select(pl.len()))
    elif last == 1:
        key = random.choice(["pid", "syscall", "comm", "errno"])
        sums = [pl.len().alias("n"), pl.col("dur_ns").sum(), pl.col("dur_ns").cast(pl.Int128).max().cast(pl.Int64).alias("max")]
        add(f"group_by({key})", lambda lf, key=key: lf.group_by(key).agg(sums))
        ordered = False
    elif last == 2:
        columns = random.sample(WANTED, random.randrange(1, 5))
        add(f"select({columns})", lambda lf, columns=columns: lf.select(columns))
    elif last == 3:
        right = frame.lazy().group_by("pid").agg(pl.col("comm").n_unique().alias("names"))
        add("join(pid)", lambda lf, right=right: lf.select("pid", "syscall", "rel_ns").join(right, on="pid", how="left"))
        ordered = False
    elif last == 4:
        add("sort(dur_ns)", lambda lf: lf.select("dur_ns", "rel_ns", "tid").sort("dur_ns", "rel_ns", "tid"))

    def run(lf: Any) -> Any:
        for step in steps:
            lf = step(lf)
        return lf

    return ".".join(said), run, ordered


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_lazy_frame_answers_as_parquet_does(path: Path, exported: Callable[[Path], Path]) -> None:
    tape = systape.open(path, loss="ignore", in_process=path.stem != "mix-1.5")
    frame = pl.concat([pl.read_parquet(file, hive_partitioning=False) for file in files(exported(path), "syscalls")])
    scan = tape.scan("syscalls")
    source = random.Random(path.stem)
    for number in range(QUERIES // len(PATHS)):
        text, run, ordered = query(source, frame)
        theirs = run(frame.lazy()).collect()
        for engine in ("in-memory", "streaming"):
            ours = run(scan).collect(engine=engine)
            ours = ours.select([column for column in ours.columns if column not in ("host", "date")])
            if not ordered:
                ours, theirs = ours.sort(ours.columns), theirs.sort(ours.columns)
            assert ours.equals(theirs.select(ours.columns)), (path.stem, number, engine, text)


def test_rows_are_counted_before_the_predicate() -> None:
    path = next(path for path in TAPES if path.stem == "mix-1.5")
    scan = systape.open(path, loss="ignore").scan("syscalls")
    frame = scan.collect()
    for rows in (1, 7, 100, frame.height + 1):
        for pid in frame["pid"].unique():
            for engine in ("in-memory", "streaming"):
                asked = scan.head(rows).filter(pl.col("pid") == pid)
                assert asked.collect(engine=engine).equals(frame.head(rows).filter(pl.col("pid") == pid))
                asked = scan.filter(pl.col("pid") == pid).head(rows)
                assert asked.collect(engine=engine).equals(frame.filter(pl.col("pid") == pid).head(rows))


def test_predicates_become_bounds() -> None:
    from systape._bounds import bounds_of

    columns = {"pid", "syscall", "rel_ns", "ts_ns", "ts", "dur_ns"}

    def of(asked: Any, table: str = "syscalls") -> Any:
        return bounds_of(asked, table, columns)

    pid = pl.col("pid")
    assert of(pid == 3) == {"pid": [3]}
    assert of(pid.is_in([3, 4])) == {"pid": [3, 4]}
    assert of((pid == 3) & (pl.col("syscall") == "read")) == {"pid": [3], "syscall": ["read"]}
    assert of(pl.col("syscall").is_in(["read", "write"])) == {"syscall": ["read", "write"]}
    assert of(pl.col("rel_ns").is_between(5, 9)) == {"rel_ns": (5, 9)}
    assert of((pl.col("rel_ns") >= 5) & (pl.lit(9) > pl.col("rel_ns"))) == {"rel_ns": (5, 9)}
    assert of(pl.col("dur_ns") > 1000) == {"dur_ns": 1000}
    time = pl.lit("2026-11-22T00:00:00").str.to_datetime(time_zone="UTC")
    assert of(pl.col("ts") >= time) == {}, "what has to be computed bounds nothing"
    # what says nothing of which rows can pass
    for asked in [(pid == 3) | (pid == 4), ~(pid == 3), pid != 3, pid + 1 == 4, pl.col("ret") == 3, pid.is_null()]:
        assert of(asked) == {}, asked
    assert of(pid == 3, "samples") == {}, "other tables are not narrowed by that"
