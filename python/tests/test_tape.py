"""Losses, reports, pictures, options, and tapes that are damaged or none."""

import json
import os
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import systape
from conftest import ROOT, TAPES

ANALYZE = os.environ.get("ANALYZE", str(ROOT / "target" / "release" / "analyze"))


def tape(stem: str) -> Path:
    return next(path for path in TAPES if path.stem == stem)


def lossy() -> Path:
    return tape("ledger-1.3")


def test_a_loss_is_warned_of_raised_or_ignored() -> None:
    opened = systape.open(lossy())
    with pytest.warns(systape.LossWarning, match="table syscalls") as warned:
        opened.arrow("syscalls")
    assert warned[0].message.lost and warned[0].message.asked == "table syscalls"  # type: ignore[union-attr]
    with pytest.raises(systape.LossError, match="table syscalls"):
        opened.arrow("syscalls", loss="raise")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opened.arrow("syscalls", loss="ignore")
        # what was counted is in the sums, so nothing is missing from them
        systape.open(tape("mix-1.5")).arrow("syscalls")
    with pytest.raises(ValueError):
        systape.open(lossy(), loss="perhaps")  # type: ignore[arg-type]
    losses = opened.losses("syscalls")
    assert len(losses) > 0 and set(losses.to_dict()["table"]) == {"syscalls"}
    assert not all(losses.to_dict()["complete"])
    assert "syscalls" in set(opened.losses().to_dict()["table"])


def test_calls_are_those_that_are_stored_and_those_that_were_counted() -> None:
    opened = systape.open(lossy(), loss="ignore")
    calls = opened.calls(by=["syscall"])
    names = [column.name for column in calls.columns]
    assert "calls" in names and "calls_at_least" in names
    theirs = {}
    asked = subprocess.run(
        [ANALYZE, "top", "--by", "syscall", "--format", "json", lossy()], capture_output=True, text=True, check=True
    )
    for line in asked.stdout.splitlines():
        row = json.loads(line)
        if "calls" in row:
            theirs[row["syscall"]] = (row["calls"], row["calls_at_least"])
    ours = {row["syscall"]: (row["calls"], row["calls_at_least"]) for row in calls.rows()}
    assert ours == theirs
    # more than a count of rows has
    rows = sum(len(values) for values in [opened.arrow("syscalls", ["pid"]).arrow()])
    assert sum(count for count, _ in ours.values()) > rows


def test_reports_have_the_rows_of_their_json() -> None:
    opened = systape.open(tape("mix-1.5"), loss="ignore")
    for name, options in [
        ("why", {}),
        ("kills", {}),
        ("exec", {}),
        ("files", {}),
        ("top", {"by": ["comm", "syscall"]}),
        ("top", {"by": "comm", "top": 2}),
        ("states", {"by": "state"}),
        ("path", {}),
    ]:
        table = opened.report(name, **options)
        words = [name, *(f"--{key}={','.join(value) if isinstance(value, list) else value}" for key, value in options.items())]
        asked = subprocess.run([ANALYZE, *words, "--format=json", tape("mix-1.5")], capture_output=True, text=True, check=True)
        theirs = [json.loads(line) for line in asked.stdout.splitlines()]
        ours = opened.report_tables(name, **options)
        assert sum(len(table) for table in ours) == len(theirs), name
        assert table.name == ours[0].name and len(table) > 0 or not theirs
        number = next((key for key in ("calls", "total_ns", "pid") if theirs and key in theirs[0]), None)
        if number is not None and len(ours) == 1:
            assert table.to_dict()[number] == [row[number] for row in theirs], name
    with pytest.raises(systape.SystapeError, match="nosuch"):
        opened.report("top", nosuch=3)
    with pytest.raises(systape.SystapeError):
        opened.report("redact")


def test_open_calls_are_marked() -> None:
    marked = 0
    for path in TAPES:
        table = systape.open(path, loss="ignore").arrow("syscalls", ["dur_ns", "dur_ns_at_least", "incomplete"]).arrow()
        for row in table.to_pylist():
            if row["incomplete"] == "in-flight":
                assert row["dur_ns_at_least"] is True
                marked += 1
    assert marked > 0


