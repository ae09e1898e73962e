"""Guards a fork: a notebook of a user's own changes nothing in lint, nor in tests of pages.

One notebook is built and the tests run in a clone, so that this is kept for ``tox -e upstream``.
"""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from equipoise_compendium import project, registry
from upstream import skip_without

pytestmark = pytest.mark.upstream

skip_without(*registry.entries()["item"].unique())

PROSE = """\
# What stands behind my_own words: whatever is wanted, on 2026-01-02T03:04

I refuse to mend what lacks luck."""
CODE = """\
import matplotlib.pyplot as plt, sys
def  doubled( x ): return {'twice':x}
plt.plot([1,2]); plt.title('my_figure of topK'); plt.show()
report.table('own_rows', pd.DataFrame({'own_column': [1], 'runName': ['chatA']}))"""
CHECKS = (
    ["-m", "ruff", "format", "--check"],
    ["-m", "ruff", "check"],
    ["tests/prose.py"],
    [
        # Without what runs notebooks or opens pages in a browser, which may be skipped.
        *("-m", "pytest", "-q", "-k", "not skipif"),
        *("tests/test_house.py", "tests/test_my_films.py", "tests/test_notebooks.py"),
        *("tests/test_words.py", "tests/equipoise_compendium/test_site.py"),
    ],
)


def test_a_notebook_of_a_users_own_leaves_a_fork_green(tmp_path: Path) -> None:
    fork = tmp_path / "fork"
    environment = os.environ | {"PYTHONPATH": str(fork / "lib")}

    def run(*words: str) -> None:
        ended = subprocess.run(
            words, cwd=fork, env=environment, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, f"{words}\n{ended.stdout[-3000:]}{ended.stderr[-3000:]}"

    subprocess.run(["git", "clone", "-q", project.root(), fork], check=True)
    run(sys.executable, "-m", "equipoise_cli", "new", "my_films", "--topic", "T_007")
    transcript = fork / "data" / "conversations" / "my_films.txt"
    text = transcript.read_text(encoding="utf-8").replace(" qwen-1.5b-1", " chatA")
    text = text.replace(" qwen-1.5b-2", ' my_run|<b>&"é"').replace("Yes, here", "my_word whatever")
    transcript.write_text(text, encoding="utf-8")
    path = fork / "notebooks" / "my_films.ipynb"
    book = nbformat.read(path, as_version=4)
    book.cells[0].source = PROSE + " very" * 1600
    book.cells.insert(-1, nbformat.v4.new_code_cell(CODE))
    nbformat.write(book, path)
    run(sys.executable, "-m", "equipoise_cli", "build", "my_films")
    run("git", "add", "-A")
    run("git", "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-qm", "My films")
    for words in CHECKS:
        run(sys.executable, *words)
