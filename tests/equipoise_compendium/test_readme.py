"""Guards what the README and the guide say: commands that exist and run, findings and links."""

from __future__ import annotations

import compileall
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import tomllib
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path

import click
import pandas as pd
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from commands import called
from equipoise_cli import main
from equipoise_compendium import project
from equipoise_compendium.ledger import tally
from equipoise_compendium.printed import printed_table
from equipoise_compendium.settings import settings
from equipoise_compendium.terms import ELSEWHERE, IN_PAPER
from prose import shipped
from small_repository import Once

ROOT = project.root()
README = ROOT / "README.md"
GUIDES = []
for guide in settings().guide:
    own = ROOT / settings().guides / f"{guide}.md"
    GUIDES.append(own if own.is_file() else ROOT / "lib/equipoise_compendium/site/guide" / own.name)
RECOMPUTE = GUIDES[settings().guide.index("recompute")]


def blocks(path: Path, *languages: str) -> list[str]:
    """The fenced blocks of a page in these languages, in their order, without their indentation.

    What is ``sh`` or ``python`` runs as it stands; ``console`` names what only a reader has. README
    fences by tildes what a shell does not run.
    """
    text = path.read_text(encoding="utf-8")
    pattern = rf"^( *)(?:```|~~~)(?:{'|'.join(languages)})\n(.+?)^ *(?:```|~~~)"
    found = re.findall(pattern, text, re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(block) for _, block in found]


def words_of(block: str) -> list[list[str]]:
    """The words of every command of a block, without comments."""
    lines = block.replace("\\\n", " ").splitlines()
    return [
        words
        for line in lines
        for part in line.split(" && ")
        if (words := shlex.split(part, comments=True))
    ]


def repeats_readme(path: Path) -> bool:
    """Whether the README has every block of a page, and installs no more than the page."""
    shared = {}
    for block in blocks(README, "sh"):
        install, *commands = words_of(block)
        if "install" in install:
            shared[str(commands)] = install
    for block in blocks(path, "sh"):
        install, *commands = words_of(block)
        if "install" not in install or str(commands) not in shared:
            return False
        if not installed(shlex.join(shared[str(commands)])) <= installed(shlex.join(install)):
            return False
    return bool(blocks(path, "sh")) and path != README


def test_the_workflow_of_the_guide_fails_where_a_source_is_cited_too_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workflow,) = blocks(GUIDES[settings().guide.index("answers")], "yaml")
    steps = yaml.safe_load(workflow)["jobs"]["citations"]["steps"]
    (gate,) = (step["run"] for step in steps if step.get("run", "").startswith("equipoise"))
    shutil.copy(ROOT / "data" / "examples" / "rag.jsonl", tmp_path / "answers.jsonl")
    monkeypatch.chdir(tmp_path)
    for threshold, status in ((10, 0), (5, 3)):
        words = shlex.split(gate.replace("10 points", f"{threshold} points"))
        assert called(*words[1:], "--force").exit_code == status


@pytest.mark.parametrize("path", [README, *GUIDES], ids=lambda path: path.stem)
def test_every_command_and_option_exists(path: Path) -> None:
    seen = 0
    for words in [
        words
        for block in blocks(path, "sh", "console")
        for words in words_of(block)
        if words[0] == "equipoise"
    ]:
        command: click.Command = main
        rest = words[1:]
        while isinstance(command, click.Group):
            command = command.commands[rest.pop(0)]
        known = {
            name
            for parameter in command.get_params(click.Context(command))
            for name in parameter.opts
        }
        given = {word for word in rest if word.startswith("-")}
        assert given <= known, " ".join(words)
        seen += 1
    assert seen > 0 or path.stem == "recipes"  # that page is Python alone


def test_every_page_of_the_guide_is_in_the_readme_and_every_file_is_there() -> None:
    linked = re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert all((ROOT / link).exists() for link in linked)
    assert {path.relative_to(ROOT).as_posix() for path in GUIDES} <= set(linked)
    folders = {path.parent for path in GUIDES}
    assert {path for folder in folders for path in folder.iterdir()} == set(GUIDES)


