"""The command new: another topic, which passes its own test."""

from __future__ import annotations

import ast
import errno
import json
import shutil
from pathlib import Path

import nbformat
import pytest

from commands import called as run
from equipoise.attributes import read_attributes
from equipoise.loaders.transcripts import read_transcripts
from equipoise_compendium import project, scaffold, writing
from equipoise_compendium.notebooks import Notebook


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
    assert set(
        read_transcripts(clone / "data" / "conversations" / "my_films.txt", sets)["topic"]
    ) == {"T007"}
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
    with pytest.raises(Exception, match="the word count, got 9"):
        scaffold.check_topic("my_films", tmp_path / "again")


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
