"""Guards forks: a topic of one's own, with a figure added, passes the house's own tests at once."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from equipoise_compendium import project

BARS = """import matplotlib.pyplot as plt

figure, ax = plt.subplots()
ax.bar(["mine", "yours"], [2, 1])
report.figure("bars", ax, "Two bars of a fork")"""
TESTS = [
    "tests/test_house.py",
    "tests/test_notebooks.py",
    "tests/test_words.py",
    "tests/test_their_series.py",
    "tests/equipoise_compendium/test_site.py",
    "tests/equipoise_compendium/test_crate.py",
    "tests/equipoise_compendium/test_readme.py",
]


@pytest.fixture(scope="module")
def fork(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of the last commit, where a topic was begun as the README says."""
    folder = tmp_path_factory.mktemp("fork") / "equipoise"
    cloned = ["git", "clone", "--quiet", str(project.root()), str(folder)]
    ended = subprocess.run(cloned, capture_output=True, text=True, check=False)
    if ended.returncode:
        pytest.skip(f"no clone can be made here: {ended.stderr[-200:]}")
    return folder


def run(fork: Path, *words: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "EQUIPOISE_MIRROR"}
    environment["PYTHONPATH"] = str(fork / "lib")
    ended = subprocess.run(
        words, cwd=fork, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, (ended.stdout + ended.stderr)[-3000:]
    return ended.stdout


def test_a_new_topic_with_a_figure_passes_the_suite_and_leaves_the_rest_alone(fork: Path) -> None:
    equipoise = (sys.executable, "-m", "equipoise_cli")
    run(fork, *equipoise, "new", "their_series", "--topic", "T007")
    path = fork / "notebooks" / "their_series.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(-1, nbformat.v4.new_code_cell(BARS, id="bars"))
    nbformat.write(notebook, path)
    run(fork, *equipoise, "build", "their_series")
    assert (fork / "reports" / "their_series" / "figures" / "bars.svg").is_file()

    author = ("-c", "user.name=fork", "-c", "user.email=fork@example.org")
    run(fork, "git", "add", "--all")
    run(fork, "git", *author, "commit", "--quiet", "--message", "A topic of my own")
    changed = run(fork, "git", "diff", "--name-status", "HEAD~1").splitlines()
    modified = {line.split("\t")[1] for line in changed if line.startswith("M")}
    # The pages that list every notebook: to read, to find, and to run with other parameters.
    listing = ("find", "index", "variants")
    assert modified == {f"reports/site/{name}.html" for name in listing}

    run(fork, *equipoise, "check")
    # Of the notebooks only the new one is run again, and of the guide what speaks of notebooks.
    ours = "(not notebook_runs or their_series) and (not every_block or README or fork)"
    run(fork, sys.executable, "-m", "pytest", "-q", "-k", ours, *TESTS)