def test_the_readme_has_at_most_800_words() -> None:
    assert len(README.read_text(encoding="utf-8").split()) <= 800


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_every_link_of_the_guide_leads_to_a_file(path: Path) -> None:
    prose = re.sub(r"```.+?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#:]+)", prose)
    assert [link for link in links if not (path.parent / link).exists()] == []


FINDING = re.compile(
    r"^- (\*\*.+\*\*) .+ ([−\d.]+)(?: points)? \(95% CI \[(\S+), (\S+)\]\).+#claim-(\S+)\)",
    re.MULTILINE,
)
"""A finding of README: its sentence, estimate and interval, and the claim with the evidence."""


def test_three_findings_are_those_of_the_reports() -> None:
    findings = (ROOT / "reports" / "findings.md").read_text(encoding="utf-8")
    claims = pd.read_csv(ROOT / "reports" / "claims.csv")
    told = FINDING.findall(README.read_text(encoding="utf-8"))
    assert len(told) == 3
    for sentence, *numbers, claim in told:
        assert f"- {sentence}" in findings
        decimals = len(numbers[0].partition(".")[2])
        rows = claims.loc[claims["paper"] + "-" + claims["claim"] == claim]
        shown = rows[["estimate", "low", "high"]].map(f"{{:.{decimals}f}}".format)
        assert [number.replace("−", "-") for number in numbers] in shown.to_numpy().tolist()


STATUSES = ("redrawn", "replicated on other data", "not reproduced")
"""Of tables and figures that have no published cells to compare."""


def test_the_counts_are_those_of_the_ledger() -> None:
    """The sentences on tables and figures and on the answers to findings, which builds write."""
    ledger = pd.read_csv(ROOT / "reports" / "ledger.csv", keep_default_na=False)
    if not set(ledger["notebook"]) <= {"", *shipped()}:
        pytest.skip("a paper of this fork is among the counts of the ledger")
    text = README.read_text(encoding="utf-8")
    compared = ledger[ledger["cells"] != ""]
    cells, differing = (compared[name].astype(int).sum() for name in ("cells", "differing"))
    assert (
        f"Of {len(ledger)} tables and figures, {len(compared)} are compared with published "
        f"values: {cells - differing} of {cells} cells agree."
    ) in text
    statuses = ledger.loc[ledger["cells"] == "", "status"].value_counts()
    others = [f"{statuses[name]} {name}" for name in STATUSES]
    assert f"these, {', '.join(others[:-1])} and {others[-1]}." in text
    assert set(statuses.index) == set(STATUSES)
    answers = pd.read_csv(ROOT / "reports" / "answers.csv", dtype=str)
    numbers = {row[:2]: int(row[2]) for row in tally(answers)}
    paper = [numbers["in the paper", answer] for answer in IN_PAPER]
    elsewhere = [numbers["elsewhere", answer] for answer in ELSEWHERE]
    assert paper[2] == 0  # contradicted
    assert (
        f"The papers' numbers carry (show) {paper[0]} of {sum(paper)} findings and do not carry "
        f"{paper[1]}; {paper[3]} cannot be recomputed. Elsewhere, {elsewhere[0]} of "
        f"{sum(elsewhere[:3])} tested findings hold, {elsewhere[1]} do not hold, and "
        f"{elsewhere[2]} are inconclusive."
    ) in text


# --- what runs ------------------------------------------------------------------------------------

ABSENT = "EQUIPOISE_TEST_ABSENT"
FINDER = f"""
import os, sys
from importlib.machinery import PathFinder

ABSENT = set(os.environ.get("{ABSENT}", "").split())

class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] not in ABSENT:
            return super().find_spec(name, path, target)

sys.meta_path[:] = [Finder if finder is PathFinder else finder for finder in sys.meta_path]
"""
"""What makes modules as if absent: those of distributions that an install line does not bring."""
DEFAULT = "python -m pip install '.[figures]'"


