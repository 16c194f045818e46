"""Pictures that are made of rows."""

from __future__ import annotations

import json
import math
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ._table import Svg

_CELL = 14
_LEFT = 70
_TOP = 34
_BELOW = 34
# columns that are labelled, at least so many px apart
_APART = 60


def _time(ns: int) -> str:
    for unit, size in (("s", 10**9), ("ms", 10**6), ("µs", 10**3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns} ns"


def _colour(share: float) -> str:
    # from pale to dark red
    light = round(92 - 57 * share)
    return f"hsl({round(48 - 44 * share)} 90% {light}%)"


def heatmap(rows: Iterable[Dict[str, Any]], title: str, notes: Sequence[str]) -> Svg:
    """How long calls took (upwards, by powers of two) in each second (to the right); the darker, the more there were."""
    cells: Dict[Tuple[int, int], int] = {}
    untimed = 0
    for row in rows:
        for bucket in json.loads(row["durations"] or "[]"):
            if row["second"] is None:
                untimed += bucket["count"]
                continue
            place = (row["second"], max(bucket["from"], 1).bit_length() - 1)
            cells[place] = cells.get(place, 0) + bucket["count"]
    notes = [*notes, *([f"{untimed} calls are left out: in which second they began is not known"] if untimed else [])]
    if not cells:
        notes = ["no call with a known duration", *notes]
    seconds, powers = sorted({place[0] for place in cells}), sorted({place[1] for place in cells})
    first, columns = (seconds[0], seconds[-1] - seconds[0] + 1) if seconds else (0, 1)
    lowest, lines = (powers[0], powers[-1] - powers[0] + 1) if powers else (0, 1)
    most = max(cells.values(), default=1)
    step = _CELL if columns * _CELL <= 1000 else 1000 / columns
    width, bottom = max(_LEFT + columns * step + 20, 360), _TOP + lines * _CELL
    height = bottom + _BELOW + 16 * len(notes)
    out: List[str] = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{width:g}" height="{height:g}" fill="#fff"/>',
        f'<text x="8" y="18" font-size="13">{_text(title)}</text>',
    ]
    for (second, power), count in sorted(cells.items()):
        x, y = _LEFT + (second - first) * step, bottom - (power - lowest + 1) * _CELL
        share = math.log1p(count) / math.log1p(most)
        about = f"second {second}: {count} calls of {_time(2**power)} to {_time(2 ** (power + 1))}"
        out.append(
            f'<rect x="{x:g}" y="{y:g}" width="{step:g}" height="{_CELL}" fill="{_colour(share)}"><title>{about}</title></rect>'
        )
    for line in range(0, lines, 2):
        y = bottom - line * _CELL
        out.append(f'<text x="{_LEFT - 6}" y="{y:g}" text-anchor="end">{_time(2 ** (lowest + line))}</text>')
    every = max(1, math.ceil(_APART / step))
    for column in range(0, columns, every):
        out.append(f'<text x="{_LEFT + column * step:g}" y="{bottom + 14}">{first + column} s</text>')
    for number, note in enumerate(notes):
        out.append(f'<text x="8" y="{bottom + 32 + 16 * number}">{_text(note)}</text>')
    return Svg("\n".join([*out, "</svg>\n"]))


def bars(names: Iterable[object], columns: Mapping[str, Iterable[Optional[float]]], *, title: str = "") -> Svg:
    """Bars to compare numbers: for each of `names` one of each of `columns`, which have a number for each name (None: none is known).

    `bars(frame["syscall"], {"good": frame["calls"], "bad": frame["calls_bad"]})`
    """
    labels = [_text(str(name)) for name in names]
    groups = {_text(key): list(values) for key, values in columns.items()}
    if any(len(values) != len(labels) for values in groups.values()):
        raise ValueError("each column needs a number for each name")
    most = max((value for values in groups.values() for value in values if value is not None), default=0) or 1
    left = 20 + 7 * max((len(label) for label in labels), default=0)
    step = _CELL * len(groups) + 8
    width, top = left + 520, _TOP + 16
    height = top + step * len(labels) + 8
    out: List[str] = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="8" y="18" font-size="13">{_text(title)}</text>',
    ]
    colours = {key: _colour(0.25 + 0.75 * at / max(1, len(groups) - 1)) for at, key in enumerate(groups)}
    for at, (key, colour) in enumerate(colours.items()):
        out.append(f'<rect x="{left + 100 * at}" y="{_TOP - 8}" width="10" height="10" fill="{colour}"/>')
        out.append(f'<text x="{left + 100 * at + 14}" y="{_TOP + 1}">{key}</text>')
    for row, label in enumerate(labels):
        y = top + step * row
        out.append(f'<text x="{left - 6}" y="{y + step / 2:g}" text-anchor="end">{label}</text>')
        for at, (key, values) in enumerate(groups.items()):
            value, place = values[row], y + _CELL * at
            if value is None:
                out.append(f'<text x="{left + 4}" y="{place + 10}">not known</text>')
                continue
            long = max(0.0, 400 * value / most)
            bar = f'<rect x="{left}" y="{place}" width="{long:.6g}" height="{_CELL - 2}" fill="{colours[key]}">'
            out.append(f"{bar}<title>{label}, {key}: {value}</title></rect>")
            out.append(f'<text x="{left + long + 4:.6g}" y="{place + 10}">{value:,}</text>')
    return Svg("\n".join([*out, "</svg>\n"]))


def _text(text: str) -> str:
    plain = "".join(letter if letter.isprintable() else "?" for letter in text)
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
