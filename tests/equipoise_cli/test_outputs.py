"""Guards the files of the user: nothing is written over what is read, or is of another kind."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from commands import called as run
from equipoise_compendium import project

COMMANDS: dict[
    str, tuple[list[str], list[str], list[str]]
] = {  # what is called, what is read, what is written
    name: (called.split(), read.split(), written.split())
    for name, called, read, written in (
        ("gfrc", "score gfrc nuggets.csv --attributes sets.yaml", "nuggets.csv sets.yaml", "-o"),
        (
            "gfrc2",
            "score gfrc2 nuggets.csv --attributes sets.yaml",
            "nuggets.csv sets.yaml",
            "-o --clusters",
        ),
        (
            "ranking-bias",
            "score ranking-bias --run run --documents d.tsv --terms terms --background back",
            "run d.tsv terms back",
            "-o",
        ),
        (
            "gfr",
            "score gfr --run run --qrels qrels --membership A=members --target A=target "
            "--kind A=ordinal",
            "run qrels members target",
            "-o",
        ),
        ("attribution", "score attribution answers.jsonl", "answers.jsonl", "-o"),
        (
            "nuggets",
            "nuggets transcript.txt --attributes sets.yaml",
            "transcript.txt sets.yaml",
            "-o",
        ),
        ("transcripts", "transcripts record.jsonl ORG.txt", "record.jsonl ORG.txt", "-o"),
        (
            "harvest",
            "harvest --topics topics.csv --endpoint http://127.0.0.1:9/v1 --model m --tries 1",
            "topics.csv",
            "-o --transcripts",
        ),
    )
}
WAYS: dict[str, Callable[[str], str]] = {
    "by its name": str,
    "by ./": lambda name: f"./{name}",
    "by ..": lambda name: f"folder/../{name}",
    "by its whole path": lambda name: str(Path(name).absolute()),
    "by a link": lambda name: linked("link", name),
    "by a link to a link": lambda name: linked("second", linked("link", name)),
    "by a hard link": lambda name: hardly_linked("hard", name),
    "by a link to its folder": lambda name: f"{linked('door', '.')}/{name}",
}
CASES = [
    (command, option, read, way)
    for command, (_, inputs, outputs) in COMMANDS.items()
    for option in outputs
    for read in inputs
    for way in WAYS
]


def linked(link: str, target: str) -> str:
    Path(link).symlink_to(target)
    return link


def hardly_linked(link: str, target: str) -> str:
    os.link(target, link)
    return link


def pipe(name: str) -> str:
    os.mkfifo(name)
    return name


def protected(name: str) -> str:
    Path(name).write_text("measure,value\n")
    Path(name).chmod(0o444)
    return name


def held(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, where every input is such that no command would get far with it."""
    monkeypatch.chdir(tmp_path)
    for _, inputs, _ in COMMANDS.values():
        for name in inputs:
            (tmp_path / name).write_text(f"precious {name}")
    (tmp_path / "folder").mkdir()
    return tmp_path


def other(command: str, option: str) -> list[str]:
    """What a command needs besides the option that is tried."""
    return ["-o", "fresh"] if option != "-o" and command == "harvest" else []


@pytest.mark.parametrize(("command", "option", "read", "way"), CASES)
def test_what_is_read_is_not_written_over(
    command: str, option: str, read: str, way: str, place: Path
) -> None:
    path = WAYS[way](read)
    before = held(place)
    said = run(*COMMANDS[command][0], *other(command, option), option, path, "--force")
    assert said.exit_code == 2, said.output
    assert (
        f"error: {Path(path)}: found what {option} would write over {read}, which is read"
        in said.output
    )
    assert said.output.endswith("1 problem in the input; nothing was written.\n")
    assert held(place) == before


def test_a_folder_that_is_read_is_not_written_into(place: Path) -> None:
    for path in (
        "folder/scores",
        "./folder/../folder/x/scores",
        linked("door", "folder") + "/scores",
        "folder",
    ):
        said = run("score", "gfrc", "folder", "--attributes", "sets.yaml", "-o", path)
        assert said.exit_code == 2
        assert f"{Path(path)}: found what -o would write over folder, which is read" in said.output
    said = run(
        "score", "gfr", *COMMANDS["gfr"][0][2:], "--run", "folder", "-o", "folder/new.parquet"
    )
    assert "found what -o would write over folder" in said.output
    assert list((place / "folder").iterdir()) == []