def test_arrow_is_narrowed_exactly() -> None:
    opened = systape.open(tape("mix-1.5"))
    whole = opened.arrow("syscalls", ["pid", "syscall", "dur_ns"]).arrow().to_pylist()
    pid = whole[len(whole) // 2]["pid"]
    narrow = opened.arrow("syscalls", ["pid", "syscall", "dur_ns"], pid=[pid], dur_ns=1000).arrow().to_pylist()
    wanted = [row for row in whole if row["pid"] == pid and row["dur_ns"] is not None and row["dur_ns"] >= 1000]
    assert narrow == wanted and 0 < len(narrow) < len(whole)
    reads = opened.arrow("syscalls", ["syscall"], syscall=["read"]).arrow().to_pylist()
    assert len(reads) == sum(row["syscall"] == "read" for row in whole) > 0
    with pytest.raises(systape.SystapeError, match="nosuch"):
        opened.arrow("syscalls", ["nosuch"])
    with pytest.raises(systape.SystapeError, match="nosuch"):
        opened.arrow("nosuch")
    with pytest.raises(systape.SystapeError, match="kills"):
        opened.arrow("kills", pid=[1])


def test_pictures_are_svg() -> None:
    flame = systape.open(tape("stacks-1.2"), loss="ignore").flame()
    picture = ElementTree.fromstring(flame)
    assert picture.tag.endswith("svg") and flame._repr_svg_() == flame
    heat = systape.open(tape("mix-1.5")).heatmap()
    cells = [cell for cell in ElementTree.fromstring(heat).iter() if cell.tag.endswith("title")]
    assert len(cells) > 3 and "calls of" in (cells[0].text or "")
    with pytest.raises(systape.SystapeError, match="stack"):
        systape.open(tape("kernel-6.1-sh")).flame()


def test_notebooks_show_tables_and_tapes() -> None:
    opened = systape.open(lossy(), loss="ignore")
    for html in (opened._repr_html_(), opened.why()._repr_html_(), opened.losses()._repr_html_()):
        assert html.startswith("<") and "<script" not in html
    assert "Events are missing" in opened._repr_html_()
    assert opened.info["target"] and repr(opened).startswith("<systape.Tape ")
    assert "complete" in repr(systape.open(tape("mix-1.5")).summary())
    assert "syscall" in opened.text("--summary")


@pytest.mark.parametrize("in_process", [False, True])
def test_a_tape_without_the_events_is_a_loss_among_others(in_process: bool) -> None:
    looks = ROOT / "testdata" / "guides" / "looks.tape"
    both = systape.open([looks, tape("mix-1.5")], in_process=in_process)
    alone = systape.open(tape("mix-1.5"), in_process=in_process, loss="ignore")
    rows = alone.arrow("syscalls").arrow().num_rows
    with pytest.warns(systape.LossWarning, match="looks.tape: table syscalls: its events were not recorded") as warned:
        assert both.arrow("syscalls").arrow().num_rows == rows > 0
    assert len(warned) == 1 and both.tables()["syscalls"].absent is None
    missing = [row for row in both.losses("syscalls").rows() if not row["complete"]]
    assert [Path(row["file"]).name for row in missing] == ["looks.tape"]
    # its rows of `top` are of another kind, and stand between those of the others
    several = systape.open([tape("mix-1.1"), looks, tape("mix-1.5")], in_process=in_process)
    with pytest.warns(systape.LossWarning, match="looks.tape: table syscalls: its events were not recorded"):
        calls = several.calls()
    assert not calls.complete
    first = systape.open(tape("mix-1.1"), in_process=in_process, loss="ignore")
    sums = [sum(row["calls"] for row in table.rows()) for table in (calls, first.calls(), alone.calls())]
    assert sums[0] == sums[1] + sums[2] > sums[1] > 0
    # what no tape has is no loss but no answer
    only = systape.open(looks, in_process=in_process)
    assert only.tables()["syscalls"].absent is not None
    for asked in (lambda: only.arrow("syscalls").arrow(), only.calls, lambda: both.report("top", nosuch=3)):
        with pytest.raises((systape.SystapeError, OSError)):
            asked()


def test_what_is_no_tape_is_said(tmp_path: Path) -> None:
    none = tmp_path / "none.tape"
    with pytest.raises(systape.SystapeError, match="no such file"):
        systape.open(none)
    none.write_bytes(b"nothing of the kind")
    for in_process in (False, True):
        with pytest.raises(systape.SystapeError, match="not a tape"):
            systape.open(none, in_process=in_process)


def test_damaged_tapes_end_neither_process(tmp_path: Path) -> None:
    whole = tape("mix-1.5").read_bytes()
    path = tmp_path / "damaged.tape"
    for number in range(24):
        damaged = bytearray(whole)
        for at in range(number % 5 + 1):
            place = (number * 7919 + at * 104729) % len(damaged)
            damaged[place] ^= 0x55
        path.write_bytes(damaged[: len(damaged) - number * 37 % 500])
        try:
            opened = systape.open(path, loss="ignore")
            for table in ("syscalls", "gaps", "process_events"):
                opened.arrow(table).arrow()
            opened.summary()
        except (systape.SystapeError, OSError):
            # it is said what is wrong
            pass


def test_the_child_has_no_rights() -> None:
    opened = systape.open(tape("mix-1.5"))
    answer = opened._ask_table("syscalls", ["pid"], {}, True, None)
    assert answer.next()[0] == "head"  # type: ignore[index]

    def status(process: str) -> dict:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        return dict(line.split(":\t", 1) for line in lines if ":\t" in line)

    def child(process: str) -> bool:
        try:
            return status(process)["PPid"] == str(os.getpid())
        except OSError:
            return False

    # it may have ended, but nobody has asked for its end
    (process,) = [entry for entry in os.listdir("/proc") if entry.isdigit() and child(entry)]
    rights = status(process)
    assert (rights["Seccomp"], rights["NoNewPrivs"], rights["CapEff"].strip("0")) == ("2", "1", "")
    assert status("self")["Seccomp"] == status(str(os.getppid()))["Seccomp"], "this process keeps its rights"
    answer.close()
    assert not child(process)


def test_rows_that_cannot_be_right_are_refused() -> None:
    """What a child sends is checked: one that was taken over cannot make its parent read beside its buffers."""
    import struct

    from systape._native import Answer

    head = json.dumps({"table": "t", "doc": "", "columns": [{"name": "a", "kind": "text", "unit": "", "doc": ""}]}).encode()

    def frame(kind: int, payload: bytes) -> bytes:
        return struct.pack("<BQ", kind, len(payload)) + payload

    def sent(numbers: list, data: bytes) -> object:
        layout = struct.pack(f"<{len(numbers)}q", *numbers)
        text = frame(1, head) + frame(2, layout) + frame(3, data)
        program = f"import sys; sys.stdin.readline(); sys.stdout.buffer.write({text!r})"
        answer = Answer("{}", [sys.executable, "-c", program])
        assert answer.next() == ("head", head.decode())
        return answer.next()

    def buffers(code: int, ends: tuple, text: bytes) -> bytes:
        parts = (struct.pack("<B", code), struct.pack("<2i", *ends), text)
        return b"".join(part.ljust(64, b"\0") for part in parts)

    # rows and columns; of the column rows and NULLs; where the numbers of its texts, their ends and they are
    good = [1, 1, 1, 0, 0, 1, 64, 8, 128, 3]
    kind, rows = sent(good, buffers(0, (0, 3), b"abc"))  # type: ignore[misc]
    assert kind == "rows" and rows.to_dict() == {"a": ["abc"]}
    places = [(0, 2), (0, -1), (1, 2), (1, 1 << 40), (2, 2), (3, 1), (4, 32), (5, 0), (6, 32), (7, 3), (7, 4), (8, 1 << 40), (9, 2), (9, 1 << 62)]
    for at, wrong in places:
        numbers = list(good)
        numbers[at] = wrong
        with pytest.raises(systape.SystapeError):
            sent(numbers, buffers(0, (0, 3), b"abc"))
    for code, ends in [(0, (0, 4)), (0, (1, 3)), (0, (0, -1)), (1, (0, 3)), (0xFF, (0, 3))]:
        with pytest.raises(systape.SystapeError):
            sent(good, buffers(code, ends, b"abc"))
    with pytest.raises(systape.SystapeError):
        sent(good, buffers(0, (0, 3), b"a\xffc"))
