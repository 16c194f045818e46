"""docs/guides/notebook.md: its lines run, and print what stands below them. UPDATE_GOLDEN=1 writes the outputs anew."""

import contextlib
import io
import os
import re
import shutil
from pathlib import Path
from typing import Any, Dict

import pytest

from conftest import ROOT

pl = pytest.importorskip("polars")

PAGE = ROOT / "docs" / "guides" / "notebook.md"
# lines to run, and what they printed
BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)


# pictures that lines save, and where the page has them
PICTURES = ROOT / "docs" / "images"


def test_the_notebook_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for tape in (Path(__file__).parent / "tapes").glob("*.tape"):
        shutil.copy(tape, tmp_path)
    monkeypatch.chdir(tmp_path)
    names: Dict[str, Any] = {}

    def run(block: "re.Match[str]") -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block[1], str(PAGE), "exec"), names)
        output = f"\n```text\n{printed.getvalue()}```\n" if printed.getvalue() else ""
        return f"```python\n{block[1]}```\n{output}"

    with pl.Config():
        page = BLOCK.sub(run, PAGE.read_text())
    pictures = {f"notebook-{picture.name}": picture.read_text() for picture in tmp_path.glob("*.svg")}
    assert all(f"(../images/{name})" in page for name in pictures) and len(pictures) == page.count("(../images/notebook-")
    if os.environ.get("UPDATE_GOLDEN"):
        PAGE.write_text(page)
        for name, picture in pictures.items():
            (PICTURES / name).write_text(picture)
    elif pl.__version__ == "2.1.0":
        # other versions draw frames otherwise
        assert page == PAGE.read_text()
        assert {name: (PICTURES / name).read_text() for name in pictures} == pictures
