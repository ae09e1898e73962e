"""The commands score gfr, score on folders, harvest and new."""

from __future__ import annotations

import ast
import errno
import json
import shutil
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest

from commands import called as run
from equipoise.attributes import read_attributes
from equipoise.loaders.transcripts import read_transcripts
from equipoise.loaders.trec import read_run
from equipoise.problems import InputError
from equipoise_compendium import project, scaffold, writing
from equipoise_compendium.notebooks import Notebook

RUN = "t1 Q0 a 1 3 r1\nt1 Q0 x 2 2 r1\nt1 Q0 b 3 1 r1\n"
FILES = {
    "r1": RUN,
    "r2": "<SYSDESC>second</SYSDESC>\n" + RUN.replace("Q0 a", "Q0 z").replace("r1", "r2"),
    "qrels": "t1 a L2\nt1 b L1\n",
    "size.members": "t1 a 1 0 0\nt1 b 0 0 1\n",
    "size.target": "0.5\n0.25\n0.25\n",
}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def gfr_arguments(folder: Path, *more: str | Path) -> list[str | Path]:
    size: list[str | Path] = [
        "--membership",
        f"SIZE={folder / 'size.members'}",
        "--target",
        f"SIZE={folder / 'size.target'}",
    ]
    runs: list[str | Path] = [
        "--run",
        folder / "r1",
        "--run",
        folder / "r2",
        "--qrels",
        folder / "qrels",
    ]
    return ["score", "gfr", *runs, *size, "--kind", "SIZE=ordinal", *more]


# --- score gfr ------------------------------------------------------------------------------------


def test_score_gfr_writes_a_tidy_table(files: Path) -> None:
    result = run(*gfr_arguments(files, "-o", files / "out.csv"))
    assert result.exit_code == 0, result.output
    table = pd.read_csv(files / "out.csv", keep_default_na=False)
    assert list(table.columns) == ["run", "topic", "attribute", "measure", "value", "seen"]
    assert set(table["topic"]) == {"t1", ""}
    measures = {
        "ERR",
        "iRBU",
        "GF-NMD",
        "GF-RNOD",
        "GFR-ERR+NMD",
        "GFR-ERR+RNOD",
        "GFR-iRBU+NMD",
        "GFR-iRBU+RNOD",
    }
    assert set(table["measure"]) == measures
    err = table[(table["measure"] == "ERR") & (table["topic"] == "t1")].set_index("run")["value"]
    assert err["r1"] == pytest.approx(
        3 / 4 + 1 / 16 / 3
    )  # worked by hand: L2 at rank 1, L1 at rank 3
    assert err["r2"] == pytest.approx(1 / 4 / 3)
    assert run(*gfr_arguments(files, "-o", files / "out.parquet")).exit_code == 0
    np.testing.assert_allclose(
        pd.read_parquet(files / "out.parquet")["value"], table["value"], rtol=1e-11
    )
    (files / "r2").write_text(
        RUN.replace("r1", "r2")
    )  # a run none of whose first two documents is judged would be refused
    cut = run(*gfr_arguments(files, "--cutoff", "2", "--gains", "1:1,2:1"))
    assert "r1,t1,,ERR,0.5,0.5\n" in cut.output


def test_a_run_scores_the_same_alone_and_among_others(files: Path) -> None:
    arguments = gfr_arguments(files)
    without_r2 = arguments.index(files / "r2") - 1
    both = run(*arguments).output.splitlines()
    alone = run(*arguments[:without_r2], *arguments[without_r2 + 2 :]).output.splitlines()
    assert not [line for line in alone if line.startswith("r2,")]
    assert [line for line in both if line.startswith("r1,")] == [
        line for line in alone if line.startswith("r1,")
    ]


def test_a_folder_of_parquet_runs(files: Path) -> None:
    (files / "runs").mkdir()
    for name in ("r1", "r2"):
        read_run(files / name).to_parquet(files / "runs" / f"{name}.parquet", index=False)
    texts = run(*gfr_arguments(files)).stdout
    folder = [files / "runs" if a == files / "r1" else a for a in gfr_arguments(files)]
    at = folder.index(files / "r2") - 1
    assert run(*folder[:at], *folder[at + 2 :]).stdout == texts


