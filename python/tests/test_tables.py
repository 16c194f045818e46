"""Every table of every tape, row by row, beside what `analyze export parquet` writes: by pyarrow, polars, pandas and DuckDB."""

import math
from pathlib import Path
from typing import Any, Callable, List

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import systape
from conftest import TAPES, files

# directories of an export, not columns of its files
PARTITIONS = ["host", "date"]


def whole(place: Path, table: str) -> pa.Table:
    return pa.concat_tables([pq.ParquetFile(file).read() for file in files(place, table)])


def rows(table: pa.Table) -> List[Any]:
    def plain(value: Any) -> Any:
        return "nan" if isinstance(value, float) and math.isnan(value) else value

    return [{name: plain(value) for name, value in row.items()} for row in table.to_pylist()]


@pytest.mark.parametrize("path", TAPES, ids=lambda path: path.stem)
@pytest.mark.parametrize("in_process", [False, True], ids=["child", "in-process"])
def test_rows_are_those_of_parquet(path: Path, in_process: bool, exported: Callable[[Path], Path]) -> None:
    tape = systape.open(path, in_process=in_process, loss="ignore")
    place, compared = exported(path), 0
    assert sorted(tape.tables()) == sorted(entry.name for entry in place.iterdir() if entry.name != "_systape")
    for name, table in tape.tables().items():
        theirs = whole(place, name)
        if table.absent is not None:
            assert theirs.num_rows == 0, name
            with pytest.raises(OSError):
                pa.table(tape.arrow(name))
            continue
        try:
            ours = pa.table(tape.arrow(name))
        except OSError as error:
            # a report that has no answer for such a tape
            assert theirs.num_rows == 0, (name, error)
            continue
        assert ours.column_names[:3] == ["host", "date", "tape"]
        ours = ours.drop_columns(PARTITIONS)
        assert ours.column_names == theirs.column_names, name
        assert [field.type for field in ours.schema] == [field.type for field in theirs.schema], name
        assert rows(ours) == rows(theirs), name
        compared += 1
    assert compared > 10


@pytest.mark.parametrize("path", TAPES, ids=lambda path: path.stem)
def test_polars_has_the_same_rows(path: Path, exported: Callable[[Path], Path]) -> None:
    pl = pytest.importorskip("polars")
    tape, place = systape.open(path, loss="ignore"), exported(path)
    for name, table in tape.tables().items():
        theirs = pl.concat([pl.read_parquet(file, hive_partitioning=False) for file in files(place, name)])
        if table.absent is not None or theirs.height == 0:
            continue
        ours = tape.scan(name).drop(PARTITIONS)
        assert ours.collect_schema() == theirs.schema, name
        for engine in ("in-memory", "streaming"):
            assert ours.collect(engine=engine).equals(theirs), (name, engine)


@pytest.mark.parametrize("path", TAPES[::4], ids=lambda path: path.stem)
def test_duckdb_and_pandas_have_the_same_rows(path: Path, exported: Callable[[Path], Path]) -> None:
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pandas")
    tape, place = systape.open(path, loss="ignore"), exported(path)
    for name, table in tape.tables().items():
        theirs = whole(place, name)
        if table.absent is not None or theirs.num_rows == 0:
            continue
        stream = tape.arrow(name)  # noqa: F841 (DuckDB finds it by its name)
        asked = duckdb.sql("SELECT * EXCLUDE (host, date) FROM stream").to_arrow_table()
        assert rows(asked) == rows(theirs), name
        frame = tape.arrow(name).df()
        assert len(frame) == theirs.num_rows and list(frame.columns)[2:] == theirs.column_names, name
        for column in ("ts_ns", "dur_ns", "pid"):
            if column in theirs.column_names:
                assert pa.array(frame[column], pa.int64(), from_pandas=True).to_pylist() == theirs[column].to_pylist()


def test_python_alone_has_the_same_values(exported: Callable[[Path], Path]) -> None:
    path = next(path for path in TAPES if path.stem == "mix-1.5")
    tape = systape.open(path, loss="ignore")
    summary = tape.summary()
    theirs = pa.table(summary).to_pydict()
    ours = summary.to_dict()
    assert list(ours) == list(theirs) and len(summary) > 10
    for name, values in ours.items():
        assert [float(value) if isinstance(value, float) else value for value in values] == theirs[name], name


def test_several_tapes_are_one_table() -> None:
    pl = pytest.importorskip("polars")
    some = [path for path in TAPES if path.stem in ("mix-1.1", "mix-1.5", "kernel-6.1-mix")]
    tapes = systape.open(some, loss="ignore")
    both = tapes.scan("syscalls").group_by("tape", "host").len().collect()
    assert both.height == 3
    single = [systape.open(path, loss="ignore").scan("syscalls").select(pl.len()).collect().item() for path in some]
    assert sorted(both["len"]) == sorted(single)
    calls = tapes.calls(by=["syscall"]).pl()
    assert calls["tape"].n_unique() == 3
    directory = systape.open(some[0].parent, loss="ignore")
    assert len(directory.files) == len(TAPES)
