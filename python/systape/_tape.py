"""A tape, or several: tables, reports, losses and pictures."""

from __future__ import annotations

import json
import os
import warnings
from html import escape
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Literal, NamedTuple, Optional, Sequence, Tuple, Union

from . import _bounds
from ._ask import ask, end_of, run, words_of
from ._native import Answer, SystapeError
from ._svg import heatmap
from ._table import Column, Stream, Svg, Table

if TYPE_CHECKING:
    import polars

PathLike = Union[str, "os.PathLike[str]"]
Loss = Literal["warn", "raise", "ignore"]

# columns with one value in all rows of a tape: they need no order
_CONSTANT = {"host", "date", "tape"}


class LossWarning(UserWarning):
    """Events are missing that could change an answer. `lost` has a sentence for each loss, `asked` what it is about."""

    def __init__(self, asked: str, lost: Sequence[str]) -> None:
        super().__init__(f"{asked}: " + "; ".join(lost))
        self.asked, self.lost = asked, tuple(lost)


class LossError(SystapeError):
    """The same, of a tape that was opened with `loss="raise"`."""

    def __init__(self, asked: str, lost: Sequence[str]) -> None:
        super().__init__(f"{asked}: " + "; ".join(lost))
        self.asked, self.lost = asked, tuple(lost)


class TableInfo(NamedTuple):
    """A table that tapes have."""

    name: str
    """Name of the table."""
    doc: str
    """What a row is."""
    columns: Tuple[Column, ...]
    """Columns of the table."""
    families: Tuple[str, ...]
    """Kinds of events whose loss can change it."""
    absent: Optional[str]
    """Why it has no rows, if its events were not recorded."""