@pytest.mark.parametrize(
    ("change", "status", "complaint"),
    [
        (
            {"r1": RUN.replace("2 2", "2 two"), "qrels": "t1 a L2\n"},
            2,
            "line 2, column score: found 'two'",
        ),
        ({"qrels": "t1 a high\n", "size.target": "0.5\n"}, 2, "2 problems in the input"),
        ({"size.members": "t1 a 1 0\n"}, 2, "line 1, column SIZE: found 4 columns"),
        ({"qrels": "t1 a L2024\n"}, 2, "the qrels have level 2024, and levels above 20 are no"),
        ({"size.members": "t9 a 1 0 0\n"}, 2, "no topic of the qrels has memberships in SIZE"),
    ],
)
def test_bad_files_end_with_a_message_and_write_nothing(
    change: dict[str, str], status: int, complaint: str, files: Path
) -> None:
    for name, text in change.items():
        (files / name).write_text(text)
    result = run(*gfr_arguments(files, "-o", files / "out.csv"))
    assert result.exit_code == status
    assert complaint in result.output
    assert not (files / "out.csv").exists()


def test_a_third_grade_has_a_gain_and_it_is_said(files: Path) -> None:
    """Levels 1 to 3 have 1, 3 and 7: a stop probability of 7/8, as ERR's (2^3 - 1) / 2^3."""
    (files / "qrels").write_text((files / "qrels").read_text().replace("L2", "L3"))
    result = run(*gfr_arguments(files))
    assert result.exit_code == 0
    assert "gains are 2^level - 1 (1:1, 2:3, 3:7); the option gains sets others" in result.stderr
    assert result.stdout == run(*gfr_arguments(files, "--gains", "1:1,2:3,3:7")).stdout
    assert result.stdout == run(*gfr_arguments(files, "--gains", "exponential")).stdout
    assert "gains are 2^level" not in run(*gfr_arguments(files, "--gains", "1:1,3:7")).stderr


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (["--kind", "AGE=ordinal"], "every attribute set needs"),
        (["--kind", "SIZE=nominal"], "each name once"),
        (["--kind", "SIZE"], "NAME=VALUE"),
        (["--gains", "quadratic"], "level:gain"),
        (["--gains", "1:0,2:0"], "with a sum above 0"),
        (["--target", "AGE="], "--target is written NAME=VALUE, each name once; found 'AGE='"),
        (["--weights", "AGE:1"], "weights for AGE; wanted one for each of utility, SIZE"),
        (["--weights", "utility:1"], "weights for utility; wanted one for each of utility, SIZE"),
    ],
)
def test_bad_options_are_refused(more: list[str], complaint: str, files: Path) -> None:
    result = run(*gfr_arguments(files, *more))
    assert result.exit_code == 2
    assert complaint in result.output


# --- score on folders -----------------------------------------------------------------------------


def test_score_takes_a_folder_of_partitions(tmp_path: Path) -> None:
    nuggets, attributes = (
        project.root() / "data" / part
        for part in ("conversations/M002.csv", "attributes/fairweb_movies.yaml")
    )
    table = pd.read_csv(nuggets, dtype=str, keep_default_na=False)
    (tmp_path / "in").mkdir()
    for name, part in table.groupby("run"):
        part.to_parquet(tmp_path / "in" / f"{name}.parquet", index=False)
    for measure in ("gfrc", "gfrc2"):
        one = run(
            "score",
            measure,
            nuggets,
            "--attributes",
            attributes,
            "-o",
            tmp_path / f"{measure}.parquet",
        )
        many = run(
            "score", measure, tmp_path / "in", "--attributes", attributes, "-o", tmp_path / measure
        )
        assert (one.exit_code, many.exit_code) == (0, 0), one.output + many.output
        assert "2 conversations scored" in many.output
        expected = pd.read_parquet(tmp_path / f"{measure}.parquet").astype("object")
        found = pd.concat(
            pd.read_parquet(tmp_path / measure / f"{run}.parquet") for run in ("bing-1", "google-1")
        )
        order = ["run", "measure", "attribute"]
        assert (
            found.sort_values(order).to_numpy().tolist()
            == expected.sort_values(order).to_numpy().tolist()
        )
    assert (
        "name a folder" in run("score", "gfrc", tmp_path / "in", "--attributes", attributes).output
    )
    alone = run(
        "score", "gfrc", nuggets, "--attributes", attributes, "--cluster", "tcp://127.0.0.1:1"
    )
    assert "--cluster scores a folder" in alone.output
    words = ("score", "gfrc2", tmp_path / "in", "--attributes", attributes, "-o", tmp_path / "n")
    assert "without --clusters" in run(*words, "--compare").output


