"""The derived data of the FairWeb-1 pilot pack, made from the upstream files byte for byte."""

import subprocess
import sys
from pathlib import Path

import pytest

from equipoise_compendium import project
from upstream import skip_without

pytestmark = pytest.mark.upstream

skip_without("fairweb")
FOLDER = project.root() / "data" / "facts" / "pilot"


def test_make_gives_the_committed_bytes(tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER / "make.py"), "--output", str(tmp_path)]
    subprocess.run(command, check=True, cwd=project.root())
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    committed = [*FOLDER.glob("*.csv"), *FOLDER.glob("*.parquet")]
    assert made == {path.name: path.read_bytes() for path in committed}
