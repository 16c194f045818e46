"""What tests share: the tapes, and what `analyze export parquet` makes of them."""

import os
import subprocess
from pathlib import Path
from typing import Callable, Dict

import pytest

ROOT = Path(__file__).resolve().parents[2]
TAPES = sorted((ROOT / "testdata" / "tapes").glob("*.tape"))
ANALYZE_SQL = os.environ.get("ANALYZE_SQL", str(ROOT / "target" / "release" / "analyze-sql"))


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """The directory with the Parquet files of a tape: made once."""
    made: Dict[Path, Path] = {}

    def export(tape: Path) -> Path:
        if tape not in made:
            place = tmp_path_factory.mktemp(tape.stem)
            subprocess.run([ANALYZE_SQL, "export", "parquet", place, tape], check=True, stderr=subprocess.DEVNULL)
            made[tape] = place
        return made[tape]

    return export


def files(place: Path, table: str) -> list:
    """The files of a table, in their order."""
    return sorted((place / table).rglob("*.parquet"))
