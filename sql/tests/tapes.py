"""Asks `analyze` and DuckDB about the same tapes."""

import datetime
import json
import math
import os
import re
import subprocess
from decimal import Decimal
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SQL = Path(os.environ.get("ANALYZE_SQL", ROOT / "target/release/analyze-sql"))
ANALYZE = Path(os.environ.get("ANALYZE", ROOT / "target/release/analyze"))


def run(*words, ok=True):
    """A command's output, status and messages; with `ok` a failure is one of the test."""
    done = subprocess.run([str(word) for word in words], capture_output=True, timeout=120)
    if ok and done.returncode != 0:
        raise AssertionError(f"{words}: status {done.returncode}: {done.stderr.decode()}")
    return done.stdout.decode(), done.returncode, done.stderr.decode()


def report(tape, *words):
    """The rows of a report, without those about losses."""
    out, _, _ = run(ANALYZE, *words, "--format", "json", "-i", tape)
    rows = [json.loads(line) for line in out.splitlines()]
    return [row for row in rows if not {"lost", "family", "cause"} <= set(row) and row.get("kind") != "io_uring"]


def ask(tape, query, *words):
    """Rows of `analyze sql` as lists, or the reason why there are none."""
    out, status, said = run(SQL, "sql", "--format", "json", *words, "-i", tape, query, ok=False)
    if status != 0:
        if status not in (1, 2) or "panicked" in said or "internal error" in said:
            raise AssertionError(f"{query}: status {status}: {said}")
        return None, said.strip()
    *rows, end = [json.loads(line, object_pairs_hook=list) for line in out.splitlines()]
    end = dict(end)
    assert end["rows"] == len(rows), f"{query}: {end} for {len(rows)} rows"
    return [[value(cell) for _, cell in row] for row in rows], end


def value(cell):
    """A cell, comparable whichever program it comes from."""
    if isinstance(cell, list):
        return tuple(sorted((key, text) for key, text in cell))
    if isinstance(cell, dict):
        return tuple(sorted(cell.items()))
    if isinstance(cell, Decimal):
        return int(cell) if cell == cell.to_integral_value() else float(cell)
    if isinstance(cell, datetime.datetime):
        return int(round(cell.timestamp() * 1_000_000))
    if isinstance(cell, str):
        if re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z", cell):
            return int(round(datetime.datetime.fromisoformat(cell.replace("Z", "+00:00")).timestamp() * 1_000_000))
        if cell in ("inf", "-inf", "NaN"):
            return float(cell)
    return cell


def key(row):
    """An order of rows in which a rounding of the last digits changes nothing: finer only among those that are equal in six."""
    number = lambda cell: type(cell) in (int, float)
    coarse = [(cell is not None, str(number(cell)), f"{cell:.6g}" if number(cell) else str(cell)) for cell in row]
    return coarse, [f"{cell:.12g}" if number(cell) else "" for cell in row]


def same_cell(a, b):
    if type(a) in (int, float) and type(b) in (int, float) and (type(a) is float or type(b) is float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return a == b or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    # wide numbers are strings in JSON
    if isinstance(a, str) != isinstance(b, str) and a is not None and b is not None:
        return str(a) == str(b)
    return a == b


def difference(ours, theirs, ordered):
    """What is different between two answers; None: nothing."""
    if len(ours) != len(theirs):
        return f"{len(ours)} rows, not {len(theirs)}"
    if not ordered:
        ours, theirs = sorted(ours, key=key), sorted(theirs, key=key)
    for a, b in zip(ours, theirs):
        if len(a) != len(b) or not all(same_cell(x, y) for x, y in zip(a, b)):
            return f"{a} is not {b}"
    return None


class Exported:
    """The export of a tape, in DuckDB."""

    def __init__(self, tapes, directory):
        import duckdb

        _, _, self.said = run(SQL, "export", "parquet", directory, *tapes)
        self.directory = Path(directory)
        self.base = duckdb.connect()
        os.chdir(directory)
        for name in ("duckdb.sql", "views.sql"):
            self.base.execute((self.directory / "_systape" / name).read_text())
        for table in self.directory.iterdir():
            if table.name != "_systape":
                self.base.execute(
                    f"CREATE OR REPLACE VIEW {table.name} AS SELECT host, date, * EXCLUDE (host, date) FROM read_parquet('{table.name}/*/*/*.parquet',"
                    " hive_partitioning = true, hive_types_autocast = false, union_by_name = true)"
                )

    def rows(self, query):
        """Rows of DuckDB, or the reason why there are none."""
        try:
            return [[value(cell) for cell in row] for row in self.base.execute(query).fetchall()], None
        except Exception as error:  # whatever it refuses
            return None, str(error)

    def headings(self, query):
        """Names of the columns of DuckDB's answer."""
        return [column[0] for column in self.base.execute(query).description]

    def columns(self, table):
        """Names of a table's columns."""
        return [row[0] for row in self.base.execute(f"DESCRIBE {table}").fetchall()]
