"""Questions about tapes: who is asked, and how."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Dict, List, Sequence

from . import _native
from ._native import Answer, SystapeError


def _command() -> List[str]:
    """The command line of a process that answers one question."""
    if not sys.executable:
        raise SystapeError("where Python's program is is not known, so no process can read the tape: in_process=True reads it in this one")
    child = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_child.py")
    # neither the environment's nor the user's modules: this process only reads tapes
    return [sys.executable, "-I", "-S", "-B", child, str(_native.__file__)]


def ask(tapes: Sequence[str], in_process: bool, **question: Any) -> Answer:
    """The answer to a question about `tapes`."""
    text = json.dumps({"tapes": list(tapes), **question})
    return Answer(text) if in_process else Answer(text, _command())


def run(words: Sequence[str]) -> str:
    """What `analyze` prints when it is given these words. A child process prints it in any case."""
    text = json.dumps({"tapes": [], "ask": "command", "words": list(words)})
    env = dict(os.environ, NO_COLOR="1")
    done = subprocess.run(_command(), input=text + "\n", capture_output=True, encoding="utf-8", errors="replace", env=env, check=False)
    if done.returncode != 0:
        raise SystapeError(done.stderr.strip() or f"the process that reads the tape has ended ({done.returncode})")
    return done.stdout


def end_of(answer: Answer) -> Dict[str, List[str]]:
    """What is lost of an answer that was read, and what was said beside it."""
    text = answer.end()
    return json.loads(text) if text is not None else {"lost": [], "notes": []}


def words_of(options: Dict[str, Any]) -> List[str]:
    """Options of a report as `analyze` takes them: `top=3` is `--top=3`, `failure=True` is `--failure`, a list is `a,b`."""
    words: List[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(flag)
        elif isinstance(value, (list, tuple)):
            # of a stretch of time an end may be open
            words.append(flag + "=" + ",".join("" if part is None else str(part) for part in value))
        else:
            words.append(f"{flag}={value}")
    return words