@pytest.mark.parametrize(
    ("second", "first"), [("out", "out"), ("./out", "out"), ("link", "out"), ("hard", "kept")]
)
def test_two_outputs_are_two_files(first: str, second: str, place: Path) -> None:
    linked("link", "out")
    (place / "kept").write_text("")
    os.link("kept", "hard")
    before = held(place)
    for command, option in (("gfrc2", "--clusters"), ("harvest", "--transcripts")):
        said = run(*COMMANDS[command][0], "-o", first, option, second)
        assert (
            said.exit_code,
            f"{first}: found both -o and {option}, wanted a file for each" in said.output,
        ) == (
            2,
            True,
        )
    assert held(place) == before


UNFIT: dict[str, tuple[Callable[[], str], str]] = {
    "a folder": (lambda: "folder", "folder: found a folder"),
    "the folder itself": (lambda: "", "found a folder"),
    "a device": (lambda: "/dev/null", "/dev/null: found a device or a pipe"),
    "a device that is full": (lambda: "/dev/full", "found a device or a pipe"),
    "a link to a device": (lambda: linked("link", "/dev/null"), "link: found a device or a pipe"),
    "a pipe": (lambda: pipe("pipe"), "pipe: found a device or a pipe"),
    "a link to itself": (lambda: linked("loop", "loop"), "loop: found a link that leads to itself"),
    "links in a circle": (
        lambda: (linked("one", "two"), linked("two", "one"))[0],
        "found a link that leads to itself",
    ),
    "a long name": (lambda: "n" * 300, "found File name too long"),
    "a file as a folder": (lambda: "sets.yaml/out", "found Not a directory"),
    "a protected file": (
        lambda: protected("kept"),
        "kept: found a file that is protected from writing",
    ),
}


@pytest.mark.parametrize("case", UNFIT)
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_place_for_a_file_is_refused(command: str, case: str, place: Path) -> None:
    make, found = UNFIT[case]
    path = make()
    before = held(place)
    for option in COMMANDS[command][2]:
        said = run(*COMMANDS[command][0], *other(command, option), option, path, "--force")
        assert (said.exit_code, found in said.output) == (2, True), said.output
        assert "nothing was written" in said.output
        assert len(said.output) < 2000
    assert held(place) == before


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "harvest"])
def test_a_folder_that_is_missing_is_told_before_anything_is_read(
    command: str, place: Path
) -> None:
    said = run(*COMMANDS[command][0], "-o", "no/such/out")
    assert (
        f"no/such/out: found no folder to write into, wanted {place / 'no' / 'such'}" in said.output
    )


