"""Guards the wheel: what the README runs, and `init` and `build`, without a clone and offline."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from equipoise_compendium import project

ROOT = project.root()


def uv() -> str:
    """The program uv, which has a cache to install from: its own, or the one within tox."""
    in_cache = Path.home().glob(".cache/uv/archive-v0/*/uv-*.data/scripts/uv")
    return shutil.which("uv") or next(map(str, in_cache), "")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that has the wheel with its extra ``reports``."""
    if not uv():
        pytest.skip("uv, whose cache the wheel is installed from, is missing")
    folder = tmp_path_factory.mktemp("wheel")
    bin_folder = folder / "environment" / "bin"
    python = bin_folder / "python"

    def run(*words: str) -> None:
        command = [uv(), *words, "--offline", "-q"]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if ended.returncode:
            pytest.skip(f"the cache of uv has not all packages: {ended.stderr[-200:]}")

    run("build", "--wheel", "-o", str(folder))
    run("venv", "-p", sys.executable, str(bin_folder.parent))
    (wheel,) = folder.glob("*.whl")
    run("pip", "install", "-p", str(python), f"{wheel}[reports]")
    return bin_folder


def called(programs: Path, folder: Path, *words: str) -> str:
    """What a program says, both ways, in an empty folder."""
    environment = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder)}
    ended = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    return ended.stdout + ended.stderr


def test_the_commands_of_the_readme_say_what_it_says(programs: Path, tmp_path: Path) -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    # Of the clone only the data.
    shutil.copytree(ROOT / "data" / "examples", tmp_path / "data" / "examples")
    said = ""
    scoring = page.partition("\n## What fairness means here")[0]
    for block in re.findall(r"^```sh\n(.+?)^```", scoring, re.DOTALL | re.MULTILINE):
        lines = [line for line in block.splitlines() if "pip install" not in line]
        said += called(programs, tmp_path, "bash", "-euo", "pipefail", "-c", "\n".join(lines))
    (code,) = re.findall(r"^~~~python\n(.+?)^~~~", scoring, re.DOTALL | re.MULTILINE)
    said += called(programs, tmp_path, "python", "-c", code)
    said = re.sub(r" +$", "", said, flags=re.MULTILINE)
    shown = re.findall(r"^~~~text\n(.+?)^~~~", scoring, re.DOTALL | re.MULTILINE)
    assert len(shown) == 3
    assert [block for block in shown if block not in said] == []


def test_it_starts_and_builds_a_compendium(programs: Path, tmp_path: Path) -> None:
    called(programs, tmp_path, "equipoise", "init", "mine")
    called(programs, tmp_path / "mine", "equipoise", "build")
    assert (tmp_path / "mine" / "reports" / "site" / "index.html").is_file()
