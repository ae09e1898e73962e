"""Guards init and new: a compendium of one's own is whole at once, without commands and studies."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pandas as pd
import pytest

from commands import called
from crawl import broken_links
from equipoise import catalogue
from equipoise_compendium import project, settings, start
from equipoise_compendium.build import build, check
from equipoise_compendium.printed import artefacts
from equipoise_compendium.site import pages
from prose import shipped

PACKAGE = project.root() / "lib" / "equipoise_compendium"
ALONE = """\
import sys
from pathlib import Path
from equipoise_compendium import start
start.make_compendium(Path(sys.argv[1]), "Mine")
"""
BUILD = """\
from equipoise_compendium import build
from equipoise_compendium.site import pages
for outcome in build.build(jobs=1):
    print(outcome.state, outcome.notebook, outcome.error)
pages.refresh()
print(build.check(), pages.check())
"""


def run(code: str, folder: Path, *words: object) -> str:
    """Return what a program prints that can import no study and no command."""
    blocked = folder.parent / "blocked"
    for package in ("equipoise_studies", "equipoise_cli"):
        (blocked / package).mkdir(parents=True, exist_ok=True)
        (blocked / package / "__init__.py").write_text(f"raise ImportError('{package} is blocked')")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(blocked), str(PACKAGE.parent)])}
    ran = subprocess.run(
        [sys.executable, "-c", code, *map(str, words)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def compendium(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compendium as `equipoise init` makes it, built by the compendium alone."""
    above = tmp_path_factory.mktemp("own")
    run(ALONE, above, above / "mine")
    assert run(BUILD, above / "mine") == "built anscombe \n[] []\n"
    return above / "mine"


@pytest.fixture
def within(compendium: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(project, "root", lambda: compendium)
    monkeypatch.chdir(compendium)
    return compendium


def test_it_is_built_without_the_library_and_without_a_study(compendium: Path) -> None:
    ledger = pd.read_csv(compendium / "reports" / "ledger.csv", keep_default_na=False)
    assert ledger["status"].tolist() == ["reproduced, differences explained"] + ["redrawn"] * 4
    assert ledger.loc[0, ["cells", "differing"]].astype(int).tolist() == [40, 9]
    claims = pd.read_csv(compendium / "reports" / "claims.csv")
    assert claims["kind"].tolist() == ["additional analysis", "consistency check"]
    assert claims["in_paper"].fillna("").tolist() == ["", "agrees"]
    findings = (compendium / "reports" / "findings.md").read_text(encoding="utf-8")
    assert "0.5001, 0.5000, 0.4997 and 0.4999" in findings


def test_its_site_is_whole_and_speaks_of_nothing_else(compendium: Path) -> None:
    site = compendium / "reports" / "site"
    assert broken_links(site) == []
    index = (site / "index.html").read_text(encoding="utf-8")
    assert "<title>Mine</title>" in index
    assert "5 tables and figures" in index
    assert "31 of 40" in index
    cells = (site / "artefacts.html").read_text(encoding="utf-8")
    assert cells.count('<use href="#mark-explained"') == 9 + 1  # the legend has one, too
    text = "".join(page.read_text(encoding="utf-8") for page in site.glob("*.html"))
    assert not re.search(r"gfrc|\bthesis|four (papers|studies)|chapter 3", text, re.IGNORECASE)


def test_the_compendium_knows_no_study_measure_or_paper() -> None:
    """Neither by an import (see test_house.py) nor by a name in code, templates or style."""
    ledger = pd.read_csv(project.root() / "reports" / "ledger.csv")
    names = set(ledger.loc[ledger["notebook"].isin(shipped()), "paper"]) | {"M002", "R112", "BM25"}
    names |= {path.parent.name for path in (PACKAGE.parent / "equipoise_studies").glob("*/data.py")}
    for measure in catalogue.MEASURES:
        names |= set(re.findall(r"\b[A-Za-z]*[A-Z]{2,}[A-Za-z0-9]*\b", measure.name))
    names -= {"R", "P", "conversations"}  # which are words, too
    pattern = re.compile(rf"(?<![A-Za-z])({'|'.join(map(re.escape, sorted(names)))})(?![A-Za-z])")
    files = [path for path in sorted(PACKAGE.rglob("*.*")) if path.suffix not in (".pyc", ".typed")]
    assert len(files) > 40
    for path in files:
        match = pattern.search(path.read_text(encoding="utf-8"))
        assert match is None, f"{path.relative_to(PACKAGE)}: {match and match[0]}"


def test_line_ends_of_windows_make_no_file_outdated(
    compendium: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path / "clone"
    shutil.copytree(compendium, clone)
    for path in clone.rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    monkeypatch.setattr(project, "root", lambda: clone)
    assert check() == pages.check() == []
    (clone / "reports" / "ledger.csv").write_text("altered")
    assert check() == ["reports/ledger.csv is outdated: run equipoise build"]


def lint(folder: Path, *paths: str) -> None:
    """Check style and format of Python and notebooks, by the settings in the folder, if any."""
    for words in (["check"], ["format", "--check"]):
        command = [sys.executable, "-m", "ruff", *words, "--no-cache", *paths]
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout


def test_a_paper_is_added(within: Path) -> None:
    """That it builds, and that the tests of a compendium pass, is tried by test_readme.py."""
    result = called("new", "smith2020", "--paper", "--title", "Means of two groups")
    assert result.exit_code == 0, result.output
    assert "equipoise build recompute_smith2020" in result.output
    lint(within, ".")
    assert artefacts()["artefact"].tolist()[-2:] == ["table-1", "figure-1"]
    assert "smith2020" in settings.bibliography()
    again = called("new", "smith2020", "--paper")
    assert again.exit_code == 2
    assert "choose another name" in again.output


def test_the_workflow_installs_the_wheel_that_the_guide_makes() -> None:
    guide = (PACKAGE / "site" / "guide" / "recompute.md").read_text(encoding="utf-8")
    template = PACKAGE / "starter" / "compendium"
    for text in (guide, (template / "README.md").read_text(encoding="utf-8")):
        assert re.findall(r"pip wheel --no-deps -w (\S+) ", text) == ["wheels"]
    assert "PIP_FIND_LINKS = {tox_root}{/}wheels\n" in (template / "tox.ini").read_text()
    assert "--find-links wheels\n" in (template / "environment.yml").read_text()


def test_the_guide_describes_every_column_of_the_protocol() -> None:
    guide = (PACKAGE / "site" / "guide" / "recompute.md").read_text(encoding="utf-8")
    described = set(re.findall(r"`(\w+)`", guide))
    for name in ("claims.csv", "collections.csv"):
        columns = pd.read_csv(PACKAGE / "starter" / "paper" / name).columns
        assert set(columns) <= described, name


def test_a_topic_starts_from_the_example(root: Path) -> None:
    example = start.EXAMPLE
    repository = PACKAGE.parents[1]
    for name in (f"notebooks/{example}.ipynb", "data/conversations", "data/attributes"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(repository / name)
    (root / "data" / "conversations").unlink()
    (root / "data" / "attributes").unlink()
    for folder, file in (
        ("conversations", "turing_award.txt"),
        ("attributes", "turing_award.yaml"),
    ):
        (root / "data" / folder).mkdir()
        text = (repository / "data" / folder / file).read_text(encoding="utf-8")
        (root / "data" / folder / file).write_text(text, encoding="utf-8")
    result = called("new", "my_films", "--topic", "T007")
    assert result.exit_code == 0, result.output
    # pyproject.toml chooses the rules, and lib is what a module of ours is known by
    for name in ("pyproject.toml", "lib"):
        (root / name).symlink_to(repository / name)
    lint(root, "notebooks/my_films.ipynb", "tests/test_my_films.py")
    # pytest is not among the packages that `new` needs.
    assert "equipoise build my_films" in result.output
    assert "pytest" not in result.output
    assert "S001" not in (root / "data" / "conversations" / "my_films.txt").read_text()
    its_test = runpy.run_path(str(root / "tests" / "test_my_films.py"))["test_my_films"]
    with mock.patch.dict(os.environ):
        its_test(root)
    assert called("new", "my_films", "--topic", "T007").exit_code == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["Smith 2020", "--paper"], "a key must be lower-case"),
        (["smith", "--paper", "--topic", "T1"], "one of --topic TOPIC and --paper, not both"),
        (["smith"], "one of --topic TOPIC and --paper, not both"),
        (["smith", "--topic", "T1", "--title", "x"], "--title must be given with --paper"),
        (["smith", "--paper", "--title", "a {b}"], "no quotation mark"),
        (["smith", "--paper", "--title", "a\tb"], "no quotation mark"),
        (["smith", "--paper", "--title", "a\u2028b"], "no quotation mark"),
        (["class", "--topic", "T1"], "a name must be"),
        (["films", "--topic", "T 1"], "a topic must be"),
    ],
)
def test_names_that_cannot_be_used(words: list[str], message: str) -> None:
    result = called("new", *words)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('name = "Mine"\nleed = "x"\n', "leed: Extra inputs"),
        ("guide = 3\n", "guide: .*got 3"),
        ('actions = [["javascript:alert(1)", "x"]]\n', r"actions: .*must begin with https"),
        ("name = Mine\n", r"data/compendium\.toml must be TOML .*line 1"),
        ("systems = 3\n", "systems: .*got 3"),
    ],
)
def test_settings_that_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.setattr(project, "root", lambda: tmp_path)
    assert settings.settings().name == "Compendium"
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "compendium.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        settings.settings()


