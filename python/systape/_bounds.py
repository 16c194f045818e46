"""What a predicate of polars says of the rows that can pass, as bounds that leave out parts of a tape.

polars gives a predicate as a tree of JSON whose form nobody promises. Whatever is not understood bounds nothing: it costs time, and no row
is lost, because the caller tests each row with the predicate itself.
"""

from __future__ import annotations

import datetime
import io
import json
import warnings
from typing import TYPE_CHECKING, Any, Collection, Dict, List, Optional, Tuple

if TYPE_CHECKING:
    import polars

_FLIPPED = {"Eq": "Eq", "Lt": "Gt", "LtEq": "GtEq", "Gt": "Lt", "GtEq": "LtEq"}
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_LARGEST = 2**63 - 1

Bounds = Dict[str, Any]


def bounds_of(predicate: "polars.Expr", table: str, columns: Collection[str]) -> Bounds:
    """The bounds of the rows of `table`, which has `columns`, that can pass `predicate`."""
    bounds: Bounds = {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = json.loads(predicate.meta.serialize(format="json"))
            _narrow(tree, bounds, {name for name in _usable(table) if name in columns})
    except Exception:
        # an unknown form of it
        return {}
    return bounds


def _usable(table: str) -> Tuple[str, ...]:
    times = ("rel_ns", "ts_ns", "ts")
    return (*times, "pid", "syscall", "dur_ns") if table == "syscalls" else times


def _narrow(node: Any, bounds: Bounds, usable: Collection[str]) -> None:
    if not isinstance(node, dict) or len(node) != 1:
        return
    if "BinaryExpr" in node:
        binary = node["BinaryExpr"]
        left, op, right = binary["left"], binary["op"], binary["right"]
        if op in ("And", "LogicalAnd"):
            _narrow(left, bounds, usable)
            _narrow(right, bounds, usable)
        elif op in _FLIPPED:
            name, value = _column(left), right
            if name is None:
                name, value, op = _column(right), left, _FLIPPED[op]
            if name is not None and name in usable:
                _compare(name, op, _values(value), bounds)
    elif "Function" in node:
        function = node["Function"]
        kind, inputs = function["function"], function["input"]
        kind = kind.get("Boolean") if isinstance(kind, dict) else None
        name = _column(inputs[0])
        if not isinstance(kind, dict) or name is None or name not in usable:
            return
        if "IsBetween" in kind:
            _compare(name, "GtEq", _values(inputs[1]), bounds)
            _compare(name, "LtEq", _values(inputs[2]), bounds)
        elif "IsIn" in kind:
            _one_of(name, _values(inputs[1]), bounds)


def _column(node: Any) -> Optional[str]:
    name = node.get("Column") if isinstance(node, dict) else None
    return name if isinstance(name, str) else None


def _values(node: Any) -> List[Any]:
    """The values of a literal; none of anything else."""
    inner = node
    while isinstance(inner, dict) and list(inner) == ["Cast"]:
        inner = inner["Cast"]["expr"]
    if not isinstance(inner, dict) or list(inner) != ["Literal"]:
        return []
    import polars

    values = polars.select(polars.Expr.deserialize(io.StringIO(json.dumps(node)), format="json")).to_series().to_list()
    if len(values) == 1 and isinstance(values[0], list):
        values = values[0]
    return values


def _number(value: Any) -> Optional[int]:
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST
    return value if whole else None


def _compare(name: str, op: str, values: List[Any], bounds: Bounds) -> None:
    if len(values) != 1:
        return
    if name in ("pid", "syscall"):
        if op == "Eq":
            _one_of(name, values, bounds)
        return
    value, slack = values[0], 0
    if name == "ts":
        if not isinstance(value, datetime.datetime) or value.tzinfo is None:
            return
        # a µs ends before the next begins
        name, slack, value = "ts_ns", 999, (value - _EPOCH) // datetime.timedelta(microseconds=1) * 1000
    number = _number(value)
    if number is None:
        return
    if name == "dur_ns":
        if op in ("Eq", "Gt", "GtEq"):
            bounds["dur_ns"] = max(number, bounds.get("dur_ns", number))
        return
    least, most = bounds.get(name, (None, None))
    if op in ("Eq", "Gt", "GtEq"):
        least = number if least is None else max(least, number)
    if op in ("Eq", "Lt", "LtEq"):
        end = min(number + slack, _LARGEST)
        most = end if most is None else min(most, end)
    bounds[name] = (least, most)


def _one_of(name: str, values: List[Any], bounds: Bounds) -> None:
    if name not in ("pid", "syscall"):
        return
    wanted = str if name == "syscall" else int
    # NULL is in no row that passes
    values = [value for value in values if value is not None]
    if not values or not all(isinstance(value, wanted) and not isinstance(value, bool) for value in values):
        return
    if name == "pid":
        # a number that no process can have
        values = [value for value in values if 0 <= value < 2**32]
    before = bounds.get(name)
    bounds[name] = values if before is None else [value for value in before if value in values]
