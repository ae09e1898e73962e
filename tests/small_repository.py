"""A repository of one small notebook, for tests of builds."""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import nbformat

from equipoise_compendium import project
from equipoise_compendium.provenance import write_manifest

Once = Callable[[str, Callable[[Path], None]], Path]
"""Makes a folder of a name once for all processes of a test run."""
PARAMETERS = """\
size: int = 3  # how many rows
scale: float = 1.0  # a factor
kind: Literal["plain", "fancy"] = "plain"  # a choice
gains: dict[int, float] = {1: 0.5}  # by level
label: str = "a"  # a word
"""
BODY = """\
from typing import Literal
import pandas as pd
from equipoise_compendium.report import Report
"""
TABLE = """\
report = Report("example")
report.table("rows", pd.DataFrame({"row": range(size), "value": [scale / 3] * size}), caption=label)
"""


def notebook(*cells: str, title: str = "An example") -> nbformat.NotebookNode:
    """Make a notebook with imports, parameters and these cells."""
    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_markdown_cell(f"# {title}")]
    book.cells += [nbformat.v4.new_code_cell(cell) for cell in (BODY, PARAMETERS, *cells)]
    book.cells[2].metadata["tags"] = ["parameters"]
    return book


def put(root: Path, *cells: str, name: str = "example", title: str = "An example") -> None:
    """Write a notebook of these cells into a repository."""
    nbformat.write(notebook(*cells, title=title), root / "notebooks" / f"{name}.ipynb")


def put_report(root: Path, name: str, title: str = "An example") -> None:
    """Write a notebook, and a report of it without tables and figures."""
    put(root, name=name, title=title)
    folder = root / "reports" / name
    folder.mkdir(parents=True)
    shutil.copy(root / "notebooks" / f"{name}.ipynb", folder)
    empty = {"notebook": name, "answer": [], "artefacts": [], "beyond": []}
    write_manifest(folder, empty)


def make(root: Path) -> None:
    """Make the repository in a folder."""
    shutil.copytree(project.root() / "data" / "published", root / "data" / "published")
    shutil.copy(project.root() / "data" / "registry.tsv", root / "data")
    (root / "data" / "README.md").write_text("# Data\n")
    (root / "data" / "compendium.toml").write_text('name = "Equipoise"\n')
    (root / "notebooks").mkdir()
    put(root, TABLE, "report.finish()")


def digest(folder: Path) -> dict[str, str]:
    """Return every file of a folder with its sha256, without those of a build at work."""
    digests = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and ".equipoise" not in path.parts:
            digests[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return digests
