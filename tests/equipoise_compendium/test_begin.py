"""A compendium of one's own: it needs neither the library nor a study, and is whole at once."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import matplotlib as mpl
import pandas as pd
import pytest

from commands import called
from equipoise import catalogue
from equipoise_compendium import begin, plots, project, settings
from equipoise_compendium.printed import artefacts
from equipoise_compendium.report import Report
from equipoise_compendium.site import pages

PACKAGE = project.root() / "lib" / "equipoise_compendium"
OTHER_PACKAGES = ("equipoise", "equipoise_studies", "equipoise_cli")
ALONE = """\
import sys
from pathlib import Path
from equipoise_compendium import begin
begin.make_compendium(Path(sys.argv[1]), "Mine")
"""
BUILD = """\
from equipoise_compendium import build
from equipoise_compendium.site import pages
for outcome in build.build(jobs=1):
    print(outcome.state, outcome.notebook, outcome.message)
print(pages.refresh(), build.check(), pages.check())
"""


def run(code: str, folder: Path, *words: object) -> str:
    """What a program prints, with no package of ours to be imported but the compendium."""
    blocked = folder.parent / "blocked"
    for package in OTHER_PACKAGES:
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
    assert "KeyboardInterrupt" not in ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def compendium(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compendium as `equipoise init` makes it, built by the compendium alone."""
    above = tmp_path_factory.mktemp("own")
    run(ALONE, above, above / "mine")
    assert run(BUILD, above / "mine") == "built anscombe \nTrue [] []\n"
    return above / "mine"


