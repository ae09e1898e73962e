"""The derived data of every study, made from the upstream files byte for byte."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from equipoise_compendium import project
from upstream import skip_without

STUDIES = sorted(path.parent.name for path in project.root().glob("data/facts/*/make.py"))


@pytest.mark.upstream
@pytest.mark.parametrize("study", STUDIES)
def test_derived_data_are_made_again_with_the_same_bytes(study: str, tmp_path: Path) -> None:
    folder = project.root() / "data" / "facts" / study
    sources = pd.read_csv(folder / "sources.csv")["source"]
    skip_without(*sources.str.extract("^registry:(.+?)/")[0].dropna().unique())
    command = [sys.executable, str(folder / "make.py"), "--output", str(tmp_path)]
    subprocess.run(command, check=True, cwd=project.root())
    committed = {path.name for path in folder.iterdir() if path.suffix in (".csv", ".parquet")}
    assert {path.name for path in tmp_path.iterdir()} == committed
    for name in committed:
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes(), name
