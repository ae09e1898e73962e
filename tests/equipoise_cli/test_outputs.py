"""A command writes over no input, no other output, and no file of another kind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from commands import called
from equipoise_compendium import project

DATA = project.root() / "data"
NUGGETS = (DATA / "conversations" / "R112.csv").read_text()
SETS = (DATA / "attributes" / "fairweb_researchers.yaml").read_text()
GFRC2 = ["score", "gfrc2", "n.csv", "--attributes", "sets.yaml"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "n.csv").write_text(NUGGETS)
    (tmp_path / "sets.yaml").write_text(SETS)
    (tmp_path / "notes.txt").write_text("two years of work\n")
    (tmp_path / "empty").write_text("")
    (tmp_path / "sub").mkdir()
    (tmp_path / "link.csv").symlink_to("n.csv")
    return tmp_path


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "n.csv"], "-o n.csv: must differ from the input n.csv"),
        (["-o", "link.csv"], "-o link.csv: must differ from the input n.csv"),
        (["-o", "n.csv", "--force"], "must differ from the input"),
        (["-o", "sets.yaml"], "-o sets.yaml: must differ from the input sets.yaml"),
        (["-o", "a.csv", "--clusters", "./a.csv"], "must differ from the path of -o"),
        (["-o", "notes.txt"], "exists and is not a table of scores; choose another path"),
        (["-o", "a.csv", "--clusters", "notes.txt"], "exists and is not a table of user clusters"),
        (["-o", "sub"], "-o sub already exists; choose another path for the table of scores"),
        (["-o", "/dev/full"], "already exists; choose another path for the table of scores"),
        (["-o", "none/a.csv"], "must exist"),
        (["-o", "-"], "must be the name of a file"),
    ],
)
def test_an_output_that_would_lose_something_is_an_error(
    options: list[str], message: str, folder: Path
) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    result = called(*GFRC2, *options)
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.stderr.split())
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_output_of_the_same_kind_is_written_again(ending: str, folder: Path) -> None:
    output = folder / f"scores.{ending}"
    assert called(*GFRC2, "-o", output, "--intervals").exit_code == 0
    assert called(*GFRC2, "-o", output).exit_code == 0
    read = pd.read_csv if ending == "csv" else pd.read_parquet
    assert "low" not in read(output)
    for name in ("empty", "notes.txt"):
        assert called(*GFRC2, "-o", name, *["--force"][: name == "notes.txt"]).exit_code == 0
        assert (folder / name).read_text().startswith("run,topic,attribute,measure,value\n")


def test_a_table_by_hand_is_not_replaced(folder: Path) -> None:
    """Scores with the header of the command, and digits or line ends of another program."""
    header = "run,topic,attribute,measure,value"
    for text in (
        "{}\na,b,,GFRC2,0.50\n",
        "{}\na,b,,GFRC2,0.3333333333333333\n",
        "{}\r\na,b,,R,1\r\n",
    ):
        (folder / "a.csv").write_bytes(text.format(header).encode())
        result = called(*GFRC2, "-o", "a.csv")
        assert "exists and is not a table of scores" in result.stderr
        assert (folder / "a.csv").read_bytes().decode() == text.format(header)
    pd.DataFrame([["a", "b", "", "R", 0.5]], columns=header.split(",")).to_parquet("a.parquet")
    assert called(*GFRC2, "-o", "a.parquet").exit_code == 2
    words = ["nuggets", "n.csv", "--attributes", "sets.yaml", "-o", "copy.csv"]
    assert called(*words).exit_code == 0
    assert called(*words).exit_code == 2
    assert called(*words, "--force").exit_code == 0


def test_a_fault_leaves_all_outputs_unwritten(folder: Path) -> None:
    (folder / "a.csv").write_text("run,topic,attribute,measure,value\nthe last good scores\n")
    (folder / "n.csv").write_text(NUGGETS.replace(",2,", ",x,", 1))
    assert called(*GFRC2, "-o", "a.csv", "--clusters", "c.csv").exit_code == 2
    assert (folder / "a.csv").read_text().endswith("the last good scores\n")
    assert not (folder / "c.csv").exists()


@pytest.mark.parametrize("output", ["n.csv", "link.csv"])
def test_the_file_that_is_standard_input_is_no_output(output: str, folder: Path) -> None:
    command = [sys.executable, "-m", "equipoise_cli", "score", "gfrc", "-"]
    command += ["--attributes", "sets.yaml", "-o", output, "--force"]
    with (folder / "n.csv").open() as file:
        result = subprocess.run(command, stdin=file, capture_output=True, check=False)
    assert result.returncode == 2
    assert b"must differ from the input /dev/stdin" in b" ".join(result.stderr.split())
    assert (folder / "n.csv").read_text() == NUGGETS


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_one_sentence() -> None:
    command = [sys.executable, "-m", "equipoise_cli", *GFRC2]
    environment = {**os.environ, "PYTHONUNBUFFERED": ""}
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, env=environment, check=False
        )
    assert result.returncode == 2
    assert "Error: standard output: no space left on device" in result.stderr.decode()
    assert "Traceback" not in result.stderr.decode()