def test_a_compendium_without_the_example_starts_in_an_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = called("init", ".", "--no-example")
    assert result.exit_code == 0, result.output
    assert "anscombe" not in "".join(path.name for path in tmp_path.rglob("*"))
    monkeypatch.setattr(project, "root", lambda: tmp_path)
    assert len(artefacts()) == 0
    assert list(build()) == []
    assert pd.read_csv(tmp_path / "reports" / "ledger.csv").empty
    pages.refresh()
    assert broken_links(tmp_path / "reports" / "site") == []
    result = called("new", "smith2020", "--paper")
    unchanged = start.unchanged_sentences()
    assert unchanged[0].startswith("data/published/artefacts.csv: unchanged title of smith2020/")
    assert unchanged[-1].startswith("notebooks/recompute_smith2020.ipynb: unchanged")


@pytest.mark.usefixtures("one_process")
def test_the_error_of_a_notebook_is_not_hidden_by_the_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start.make_compendium(tmp_path / "mine", "Mine")
    monkeypatch.setattr(project, "root", lambda: tmp_path / "mine")
    notebook = tmp_path / "mine" / "notebooks" / "anscombe.ipynb"
    notebook.write_text(notebook.read_text().replace("spread = ", "spread = 1 / 0 + "))
    (outcome,) = build(jobs=1)
    assert outcome.error.count("\n") == 0
    assert re.fullmatch(r"cell \d+, line 1: ZeroDivisionError: division by zero", outcome.error)


def test_a_folder_with_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine" / "old").mkdir(parents=True)
    with pytest.raises(ValueError, match="must be a new or an empty folder"):
        start.make_compendium(tmp_path / "mine", "Mine")
    with pytest.raises(ValueError, match="--name must be"):
        start.make_compendium(tmp_path / "other", 'a "name"')
    assert not (tmp_path / "other").exists()