class Links(HTMLParser):
    """The addresses and anchors of a page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.addresses.append(value)
            if name == "id" and value:
                self.anchors.add(value)


def test_it_is_built_without_the_library_and_without_a_study(compendium: Path) -> None:
    ledger = pd.read_csv(compendium / "reports" / "ledger.csv", keep_default_na=False)
    assert ledger["status"].tolist() == ["explained"] + ["illustration"] * 4
    assert ledger.loc[0, ["cells", "differing"]].astype(int).tolist() == [40, 9]
    assert "by sentence" not in (compendium / "reports" / "ledger.md").read_text(encoding="utf-8")
    claims = pd.read_csv(compendium / "reports" / "claims.csv")
    assert claims["verdict"].tolist() == ["holds", "holds"]
    findings = (compendium / "reports" / "findings.md").read_text(encoding="utf-8")
    assert "0.5001, 0.5000, 0.4997 and 0.4999" in findings


def test_its_site_is_whole_and_speaks_of_nothing_else(compendium: Path) -> None:
    site = compendium / "reports" / "site"
    pages = {page: Links(page) for page in site.glob("*.html")}
    assert {page.stem for page in pages} == {
        "anscombe",
        "artefacts",
        "cite",
        "claims",
        "data",
        "find",
        "guide-recompute",
        "index",
        "variants",
    }
    for page, links in pages.items():
        for address in links.addresses:
            parts = urlsplit(address)
            if parts.scheme:
                assert parts.scheme in ("data", "https"), address
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page.resolve()
            assert target.is_file(), f"{page.name} leads to {address}"
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].anchors, f"{page.name}: {address}"
    index = (site / "index.html").read_text(encoding="utf-8")
    assert "<title>Mine</title>" in index
    assert "5 tables and figures" in index
    assert "anscombe, Figure 4: the regression line" in index
    everything = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert not re.search(r"gfrc|thesis|four (papers|studies)|chapter 3", everything, re.IGNORECASE)


def test_the_compendium_knows_no_study_measure_or_paper() -> None:
    """Neither by an import (see test_house.py) nor by a name in code, templates or style."""
    names = set(artefacts()["paper"])
    names |= {path.parent.name for path in (PACKAGE.parent / "equipoise_studies").glob("*/data.py")}
    for measure in catalogue.MEASURES:
        names |= set(re.findall(r"\b[A-Za-z]*[A-Z]{2,}[A-Za-z0-9]*\b", measure.name))
    names |= {"M002", "R112", "BM25"}
    names -= {"R", "P"}
    pattern = re.compile(rf"(?<![A-Za-z])({'|'.join(map(re.escape, sorted(names)))})(?![A-Za-z])")
    endings = {".py", ".html", ".css", ".js", ".j2", ".txt", ".md", ".toml", ".csv", ".ipynb"}
    seen = 0
    for path in sorted(PACKAGE.rglob("*")):
        if path.suffix in endings:
            match = pattern.search(path.read_text(encoding="utf-8"))
            assert match is None, f"{path.relative_to(PACKAGE)}: {match and match[0]}"
            seen += 1
    assert seen > 50


def test_its_tests_pass_before_and_after_the_build(compendium: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=compendium,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    assert "2 passed" in ran.stdout


def test_a_differing_cell_without_its_reason_fails_the_build(
    compendium: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from equipoise_compendium import scaffold

    monkeypatch.setattr(project, "root", lambda: compendium)
    monkeypatch.chdir(compendium)
    reasons = compendium / "data" / "published" / "anscombe" / "explanations.csv"
    text = reasons.read_text(encoding="utf-8")
    reasons.write_text(re.sub(r"anscombe/table-1,2,R2,.*\n", "", text), encoding="utf-8")
    try:
        said = scaffold.unexplained("anscombe", tmp_path / "run")
    finally:
        reasons.write_text(text, encoding="utf-8")
    assert "anscombe/table-1, 2, R2: printed .667" in said
    assert "0.666242" in said


def test_a_paper_is_added_and_builds_at_once(
    compendium: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from equipoise_compendium import scaffold

    monkeypatch.setattr(project, "root", lambda: compendium)
    monkeypatch.chdir(compendium)
    result = called("new", "smith2020", "--paper", "--title", "Means of two groups")
    assert result.exit_code == 0, result.output
    assert "equipoise build recompute_smith2020" in result.output
    assert scaffold.unexplained("recompute_smith2020", tmp_path / "run") == ""
    manifest = (tmp_path / "run" / "manifest.json").read_text(encoding="utf-8")
    assert '"status": "exact"' in manifest
    assert '"verdict": "holds"' in manifest
    with (compendium / "data" / "published" / "artefacts.csv").open(encoding="utf-8") as file:
        assert [row["artefact"] for row in csv.DictReader(file)][-2:] == ["table-1", "figure-1"]
    again = called("new", "smith2020", "--paper")
    assert again.exit_code == 2
    assert "choose another key" in again.output
    for path in compendium.rglob("*smith2020*"):
        if path.is_file():
            path.unlink()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["Smith 2020", "--paper"], "no key of a paper"),
        (["smith", "--paper", "--topic", "T1"], "either --topic TOPIC or --paper"),
        (["smith"], "either --topic TOPIC or --paper"),
        (["smith", "--topic", "T1", "--title", "x"], "give it with --paper"),
        (["smith", "--paper", "--title", "a {b}"], "no quotation mark"),
    ],
)
def test_what_cannot_be_begun_is_refused(words: list[str], told: str) -> None:
    result = called("new", *words)
    assert result.exit_code == 2
    assert told in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('name = "Mine"\nleed = "x"\n', r"leed: Extra inputs .* its keys are name, lead"),
        ("guide = 3\n", "guide: .*found 3"),
        ("name = Mine\n", r"data/compendium\.toml is no TOML: .*line 1"),
        ('[picture]\ncaption = "x"\n', r"picture\.artefact: Field required"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, told: str
) -> None:
    monkeypatch.setattr(project, "root", lambda: tmp_path)
    assert settings.settings().name == "Compendium"
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "compendium.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=told):
        settings.settings()


def test_colours_of_ones_own_are_used_and_the_report_rests_on_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project, "root", lambda: tmp_path)
    (tmp_path / "data" / "published").mkdir(parents=True)
    columns = "paper,artefact,kind,title,place,absent_because\n"
    (tmp_path / "data" / "published" / "artefacts.csv").write_text(columns, encoding="utf-8")
    toml = tmp_path / "data" / "compendium.toml"
    with project.used_meanwhile() as used, mpl.rc_context():
        Report("mine")
        assert mpl.rcParams["axes.prop_cycle"].by_key()["color"] == list(plots.COLOURS)
    assert "data/compendium.toml" not in used
    toml.write_text('colours = ["#112233", "#445566"]\n', encoding="utf-8")
    with project.used_meanwhile() as used, mpl.rc_context():
        Report("mine")
        assert mpl.rcParams["axes.prop_cycle"].by_key()["color"] == ["#112233", "#445566"]
    assert used["data/compendium.toml"] == project.sha256(toml)


def test_a_page_of_the_guide_that_is_nowhere_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project, "root", lambda: tmp_path)
    (tmp_path / "data").mkdir()
    toml = tmp_path / "data" / "compendium.toml"
    toml.write_text('guide = ["mine"]\nguides = "guide"\n', encoding="utf-8")
    with pytest.raises(FileNotFoundError, match=r"no file mine\.md is in guide"):
        pages.guides()
    (tmp_path / "guide").mkdir()
    (tmp_path / "guide" / "mine.md").write_text("# Mine\n", encoding="utf-8")
    assert pages.guides() == {"guide-mine": ("Mine", "# Mine\n")}


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(ValueError, match="is there already"):
        begin.make_compendium(tmp_path / "mine", "Mine")
    with pytest.raises(ValueError, match="is no name"):
        begin.make_compendium(tmp_path / "other", 'a "name"')
    assert not (tmp_path / "other").exists()
