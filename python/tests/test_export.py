"""`analyze export arrow`, read by pyarrow and polars: the same rows as those of the package, which are those of Parquet."""

import io
import json
import subprocess
from pathlib import Path
from typing import Any, List

import pyarrow as pa
import pytest

import systape
from conftest import TAPES
from test_tables import rows
from test_tape import ANALYZE, tape


def export(*words: Any) -> bytes:
    return subprocess.run([ANALYZE, "export", "arrow", *words], check=True, stdout=subprocess.PIPE).stdout


def stream(*words: Any) -> pa.Table:
    return pa.ipc.open_stream(export(*words)).read_all()


@pytest.mark.parametrize("path", TAPES, ids=lambda path: path.stem)
def test_streams_and_files_have_the_rows_of_every_table(path: Path, tmp_path: Path) -> None:
    opened, compared = systape.open(path, in_process=True, loss="ignore"), 0
    for name, table in opened.tables().items():
        if table.absent is not None:
            continue
        try:
            theirs = rows(pa.table(opened.arrow(name)))
        except OSError:
            # a report that has no answer for such a tape
            continue
        piped = stream("--table", name, path)
        assert rows(piped) == theirs, name
        assert piped.schema.metadata[b"systape.table"].decode() == name
        export("--table", name, path, "-o", tmp_path / "t.arrow")
        with pa.ipc.open_file(tmp_path / "t.arrow") as file:
            assert file.schema == piped.schema and rows(file.read_all()) == theirs, name
            last = [file.get_batch(at) for at in reversed(range(file.num_record_batches))]
            assert sum(batch.num_rows for batch in last) == len(theirs)
        compared += 1
    assert compared > 10


def test_polars_reads_both_forms(tmp_path: Path) -> None:
    pl = pytest.importorskip("polars")
    path = tape("mix-1.5")
    frame = pl.read_ipc_stream(io.BytesIO(export(path)))
    assert frame.equals(systape.open(path).scan("syscalls").collect())
    export(path, "-o", tmp_path / "t.arrow")
    assert pl.read_ipc(tmp_path / "t.arrow").equals(frame)
    assert pl.scan_ipc(tmp_path / "t.arrow").select("pid").collect().equals(frame.select("pid"))


def test_filters_are_those_of_the_listing() -> None:
    path = tape("mix-1.5")

    def listed(*words: str) -> List[Any]:
        asked = subprocess.run([ANALYZE, *words, "--format=json", path], check=True, capture_output=True, text=True)
        found = [json.loads(line) for line in asked.stdout.splitlines()]
        return [(row["pid"], row["syscall"], row["ts_ns"]) for row in found if "syscall" in row]

    pid = str(listed()[0][0])
    for words in [["-p", pid], ["-e", "file"], ["--duration", "50us"], ["--failure"], ["--time", "0.1,0.3"], ["-e", "!read", "-p", pid]]:
        found = stream("--columns", "pid,syscall,rel_ns", *words, path)
        assert found.column_names == ["pid", "syscall", "rel_ns"]
        ours = [tuple(row.values()) for row in found.to_pylist()]
        assert sorted(ours) == sorted(listed(*words)) and 0 < len(ours) < len(listed()), words
