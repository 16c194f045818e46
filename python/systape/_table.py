"""Tables that are there, tables that are read when somebody asks, and pictures."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ._native import Rows

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

# rows and columns that a notebook shows
_SHOWN = 20
_WIDE = 14


class Column(NamedTuple):
    """A column of a table."""

    name: str
    """Name of the column."""
    kind: str
    """Kind of its values: `int`, `wide` (up to 20 digits), `real`, `flag`, `text`, `instant` (µs since 1970, UTC) or `map`."""
    unit: str
    """Unit of its values; empty without one."""
    doc: str
    """What it means, and when it is NULL."""


class _Arrow:
    """What has rows for programs that know Arrow's C interface."""

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        raise NotImplementedError

    def pl(self) -> "polars.DataFrame":
        """The rows as a frame of polars."""
        import polars

        return polars.DataFrame(self)

    def arrow(self) -> "pyarrow.Table":
        """The rows as a table of pyarrow."""
        import pyarrow

        return pyarrow.table(self)

    def df(self) -> "pandas.DataFrame":
        """The rows as a frame of pandas, by way of pyarrow."""
        return self.arrow().to_pandas()


class Table(_Arrow):
    """Rows of a table or a report, in memory. It is a source for polars, pandas, pyarrow and DuckDB (`__arrow_c_stream__`).

    `x_at_least`, `x_at_most` and `x_of_known` say of a row whether its number `x` is a bound, because events are missing.
    """

    name: str
    """Name of the table."""
    doc: str
    """What a row is."""
    columns: Tuple[Column, ...]
    """Columns of the table."""
    losses: Tuple[str, ...]
    """What is missing, in sentences; empty: nothing is."""
    notes: Tuple[str, ...]
    """What was said beside the rows, and is no loss."""

    def __init__(
        self,
        name: str,
        doc: str,
        columns: Sequence[Column],
        parts: Sequence[Rows],
        losses: Sequence[str] = (),
        notes: Sequence[str] = (),
    ) -> None:
        self.name, self.doc = name, doc
        self.columns, self.losses, self.notes = tuple(columns), tuple(losses), tuple(notes)
        self._parts = list(parts)

    @property
    def complete(self) -> bool:
        """Whether nothing is missing that could change the rows."""
        return not self.losses

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts)

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        return Rows.stream([(column.name, column.kind) for column in self.columns], self._parts)

    def to_dict(self) -> Dict[str, List[Any]]:
        """The values by column, with nothing but Python: numbers, texts, bool, dict, None. An instant is a number of µs since 1970."""
        values: Dict[str, List[Any]] = {column.name: [] for column in self.columns}
        for part in self._parts:
            for name, more in part.to_dict().items():
                values[name].extend(more)
        return values

    def rows(self) -> Iterator[Dict[str, Any]]:
        """The rows, each by the names of its columns."""
        for part in self._parts:
            values = part.to_dict()
            for row in range(len(part)):
                yield {name: column[row] for name, column in values.items()}

    def __repr__(self) -> str:
        lost = "complete" if self.complete else f"{len(self.losses)} losses: see .losses"
        return f"<systape.Table {self.name}: {len(self)} rows, {len(self.columns)} columns, {lost}>"

    def _repr_html_(self) -> str:
        names = [column.name for column in self.columns]
        # what is the same in all rows of a tape is not shown first
        shown = [name for name in names if name not in ("host", "date", "tape")][:_WIDE]
        head = "".join(f"<th>{escape(name)}</th>" for name in shown)
        rows: List[str] = []
        for row in self.rows():
            if len(rows) == _SHOWN:
                break
            cells = ("" if row[name] is None else escape(_short(row[name])) for name in shown)
            rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        left = [f"{len(self)} rows"] if len(self) > _SHOWN else []
        left += [f"{len(names)} columns"] if len(names) > len(shown) else []
        lines = [*self.losses, *self.notes, *([", ".join(left)] if left else [])]
        below = "".join(f"<div>{escape(line)}</div>" for line in lines)
        title = f"<div><b>{escape(self.name)}</b></div>"
        return f"{title}<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>{below}"


def _short(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 80 else text[:79] + "…"


class Stream(_Arrow):
    """A table of tapes that is read when somebody takes its rows, each time anew: a source for pyarrow, pandas, polars and DuckDB."""

    name: str
    """Name of the table."""
    columns: Tuple[Column, ...]
    """Columns of the table."""

    def __init__(self, name: str, columns: Sequence[Column], begin: Callable[[], object]) -> None:
        self.name, self.columns = name, tuple(columns)
        self._begin = begin

    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        return self._begin()

    def __repr__(self) -> str:
        return f"<systape.Stream {self.name}: {len(self.columns)} columns, read when it is taken>"


class Svg(str):
    """A picture as SVG; a notebook shows it."""

    def _repr_svg_(self) -> str:
        return str(self)

    def save(self, path: str) -> None:
        """Writes it to the file `path`."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self)