# --- from text to a nugget table ------------------------------------------------------------------


def test_the_road_from_a_run_to_scores(tmp_path: Path) -> None:
    (tmp_path / "ORG.txt").write_text("<T1>\nU:A film?\nS:Here:\n# Tenet https://a/1\n</T1>\n")
    assert run("transcripts", tmp_path / "ORG.txt", "-o", tmp_path / "t.txt").exit_code == 0
    text = (tmp_path / "t.txt").read_text()
    assert text == "##### T1 ORG\n### U1\nU:A film?\n### S1\nS:Here:\n\\# Tenet https://a/1\n"
    (tmp_path / "t.txt").write_text(text + "#L2\nwc= 6\n#SIZE: (1,0)\n")
    (tmp_path / "sets.yaml").write_text("SIZE: {kind: ordinal, groups: [a, b], target: uniform}\n")
    sets: list[str | Path] = ["--attributes", tmp_path / "sets.yaml"]
    assert run("nuggets", tmp_path / "t.txt", *sets, "-o", tmp_path / "n.csv").exit_code == 0
    assert (
        tmp_path / "n.csv"
    ).read_text() == "run,topic,turn,start,end,level,SIZE\nORG,T1,1,6,6,2,1 0\n"
    scored = run("score", "gfrc", tmp_path / "n.csv", *sets)
    assert scored.exit_code == 0
    assert "ORG,T1,,R," in scored.output
    shutil.copy(tmp_path / "t.txt", tmp_path / "again.txt")
    twice = run("nuggets", tmp_path / "t.txt", tmp_path / "again.txt", *sets)
    assert twice.exit_code == 2
    assert "a row for the same place again" in twice.output
    (tmp_path / "t.txt").write_text(text + "#L2\nwc= 5\n")
    assert "2 problems in the input" in run("nuggets", tmp_path / "t.txt", *sets).output


def test_a_harvest_record_becomes_transcripts(tmp_path: Path) -> None:
    record = project.root() / "data" / "conversations" / "harvest" / "qwen-1.5b.jsonl"
    assert run("transcripts", record, "-o", tmp_path / "t.txt").exit_code == 0
    assert len(read_transcripts(tmp_path / "t.txt", {})) == 4 * 60
    assert run("transcripts", tmp_path / "none.txt", "-o", tmp_path / "u.txt").exit_code == 2
    assert not (tmp_path / "u.txt").exists()


# --- harvest --------------------------------------------------------------------------------------


def test_harvest_says_what_it_lacks(tmp_path: Path) -> None:
    topics = tmp_path / "topics.csv"
    topics.write_text("topic,type,request,format,site\nT1,T,Please list.,title,\n")
    arguments: list[str | Path] = [
        "harvest",
        "--topics",
        topics,
        "--model",
        "m",
        "-o",
        tmp_path / "r.jsonl",
        "--tries",
        "1",
    ]
    dead = run(*arguments, "--endpoint", "http://127.0.0.1:9/v1")
    assert dead.exit_code == 1
    assert "topic T1, trial 1, turn 1" in dead.output
    assert "Harvest again into" in dead.output
    settings = json.loads((tmp_path / "r.jsonl").read_text().splitlines()[0])
    assert settings["model"] == "m"
    assert run(*arguments, "--endpoint", "http://user:key@127.0.0.1/v1").exit_code == 2
    topics.write_text("topic,request\nT1,Please list.\n")
    assert "column type" in run(*arguments, "--endpoint", "http://127.0.0.1:9/v1").output


