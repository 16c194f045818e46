"""Reads systape tapes: what a Linux machine did, as frames and reports.

>>> import systape
>>> tape = systape.open("t.tape")
>>> tape.scan("syscalls").group_by("syscall").len()     # a LazyFrame of polars, if that is installed
>>> tape.calls(by=["comm", "syscall"]).pl()             # exact sums: also of calls that were only counted
>>> tape.why()                                          # what was slow and what broke, the worst first

Tapes are read by a child process that has given up its rights, because a tape may come from anybody. `open(..., in_process=True)` reads
them in this process, which is faster for small questions.
"""

from ._native import SystapeError, __version__
from ._svg import bars
from ._tape import LossError, LossWarning, Tape, TableInfo, open, scan
from ._table import Column, Stream, Svg, Table

__all__ = [
    "Column",
    "LossError",
    "LossWarning",
    "Stream",
    "Svg",
    "SystapeError",
    "Table",
    "TableInfo",
    "Tape",
    "__version__",
    "bars",
    "open",
    "scan",
]