class Tape:
    """Tapes that are asked together: one, several, or those of directories. `open` makes it."""

    def __init__(self, paths: Sequence[str], in_process: bool, loss: Loss) -> None:
        self._paths, self._in_process, self._loss = list(paths), in_process, loss
        self._about: List[Dict[str, Any]] = []
        answer = ask(self._paths, in_process, ask="tapes")
        while answer.next() is not None:
            pass
        self._about = json.loads(answer.end() or "{}").get("tapes", [])
        self._tables: Dict[str, TableInfo] = {}
        for tape in self._about:
            for table in tape["tables"]:
                self._add(table)
        self._told: Dict[str, Tuple[str, ...]] = {}

    def _add(self, table: Dict[str, Any]) -> None:
        columns = [Column(**column) for column in table["columns"]]
        before = self._tables.get(table["name"])
        if before is not None:
            # a table that a tape defines may have more columns elsewhere
            known = {column.name for column in before.columns}
            columns = [*before.columns, *(column for column in columns if column.name not in known)]
        # only what no tape has is absent
        absent = table["absent"] if before is None or before.absent is not None else None
        self._tables[table["name"]] = TableInfo(table["name"], table["doc"], tuple(columns), tuple(table["families"]), absent)

    # what there is

    @property
    def files(self) -> List[str]:
        """The files of the tapes."""
        return [tape["file"] for tape in self._about]

    @property
    def info(self) -> Dict[str, Any]:
        """What was recorded, of one tape, as `analyze info` has it in JSON."""
        self._single("info")
        rows = self._json(["info", *self.files])
        return rows[0] if rows else {}

    def tables(self) -> Dict[str, TableInfo]:
        """The tables by name."""
        return dict(self._tables)

    def losses(self, table: Optional[str] = None) -> Table:
        """What is missing: one row for each loss and each table that it changes; of `table`, or of all."""
        asked = None if table is None else [self._named(table).name]
        return self._gather(ask(self._paths, self._in_process, ask="losses", tables=asked), "losses")[0]

    # tables

    def scan(self, table: str = "syscalls", *, ordered: bool = True, loss: Optional[Loss] = None) -> "polars.LazyFrame":
        """A table as a LazyFrame of polars (1.33.1 or newer): only the columns that a query needs are read, and only the parts of the
        tapes that can have rows for its predicates on time (`ts`, `ts_ns`, `rel_ns`), `pid`, `syscall` and `dur_ns`.

        Rows of a table with times are in their order. `ordered=False` leaves them in the tape's order, which is the same each time and
        costs less.
        """
        import polars
        from polars.io.plugins import register_io_source

        about = self._named(table)
        self._tell(table, loss)
        schema = {column.name: _polars_type(column.kind) for column in about.columns}

        def batches(
            with_columns: Optional[List[str]],
            predicate: Optional["polars.Expr"],
            n_rows: Optional[int],
            batch_size: Optional[int],
        ) -> "Iterator[polars.DataFrame]":
            columns = with_columns or list(schema)
            # n_rows counts rows before the predicate, so no row may be left out by that before they are counted
            narrowed = predicate is not None and n_rows is None
            bounds = _bounds.bounds_of(predicate, table, schema) if predicate is not None and narrowed else {}
            answer = self._ask_table(table, columns, bounds, ordered, n_rows)
            given = False
            try:
                for rows in _rows_of(answer):
                    frame = polars.DataFrame(rows.views())
                    given = True
                    yield frame if predicate is None else frame.filter(predicate)
            finally:
                answer.close()
            if not given:
                yield polars.DataFrame(schema={name: schema[name] for name in columns})
            self._tell_more(table, end_of(answer)["lost"], loss)

        return register_io_source(batches, schema=schema)

    def arrow(
        self,
        table: str = "syscalls",
        columns: Optional[Sequence[str]] = None,
        *,
        pid: Optional[Sequence[int]] = None,
        syscall: Optional[Sequence[str]] = None,
        rel_ns: Tuple[Optional[int], Optional[int]] = (None, None),
        dur_ns: Optional[int] = None,
        ordered: bool = True,
        loss: Optional[Loss] = None,
    ) -> Stream:
        """A table for programs that know Arrow's C interface: pyarrow, pandas, DuckDB, polars.

        Of calls `pid`, `syscall` and `dur_ns` (least duration) choose rows exactly. `rel_ns` (least and greatest time since the tape's
        start) leaves out parts of the tape; other rows of the parts that are read are passed too.
        """
        about = self._named(table)
        self._tell(table, loss)
        bounds: Dict[str, Any] = {"rel_ns": rel_ns}
        for name, value in (("pid", pid), ("syscall", syscall)):
            if value is not None:
                bounds[name] = list(value)
        if dur_ns is not None:
            bounds["dur_ns"] = dur_ns
        if len(bounds) > 1 and table != "syscalls":
            raise SystapeError(f"pid, syscall and dur_ns choose rows of table syscalls, not of {table}")
        names = [column.name for column in about.columns] if columns is None else list(columns)
        kept = {column.name: column for column in about.columns}
        unknown = [name for name in names if name not in kept]
        if unknown:
            raise SystapeError(f"table {table} has no column {unknown[0]}")

        def begin() -> object:
            answer = self._ask_table(table, names, bounds, ordered, None)
            part = answer.next()
            if part is None or part[0] != "head":
                raise SystapeError(f"table {table} has no head")
            return answer.stream()

        return Stream(table, [kept[name] for name in names], begin)

    def calls(self, by: Sequence[str] = ("syscall",), **options: Any) -> Table:
        """Calls, errors and times by these keys: of stored calls and of those that were only counted. So `calls` is exact where a count
        of the rows of table `syscalls` would be too low, and `calls_at_least` says where it is a bound all the same.

        The keys and options are those of `analyze top`: `pid tid comm uid cgroup syscall file dir peer errno second` and others.
        """
        loss = options.pop("loss", None)
        tables = self.report_tables("top", by=list(by), loss=loss, **options)
        # of a tape of looks the answer is another: estimates of times
        counted = [table for table in tables if any(column.name == "calls" for column in table.columns)]
        without = [f"{tape['file']}: {table['absent']}" for tape in self._about for table in tape["tables"] if _no_calls(table)]
        if not counted:
            raise SystapeError("; ".join(without) or "calls were not recorded")
        counted[0].losses = (*counted[0].losses, *without)
        self._complain("analyze top", without, loss)
        return counted[0]

    # reports

    def report(self, name: str, **options: Any) -> Table:
        """The rows of a report of `analyze`, with its options: `report("top", by="comm", time=(1, 2))`."""
        tables = self.report_tables(name, **options)
        return tables[0]

    def report_tables(self, name: str, **options: Any) -> List[Table]:
        """The same, of a report with rows of more than one kind."""
        loss = options.pop("loss", None)
        words = [*name.split(), *words_of(options)]
        tables = self._gather(ask(self._paths, self._in_process, ask="report", words=words), name)
        self._complain(f"analyze {name}", tables[0].losses, loss)
        return tables

    def why(self, **options: Any) -> Table:
        """What was slow and what broke, the worst first, with what it cost."""
        return self.report("why", **options)

    def top(self, by: Union[str, Sequence[str]] = ("comm", "syscall"), **options: Any) -> Table:
        """Which process, call, file, peer, error … has most calls or most of their time."""
        return self.report("top", by=[by] if isinstance(by, str) else list(by), **options)

    def summary(self, **options: Any) -> Table:
        """Calls, errors and times of each thread and syscall."""
        return self.report("--summary", **options)

    def path(self, **options: Any) -> Table:
        """Where the time of a thread went, across the threads that it waited for: `path(pid=…)`."""
        return self.report("path", **options)

    def kills(self, **options: Any) -> Table:
        """Who sent which signal to whom, and what came of it."""
        return self.report("kills", **options)

    def exec(self, **options: Any) -> Table:
        """Programs that were started, and their ends."""
        return self.report("exec", **options)

    def file_sums(self, **options: Any) -> Table:
        """Opens, reads, writes, bytes and errors of each file (`analyze files`)."""
        return self.report("files", **options)

    def net(self, **options: Any) -> Table:
        """Connections: both ends, who, how long, bytes."""
        return self.report("net", **options)

    def block(self, **options: Any) -> Table:
        """Disk I/Os, and who caused them."""
        return self.report("block", **options)

    def locks(self, **options: Any) -> Table:
        """Locks that threads waited for, who holds them, who woke them."""
        return self.report("locks", **options)

    def offcpu(self, **options: Any) -> Table:
        """Calls and files that threads slept in."""
        return self.report("offcpu", **options)

    def states(self, **options: Any) -> Table:
        """What threads were doing, and for how long."""
        return self.report("states", **options)

    def sched_latency(self, **options: Any) -> Table:
        """Who waited how long for a CPU."""
        return self.report("sched latency", **options)

    def runqlat(self, **options: Any) -> Table:
        """Waits for a CPU as a histogram."""
        return self.report("runqlat", **options)

    def rate(self, **options: Any) -> Table:
        """How many calls began when."""
        return self.report("rate", **options)

    def callgraph(self, **options: Any) -> Table:
        """Stacks added up: who called what."""
        return self.report("callgraph", **options)

    def fds(self, **options: Any) -> Table:
        """Which files and sockets a process held open: `fds(pid=…)`."""
        return self.report("fds", **options)

    def text(self, name: str, **options: Any) -> str:
        """A report as `analyze` prints it."""
        return run([*name.split(), *words_of(options), *self.files])

    def diff(self, before: "Tape", **options: Any) -> List[Dict[str, Any]]:
        """What became more and less since the tape `before`, as rows of JSON (`analyze diff BEFORE AFTER`)."""
        self._single("diff")
        before._single("diff")
        return self._json(["diff", *before.files, *self.files, *words_of(options)])

    # pictures

    def flame(self, **options: Any) -> Svg:
        """A flame graph of the tape's stacks: `flame(of="offcpu")`. The tape needs stacks (`record -g`)."""
        self._single("flame")
        return Svg(run(["callgraph", "--svg=-", *words_of(options), *self.files]))

    def heatmap(self, **options: Any) -> Svg:
        """How long calls took, in each second: `heatmap(event="fsync")`. Calls that were only counted are in none."""
        asked = self.report("top", by=["second"], hist=True, **options)
        title = "How long calls took, by second" + (f": {options['event']}" if "event" in options else "")
        return heatmap(asked.rows(), title, [*asked.losses, *asked.notes])

    # what all of them need

    def _single(self, what: str) -> None:
        if len(self._about) != 1:
            raise SystapeError(f"{what} is about one tape, and these are {len(self._about)}")

    def _json(self, words: Sequence[str]) -> List[Dict[str, Any]]:
        return [json.loads(line) for line in run([*words, "--format=json"]).splitlines()]

    def _named(self, table: str) -> TableInfo:
        if table not in self._tables:
            raise SystapeError(f"there is no table {table}: tables() has them")
        return self._tables[table]

    def _ask_table(
        self, table: str, columns: Sequence[str], bounds: Dict[str, Any], ordered: bool, most: Optional[int]
    ) -> Answer:
        ordered = ordered and not _CONSTANT.issuperset(columns)
        return ask(
            self._paths,
            self._in_process,
            ask="table",
            table=table,
            columns=list(columns),
            bounds=bounds,
            ordered=ordered,
            most=most,
        )

    def _gather(self, answer: Answer, name: str) -> List[Table]:
        heads: List[Tuple[Dict[str, Any], List[Any]]] = []
        now: List[Any] = []
        while True:
            part = answer.next()
            if part is None:
                break
            kind, value = part
            if kind == "head":
                head = json.loads(value)
                # tapes between which another had rows of another kind
                now = next((parts for before, parts in heads if before == head), [])
                if not any(parts is now for _, parts in heads):
                    heads.append((head, now))
            elif kind == "rows":
                now.append(value)
        end = end_of(answer)
        tables = [
            Table(head["table"], head["doc"], [Column(**column) for column in head["columns"]], parts, end["lost"], end["notes"])
            for head, parts in heads
        ]
        return tables or [Table(name, "", [], [], end["lost"], end["notes"])]

    def _complain(self, asked: str, lost: Sequence[str], loss: Optional[Loss]) -> None:
        what = self._loss if loss is None else loss
        if not lost or what == "ignore":
            return
        if what == "raise":
            raise LossError(asked, lost)
        warnings.warn(LossWarning(asked, lost), stacklevel=4)

    def _tell(self, table: str, loss: Optional[Loss]) -> None:
        """Says what is lost of a table."""
        if (self._loss if loss is None else loss) == "ignore":
            return
        if table not in self._told:
            several = len(self._about) > 1
            tables = ((tape["file"], info) for tape in self._about for info in tape["tables"] if info["name"] == table)
            missing = self._tables[table].absent is None
            lost = [(file, line) for file, info in tables for line in _lost_of(info, missing)]
            self._told[table] = tuple(f"{file}: {line}" if several else line for file, line in lost)
        self._complain(f"table {table}", self._told[table], loss)

    def _tell_more(self, table: str, lost: Sequence[str], loss: Optional[Loss]) -> None:
        """Says what was found to be lost while a table was read."""
        known = self._told.get(table, ())
        new = [line for line in lost if line not in known]
        self._complain(f"table {table}", new, loss)

    def __repr__(self) -> str:
        files = self.files
        named = files[0] if len(files) == 1 else f"{len(files)} tapes"
        return f"<systape.Tape {named}: {len(self._tables)} tables>"

    def _repr_html_(self) -> str:
        rows: List[str] = []
        for tape in self._about:
            cells = (tape["file"], tape["host"] or "?", tape["date"] or "?", str(tape["segments"]))
            rows.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
        head = "<tr><th>file</th><th>host</th><th>date</th><th>segments</th></tr>"
        there = ", ".join(escape(name) for name, table in self._tables.items() if table.absent is None)
        losses = sorted({row["about"] for row in self.losses().rows() if not row["complete"]})
        lost = "".join(f"<li>{escape(line)}</li>" for line in losses)
        said = f"<div>Events are missing:</div><ul>{lost}</ul>" if lost else "<div>Nothing was lost.</div>"
        return f"<table>{head}{''.join(rows)}</table>{said}<div>Tables: {there}</div>"