KINDS = {
    "a table of other columns": b"run,topic,document\na,b,c\n",
    "a program": b"#!/bin/sh\nrm -r /\n",
    "bytes": bytes(range(256)) * 9,
    "a picture": b"\x89PNG\r\n\x1a\n",
    "half a Parquet file": b"PAR1 and no more",
    "one long line": b"x" * 300_000,
    "a line without end": b"measure and value",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_of_another_kind_is_not_written_over(command: str, kind: str, place: Path) -> None:
    (place / "mine").write_bytes(KINDS[kind])
    before = held(place)
    for option in COMMANDS[command][2]:
        if (command, option) == ("harvest", "-o"):
            continue  # a record is gone on with: see the tests of harvest
        said = run(*COMMANDS[command][0], *other(command, option), option, "mine")
        assert said.exit_code == 2
        assert "mine: found a file that is no " in said.output
        assert "wanted another name, or --force to write over it" in said.output
    assert held(place) == before


# --- and what may be written ----------------------------------------------------------------------


@pytest.fixture
def good(place: Path) -> Path:
    """The same folder with inputs that every command takes."""
    data = project.root() / "data"
    shutil.copy(data / "conversations" / "turing_award.txt", place / "transcript.txt")
    shutil.copy(data / "attributes" / "turing_award.yaml", place / "sets.yaml")
    shutil.copy(data / "conversations" / "harvest" / "qwen-1.5b.jsonl", place / "record.jsonl")
    answer = {"question": "q", "relevant_author": "Human", "nonrelevant_author": "LLM"}
    answer |= {"answer": "Wales [1].", "relevant": [1], "documents": 2}  # type: ignore[dict-item]
    texts = {
        "run": "t1 Q0 a 1 3 r\nt1 Q0 b 2 2 r\n",
        "back": "t1 Q0 a 1 3 r\nt1 Q0 b 2 2 r\n",
        "qrels": "t1 a L2\nt1 b L1\n",
        "members": "t1 a 1 0\nt1 b 0 1\n",
        "target": "0.5\n0.5\n",
        "d.tsv": "a\the and him\nb\tshe\n",
        "terms": "he,m\nshe,f\n",
        "answers.jsonl": "".join(
            json.dumps(answer | {"mode": mode}) + "\n" for mode in ("Vanilla", "Informed")
        ),
        "ORG.txt": "<T1>\nU:A film?\nS:Here:\n# Tenet https://a/1\n</T1>\n",
    }
    for name, text in texts.items():
        (place / name).write_text(text)
    assert run(*COMMANDS["nuggets"][0], "-o", "nuggets.csv", "--force").exit_code == 0
    return place


@pytest.mark.parametrize("ending", [".csv", ".parquet", ""])
@pytest.mark.parametrize(
    "command", [name for name in COMMANDS if name not in ("harvest", "transcripts")]
)
def test_an_output_of_the_same_kind_is_written_again(command: str, ending: str, good: Path) -> None:
    arguments = [
        *COMMANDS[command][0],
        *(f"{option}=out{option}{ending}" for option in COMMANDS[command][2]),
    ]
    arguments = [
        part
        for argument in arguments
        for part in argument.split("=", 1 if "=out" in argument else 0)
    ]
    first = run(*arguments)
    assert first.exit_code == 0, first.output
    made = held(good)
    (good / f"out-o{ending}").chmod(0o600)
    assert run(*arguments).exit_code == 0
    assert held(good) == made
    assert (good / f"out-o{ending}").stat().st_mode & 0o777 == 0o600


def test_an_output_of_more_columns_is_of_its_kind_and_any_is_by_force(good: Path) -> None:
    command = ["score", "attribution", "answers.jsonl", "-o", "out.csv"]
    pd.DataFrame({"more": [1], "measure": ["R"], "value": [0.5]}).to_csv("out.csv", index=False)
    assert run(*command).exit_code == 0
    (good / "out.csv").write_text("precious")
    assert run(*command).exit_code == 2
    assert run(*command, "--force").exit_code == 0
    assert (good / "out.csv").read_text().startswith("run,")
    (good / "out.csv").write_text("")  # nothing is lost with an empty file
    assert run(*command).exit_code == 0


def test_one_bad_output_leaves_the_other_unwritten(good: Path) -> None:
    (good / "folder" / "clusters.csv").mkdir()
    said = run(*COMMANDS["gfrc2"][0], "-o", "scores.csv", "--clusters", "folder/clusters.csv")
    assert (said.exit_code, (good / "scores.csv").exists()) == (2, False)


# --- standard output ------------------------------------------------------------------------------


def process(
    *words: str, stdout: Any, unbuffered: bool = False, bytes_of_files: int = 2**30
) -> subprocess.CompletedProcess[str]:
    """The command as a process, whose files cannot grow beyond a size, as on a disk that fills."""

    def limit_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_of_files, bytes_of_files))

    return subprocess.run(
        [sys.executable, "-m", "equipoise_cli", *words],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        preexec_fn=limit_files,
        env=os.environ | {"PYTHONUNBUFFERED": "1" if unbuffered else ""},
    )


@pytest.fixture
def scores_of_runs(tmp_path: Path) -> Path:
    rows = [(run, f"q{topic}", topic) for run in "ab" for topic in range(5_000)]
    table = pd.DataFrame(rows, columns=["run", "topic", "value"]).assign(measure="R")
    table.to_csv(tmp_path / "scores.csv", index=False)
    return tmp_path / "scores.csv"


@pytest.mark.parametrize("unbuffered", [False, True])
@pytest.mark.parametrize(
    "words",
    [
        ("score", "worst", "SCORES", "--over", "run"),
        ("compare", "SCORES", "--test", "t", "--show", "topics"),
    ],
    ids=["CSV", "text"],
)
def test_an_output_that_a_disk_has_no_room_for_fails(
    words: tuple[str, ...], unbuffered: bool, scores_of_runs: Path, tmp_path: Path
) -> None:
    words = tuple(str(scores_of_runs) if word == "SCORES" else word for word in words)
    with (tmp_path / "out").open("w") as out:
        ended = process(*words, stdout=out, unbuffered=unbuffered, bytes_of_files=2**16)
    assert ended.returncode == 2, ended.stderr
    assert "standard output: file too large" in ended.stderr


def test_an_output_that_is_closed_is_told(scores_of_runs: Path) -> None:
    command = f"{sys.executable} -m equipoise_cli score worst {scores_of_runs} --over run >&-"
    ended = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (ended.returncode, "standard output: closed" in ended.stderr) == (2, True), ended.stderr
