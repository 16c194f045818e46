#!/usr/bin/env python3
"""Draws what `analyze` prints on a terminal as SVG, for docs/images/terminal: `scripts/pictures.py [ANALYZE]`. The tapes are those of
testdata/guides. Colours are the program's own."""

import fcntl
import html
import os
import pty
import re
import struct
import sys
import termios
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CELLS = 100
# name, most lines, words of analyze
PICTURES = [
    ("card", 40, ["demo.tape"]),
    ("why", 22, ["why", "disk.tape"]),
    ("path", 20, ["path", "--top", "4", "disk.tape"]),
    ("service", 24, ["why", "demo.tape"]),
    ("requests", 20, ["requests", "--slowest", "3", "--where", "demo.tape"]),
    ("kills", 18, ["kills", "-v", "kill.tape"]),
    ("exec", 12, ["exec", "--tree", "kill.tape"]),
    ("listing", 16, ["trace", "-e", "file", "--failure", "disk.tape"]),
    ("states", 16, ["states", "--at", "50%", "demo.tape"]),
    ("hung", 14, ["states", "--at", "0.5", "--call-graph", "hung.tape"]),
    ("block", 16, ["block", "--top", "--by", "comm,file", "disk.tape"]),
    ("net", 10, ["net", "network.tape"]),
    ("diff", 20, ["diff", "before.tape", "after.tape", "--by", "syscall,file"]),
]
# foreground of each code on a dark ground
COLOURS = {"1": "font-weight:bold", "2": "fill:#8b949e", "31": "fill:#ff7b72", "32": "fill:#7ee787", "33": "fill:#e3b341", "36": "fill:#79c0ff"}
WIDTH, HEIGHT, SIZE = 7.8, 18, 13


def printed(analyze: str, words: list) -> str:
    """What it prints on a terminal of CELLS columns."""
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 1000, CELLS, 0, 0))
        os.chdir(ROOT / "testdata/guides")
        environment = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        os.execve(analyze, ["analyze", *words], environment)
    output = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break
        if not part:
            break
        output += part
    os.waitpid(child, 0)
    return output.decode().replace("\r\n", "\n").rstrip("\n")


def drawn(line: str, row: int) -> str:
    """A line as spans of text, each in its colour."""
    spans, style, column = [], "", 0
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if part.startswith("\x1b"):
            codes = part[2:-1].split(";")
            style = ";".join(COLOURS[code] for code in codes if code in COLOURS)
        elif part:
            look = f' style="{style}"' if style else ""
            spans.append(f'<tspan x="{16 + column * WIDTH:.1f}"{look}>{html.escape(part, quote=False)}</tspan>')
            column += len(part)
    return f'<text y="{30 + row * HEIGHT}">{"".join(spans)}</text>' if spans else ""


def main() -> None:
    analyze = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/release/analyze")
    out = ROOT / "docs/images/terminal"
    out.mkdir(parents=True, exist_ok=True)
    for name, most, words in PICTURES:
        lines = printed(analyze, words).split("\n")
        lines = lines[:most] + (["..."] if len(lines) > most else [])
        lines = [f"\x1b[32m$\x1b[m \x1b[1manalyze {' '.join(words)}\x1b[m", *lines]
        # a command to copy is whole on its line, however long
        cells = max(CELLS, *(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in lines))
        size = f'width="{32 + cells * WIDTH:.0f}" height="{24 + len(lines) * HEIGHT}"'
        look = f"font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:{SIZE}px;fill:#e6edf3;white-space:pre"
        body = "\n".join(filter(None, (drawn(line, row) for row, line in enumerate(lines))))
        title = html.escape(f"analyze {' '.join(words)}")
        (out / f"{name}.svg").write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} style="{look}" xml:space="preserve"><title>{title}</title>\n'
            f'<rect width="100%" height="100%" rx="8" style="fill:#0d1117"/>\n{body}\n</svg>\n'
        )
        print(f"pictures: {name}.svg, {len(lines)} lines", file=sys.stderr)


main()