# --- new ------------------------------------------------------------------------------------------


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with what a new topic begins from, and this process in it."""
    here, there = project.root(), tmp_path / "clone"
    for part in (
        "notebooks/own_conversation.ipynb",
        "notebooks/gfrc_time_travel_movies.ipynb",
        "data/registry.tsv",
    ):
        (there / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(here / part, there / part)
    for part in ("data/published", "data/conversations", "data/attributes"):
        shutil.copytree(here / part, there / part)
    monkeypatch.chdir(there)
    monkeypatch.setattr(project, "root", lambda: there)
    return there


def test_a_new_topic_passes_its_own_test_without_editing(clone: Path, tmp_path: Path) -> None:
    result = run("new", "my_films", "--from", "own_conversation", "--topic", "T007")
    assert result.exit_code == 0, result.output
    notebook = Notebook.read(clone / "notebooks" / "my_films.ipynb")
    defaults = {name: parameter.default for name, parameter in notebook.parameters.items()}
    assert defaults["topic"] == "T007"
    assert defaults["transcripts"] == "conversations/my_films.txt"
    assert notebook.title == "T007: conversations scored"
    sets = read_attributes(clone / "data" / "attributes" / "my_films.yaml")
    assert {
        t.topic for t in read_transcripts(clone / "data" / "conversations" / "my_films.txt", sets)
    } == {"T007"}
    source = (clone / "tests" / "test_my_films.py").read_text()
    ast.parse(source)
    assert 'check_topic("my_films", tmp_path)' in source
    scores = scaffold.check_topic("my_films", tmp_path / "report")  # what that test calls
    assert scores
    assert all(0 <= score <= 1 for score in scores)
    manifest = json.loads((tmp_path / "report" / "manifest.json").read_text())
    assert manifest["artefacts"] == []  # nothing for the ledger
    # and it looks at its own files
    transcript = clone / "data" / "conversations" / "my_films.txt"
    transcript.write_text(transcript.read_text().replace("wc= ", "wc= 9", 1))
    with pytest.raises(Exception, match="wc= 9") as caught:
        scaffold.check_topic("my_films", tmp_path / "again")
    assert InputError.__name__ in str(caught.value)


@pytest.mark.parametrize(
    ("name", "source", "topic", "complaint"),
    [
        ("My-Films", "own_conversation", "T1", "no name for a notebook"),
        ("lambda", "own_conversation", "T1", "no name for a notebook"),
        ("../x", "own_conversation", "T1", "no name for a notebook"),
        ("mine", "own_conversation", "two words", "no topic"),
        ("mine", "nowhere", "T1", "a topic can begin from own_conversation"),
        ("mine", "gfrc_time_travel_movies", "T1", "a topic can begin from own_conversation"),
        (
            "own_conversation",
            "own_conversation",
            "T1",
            "there already: notebooks/own_conversation.ipynb",
        ),
    ],
)
def test_what_no_new_topic_can_be(
    name: str, source: str, topic: str, complaint: str, clone: Path
) -> None:
    before = sorted(clone.rglob("*"))
    result = run("new", name, "--from", source, "--topic", topic)
    assert result.exit_code == 2
    assert complaint in " ".join(result.output.split())
    assert sorted(clone.rglob("*")) == before


def test_a_new_topic_is_all_there_or_not_at_all(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its test, which is written last, has no room on the disk."""
    before = sorted(path for path in clone.rglob("*") if path.is_file())

    def no_room(path: Path, content: str, **_: bool) -> None:
        if path.name.startswith(".test_mine"):
            raise OSError(errno.ENOSPC, "No space left on device")
        path.write_text(content)

    monkeypatch.setattr(writing, "_write_through", no_room)
    result = run("new", "mine", "--topic", "T1")
    assert result.exit_code == 2
    assert "test_mine.py: no space left; nothing was written" in " ".join(result.output.split())
    assert sorted(path for path in clone.rglob("*") if path.is_file()) == before


def test_the_template_names_itself_once() -> None:
    """The new notebook's report takes its name from this call; it must be there to be replaced."""
    content = nbformat.read(project.root() / "notebooks" / "own_conversation.ipynb", as_version=4)
    assert sum('Report("own_conversation")' in cell.source for cell in content.cells) == 1