def installed(line: str) -> set[str]:
    """The distributions that an install line of a page brings, by what ours say they need."""
    words = [word for word in shlex.split(line, comments=True) if word not in ("-c", "-e")]
    project_table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project_table["optional-dependencies"]
    needed: list[str] = list(project_table["dependencies"])
    for word in words[words.index("install") + 1 :]:
        if word.startswith((".", "/")):  # a clone
            needed += [f"equipoise[{word.partition('[')[2]}"] if "[" in word else []
        elif "." not in word:
            needed.append(word)
    names: set[str] = set()
    while needed:
        requirement = Requirement(needed.pop())
        name = canonicalize_name(requirement.name)
        chosen = {"", *requirement.extras}
        if name == "equipoise":
            for extra in requirement.extras:
                needed += extras[extra]
            continue
        if any(f"{name}[{extra}]" not in names for extra in chosen):
            names |= {f"{name}[{extra}]" for extra in chosen}
            with suppress(metadata.PackageNotFoundError):
                for text in metadata.requires(name) or ():
                    marker = Requirement(text).marker
                    if marker is None or any(marker.evaluate({"extra": one}) for one in chosen):
                        needed.append(text)
    return {name.partition("[")[0] for name in names}


@cache
def absent_modules(line: str) -> list[str]:
    """Modules of this environment that nobody has who has followed an install line."""
    names = {*installed(line), "equipoise", "pip", "setuptools"}
    absent = []
    for module, distributions in metadata.packages_distributions().items():
        if names.isdisjoint(map(canonicalize_name, distributions)):
            absent.append(module)
    return absent