def _no_calls(table: Dict[str, Any]) -> bool:
    return table["name"] == "syscalls" and table["absent"] is not None


def _lost_of(table: Dict[str, Any], missing: bool) -> List[str]:
    """What a tape has not of a table; `missing`: that there are no rows is a loss, because other tapes have some."""
    return [table["absent"]] if missing and table["absent"] is not None else table["lost"]


def _rows_of(answer: Answer) -> Iterator[Any]:
    while True:
        part = answer.next()
        if part is None:
            return
        if part[0] == "rows":
            yield part[1]


def _polars_type(kind: str) -> Any:
    import polars

    pair = polars.List(polars.Struct({"key": polars.String, "value": polars.String}))
    # since polars 2
    of_map: Any = getattr(polars, "Map", None)
    types: Dict[str, Any] = {
        "int": polars.Int64,
        "wide": polars.Decimal(20, 0),
        "real": polars.Float64,
        "flag": polars.Boolean,
        "text": polars.String,
        "instant": polars.Datetime("us", "UTC"),
        "map": pair if of_map is None else of_map(polars.String, polars.String),
    }
    return types[kind]


def open(paths: Union[PathLike, Sequence[PathLike]], *, in_process: bool = False, loss: Loss = "warn") -> Tape:
    """Opens a tape, several, or those of directories.

    `in_process=True` reads them in this process instead of one without rights: only for tapes that you trust. `loss` says what becomes of
    an answer that lost events could change: a `LossWarning`, a `LossError`, or nothing.
    """
    single = isinstance(paths, (str, os.PathLike))
    every: List[Any] = [paths] if single else list(paths)  # type: ignore[arg-type]
    if loss not in ("warn", "raise", "ignore"):
        raise ValueError(f"loss is 'warn', 'raise' or 'ignore', not {loss!r}")
    return Tape([os.path.abspath(os.fspath(path)) for path in every], in_process, loss)


def scan(paths: Union[PathLike, Sequence[PathLike]], table: str = "syscalls", **options: Any) -> "polars.LazyFrame":
    """A table of tapes as a LazyFrame: `open(paths).scan(table)`."""
    return open(paths, **options).scan(table)
