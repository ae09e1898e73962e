"""Guards what the README and the guide say: commands that exist and run, findings and links."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pandas as pd
import pytest

from equipoise_cli import main
from equipoise_compendium import project
from equipoise_compendium.site import pages

ROOT = project.root()
README = ROOT / "README.md"
GUIDES = [
    ROOT / "lib" / "equipoise_compendium" / "site" / "guide" / f"{name}.md" for name in pages.GUIDES
]


def blocks(path: Path, language: str, section: str = "") -> list[str]:
    text = path.read_text(encoding="utf-8")
    return re.findall(
        rf"^ *```{language}\n(.+?)^ *```", text[text.index(section) :], re.DOTALL | re.MULTILINE
    )


def words_of(block: str) -> list[list[str]]:
    """The words of every command of a block, without comments."""
    lines = block.replace("\\\n", " ").splitlines()
    return [
        words
        for line in lines
        for part in line.split(" && ")
        if (words := shlex.split(part, comments=True))
    ]


@pytest.mark.parametrize("path", [README, *GUIDES], ids=lambda path: path.stem)
def test_every_command_and_option_exists(path: Path) -> None:
    seen = 0
    for words in [
        words
        for block in blocks(path, "sh")
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
    assert seen > 0


def test_every_page_of_the_guide_is_in_the_readme_and_every_file_is_there() -> None:
    linked = re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert all((ROOT / link).exists() for link in linked)
    assert {path.relative_to(ROOT).as_posix() for path in GUIDES} <= set(linked)
    assert {path.stem for path in GUIDES} == {path.stem for path in GUIDES[0].parent.iterdir()}


def test_three_findings_are_those_of_the_reports() -> None:
    findings = (ROOT / "reports" / "findings.md").read_text(encoding="utf-8")
    told = re.findall(r"^- (\*\*.+)$", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(told) == 3
    assert [line for line in told if f"- {line}" not in findings] == []


def follow(block: str, folder: Path) -> str:
    """Run the commands of a block in a folder, but those that install; return the last output."""
    said = ""
    for line in block.replace("\\\n", " ").splitlines():
        if "pip install" not in line:
            command = re.sub(r"^equipoise", f"{shlex.quote(sys.executable)} -m equipoise_cli", line)
            said = subprocess.run(
                command, cwd=folder, shell=True, check=True, capture_output=True, text=True
            ).stdout
    return said


def test_the_first_lines_of_one_who_has_runs(tmp_path: Path) -> None:
    (block,) = blocks(README, "sh", "## Score your runs")[:1]
    rows = [
        (topic, place, f"d{(topic + place) % 4}") for topic in range(6) for place in range(1, 4)
    ]
    for name, turned in (("run1", 0), ("run2", 1)):
        lines = [
            f"q{t} Q0 {document if t % 3 or not turned else f'e{p}'} {p} {4 - p} {name}\n"
            for t, p, document in rows
        ]
        (tmp_path / f"{name}.txt").write_text("".join(lines))
    judged = [f"q{topic} 0 d{(topic + 1) % 4} {1 + topic % 2}\n" for topic in range(6)]
    (tmp_path / "qrels.txt").write_text("".join(judged))
    groups = [
        f"{kind}{number},{'female' if number % 2 else 'male'}\n"
        for number in range(4)
        for kind in "de"
    ]
    (tmp_path / "people.csv").write_text("document,group\n" + "".join(groups))
    assert follow(block, tmp_path).startswith("GFR\n")
    assert set(pd.read_csv(tmp_path / "scores.csv")["run"]) == {"run1", "run2"}
    assert (tmp_path / "runs.svg").stat().st_size > 1000


def test_the_first_lines_of_one_who_has_answers(tmp_path: Path) -> None:
    (block,) = blocks(README, "sh", "## Score your answers")[:1]
    follow(block, tmp_path)
    scores = pd.read_csv(tmp_path / "scores.csv")
    assert {"Informed", "CF-informed"} <= set(scores["mode"].dropna())


def test_the_python_of_the_guide_runs() -> None:
    (block,) = [
        block
        for path in GUIDES
        for block in blocks(path, "python")
        if "import equipoise\n" in block
    ]
    words = [sys.executable, "-c", f"{block}\nprint(sorted(set(scores['measure'])))"]
    said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    assert "GFR" in said