def copy_tracked_files(folder: Path) -> None:
    """Copy what a clone has, with compiled modules, so that no clone compiles them."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    ended = subprocess.run(listed, cwd=ROOT, capture_output=True, check=False)
    if ended.returncode:
        pytest.skip("not a git checkout: what a clone has is not known")
    for name in ended.stdout.decode().split("\0"):
        # The pages create my_films, which a fork may have.
        if name and "my_films" not in name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    compileall.compile_dir(folder / "lib", quiet=1)


class Clone:
    """A copy of the tracked files, and an environment whose programs are what pages name."""

    def __init__(self, tracked: Path, folder: Path) -> None:
        self.folder, self.programs = folder / "clone", folder / "programs"
        shutil.copytree(tracked, self.folder)
        self.programs.mkdir()
        (self.programs / "sitecustomize.py").write_text(FINDER)
        python = shlex.quote(sys.executable)
        for name, command in (
            ("python", python),
            ("equipoise", f"{python} -m equipoise_cli"),
            ("ir_measures", f"{python} -m ir_measures"),
        ):
            (self.programs / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
            (self.programs / name).chmod(0o755)
        self.install_line = DEFAULT
        self.place = self.folder
        self.said = ""

    def run(self, *words: str) -> None:
        """Run a program where the page would, with what its install line brings."""
        environment = os.environ | {
            "PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": f"{self.programs}{os.pathsep}{self.folder / 'lib'}",
            ABSENT: " ".join(absent_modules(self.install_line)),
            # pytest finds plugins past what makes modules absent.
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "TQDM_DISABLE": "1",
        }
        environment.pop("EQUIPOISE_MIRROR", None)
        ended = subprocess.run(
            words,
            cwd=self.place,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.said += ended.stdout
        assert ended.returncode == 0, f"{words[-1]}\n{self.said[-3000:]}"

    def follow(self, path: Path) -> None:
        """Run every block of a page that runs, one after the other."""
        for block in blocks(path, "sh"):
            lines = block.splitlines()
            # The two commands of tox are those of the workflows.
            installs = [line for line in lines if "pip install" in line and "tox" not in line]
            self.install_line = (installs or [self.install_line])[-1]
            commands = [line for line in lines if "pip install" not in line]
            place = self.programs / "place"
            self.run("bash", "-euo", "pipefail", "-c", "\n".join([*commands, f"pwd > '{place}'"]))
            self.place = Path(place.read_text().strip())
        code = []
        for block in blocks(path, "python"):
            code.append(block)
            if "scores =" in block:
                code.append("print(scores if isinstance(scores, dict) else scores.to_csv())")
        if code:  # a page is read from top to bottom: its blocks share their names
            self.run("python", "-W", "error", "-c", "\n".join(code))

    def table(self, name: str) -> pd.DataFrame:
        return pd.read_csv(self.folder / name, keep_default_na=False)


def check_comparison(clone: Clone) -> None:
    """The leaderboard of the example, and the difference with its interval."""
    (line,) = re.findall(r"^dense +bm25 +20 +(\S+) +(\S+) +(\S+)", clone.said, re.MULTILINE)[:1]
    difference, low, high = (f"{float(number):.3f}" for number in line)
    sentence = f"`dense` exceeds `bm25` by {difference} (95% CI [{low}, {high}])"
    assert sentence in README.read_text(encoding="utf-8").replace("\n", " ")
    assert (clone.folder / "runs.svg").stat().st_size > 1000


def check_output(clone: Clone, path: Path) -> None:
    """The output that a page shows is what its commands print, but for blanks at line ends.

    A line ``…`` is for any lines, and ``…`` in a line for the rest of it.
    """
    said = re.sub(r" +$", "", clone.said, flags=re.MULTILINE)
    shown = blocks(path, "text")
    assert shown
    for block in shown:
        lines = re.sub(r"^…\\\n", r"(?:.*\n)*?", re.escape(block), flags=re.MULTILINE)
        assert re.search(lines.replace("…", ".*"), said), block


def check_figure(clone: Clone, name: str) -> None:
    """The figure that a page shows is what its command draws."""
    drawn, shown = (
        [float(number) for number in re.findall(r"-?\d+\.\d+", path.read_text())]
        for path in (clone.folder / name, ROOT / "data" / "examples" / name)
    )
    assert drawn == pytest.approx(shown, abs=0.01)


def check_readme(clone: Clone) -> None:
    check_comparison(clone)
    assert len(blocks(README, "text")) == 3
    by_age = clone.table("scores.csv").query("topic == '' and attribute == 'age'")
    mean = by_age.set_index("run")["value"].astype(float)
    sentence = f"`dense` is less fair: {mean['dense']:.3f}, `bm25` {mean['bm25']:.3f}."
    assert sentence in README.read_text(encoding="utf-8")
    check_figure(clone, "runs.svg")
    assert (clone.folder / "reports" / "my_films" / "my_films.ipynb").is_file()
    assert (clone.folder / "tests" / "test_my_films.py").is_file()


def check_start(clone: Clone) -> None:
    folder = clone.folder / "reports" / "variants" / "gfrc_time_travel_movies"
    assert (folder / "patience=600_ordinal=nmd" / "tables" / "gfrc-table-1.csv").is_file()
    printed = printed_table("gfrc2/table-3").set_index("run")["GFRC2"]
    for run, score in re.findall(r"^(\S+),R112,,GFRC2,(\S+)$", clone.said, re.MULTILINE):
        assert f"{float(score):.6f}" == printed[run]


def check_conversations(clone: Clone) -> None:
    assert len(clone.table("nuggets.csv")) > 4


def check_runs(clone: Clone) -> None:
    means = clone.table("scores.csv").query("topic == '' and attribute == 'age'")
    assert set(means["measure"]) == {"GF-NMD", "GF-RNOD"}
    assert set(clone.table("crbo.csv")["measure"]) == {"CRBO(p=0.9)@10"}
    assert re.search(r"GFR@10: 0\.\d+", clone.said)


def check_answers(clone: Clone) -> None:
    """CAB by a plain way: in favour of people, of whom all relevant documents are."""
    check_figure(clone, "cab.svg")
    gaps = []
    precision: dict[tuple[str, str], float] = {}
    for line in (ROOT / "data" / "examples" / "answers.jsonl").read_text().splitlines():
        answer = json.loads(line)
        cited = set(map(int, re.findall(r"\[(\d)\]", answer["answer"])))
        share = len(cited & set(answer["relevant"])) / len(cited)
        precision[answer["question"], answer["mode"]] = share
        assert answer["relevant_author"] == "Human"
    for question, mode in precision:
        if mode == "Informed":
            gaps.append(precision[question, mode] - precision[question, "CF-informed"])
    cab = clone.table("scores.csv").set_index("measure").loc["CAB-precision"]
    assert float(cab["value"]) == pytest.approx(sum(gaps) / len(gaps))
    assert int(cab["count"]) == len(gaps)


def check_compare(clone: Clone) -> None:
    check_comparison(clone)
    means = clone.table("scores.csv").query("topic == '' and measure == 'GFR-ERR+JSD'")
    mean = means.set_index("run")["value"].astype(float)
    difference = f"{mean['dense'] - mean['bm25']:.3f}"
    assert f"`dense` exceeds `bm25` by {difference} (95% CI [" in README.read_text()
    assert r"\toprule" in clone.said


def check_orders(clone: Clone) -> None:
    assert any((clone.folder / "permuted").iterdir())


def check_recompute(clone: Clone) -> None:
    """The numbers of the example, and the paper that is added."""
    ledger = clone.table("my-compendium/reports/ledger.csv").set_index(["paper", "artefact"])
    cells, differing = ledger.loc[("anscombe", "table-1"), ["cells", "differing"]].map(int)
    guide = RECOMPUTE.read_text(encoding="utf-8")
    assert f"one table with {cells} published cells" in guide
    assert f"{cells - differing} cells agree. Nine differ" in guide
    assert differing == 9
    assert ledger.loc[("smith2020", "table-1"), "status"] == "reproduced"
    claims = clone.table("my-compendium/reports/claims.csv").set_index("claim")
    assert claims.loc["b-is-larger", "in_paper"] == "agrees"
    assert "1 passed" in clone.said


CHECKS = {
    "README": check_readme,
    "start": check_start,
    "conversations": check_conversations,
    "runs": check_runs,
    "answers": check_answers,
    "compare": check_compare,
    "orders": check_orders,
    "recompute": check_recompute,
}


def test_a_figure_without_matplotlib_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(FINDER)
    environment = os.environ | {
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT / 'lib'}",
        ABSENT: " ".join(absent_modules("python -m pip install .")),
    }
    assert "matplotlib" in environment[ABSENT].split()
    for words in (["score", "attribution", "no-such.jsonl", "--figure", "cab.svg"],):
        command = [sys.executable, "-m", "equipoise_cli", *words]
        ended = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 1
        assert "matplotlib not found; in your clone, run python -m pip install '.[" in ended.stderr
        assert "no-such" not in ended.stderr
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = table["optional-dependencies"].items()
    assert [name for name, needs in extras if "matplotlib" in str(needs)] == ["figures"]


REPEATING = [path for path in GUIDES if repeats_readme(path)]
RUN = [path for path in (README, *GUIDES) if path not in REPEATING]


@pytest.mark.parametrize("path", RUN, ids=lambda path: path.stem)
def test_every_block_runs_as_it_stands_in_a_clone(path: Path, tmp_path: Path, once: Once) -> None:
    """With the modules that its install line brings and no others, and the number that matters."""
    clone = Clone(once("tracked", copy_tracked_files), tmp_path)
    clone.follow(path)
    for page in [path, *REPEATING] if path == README else [path]:
        check_output(clone, page)
    if path.stem in CHECKS:
        CHECKS[path.stem](clone)
