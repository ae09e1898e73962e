"""A repository of one small notebook, for tests of builds; and what its run would leave."""

import hashlib
import json
import shutil
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nbformat

from equipoise_compendium import project

SETTINGS = """\
name = "Equipoise"
parameters = "equipoise_studies.parameters"
packages = ["equipoise", "equipoise_cli", "equipoise_studies"]
"""
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


def notebook(*cells: str) -> nbformat.NotebookNode:
    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_markdown_cell("# An example")]
    book.cells += [nbformat.v4.new_code_cell(cell) for cell in (BODY, PARAMETERS, *cells)]
    book.cells[2].metadata["tags"] = ["parameters"]
    book.metadata["equipoise"] = {"smoke": {"size": 1}}
    return book


def put(root: Path, *cells: str, name: str = "example", title: str = "An example") -> None:
    book = notebook(*cells)
    book.cells[0].source = f"# {title}"
    nbformat.write(book, root / "notebooks" / f"{name}.ipynb")


def make(root: Path) -> None:
    """Make the repository in a folder."""
    shutil.copytree(project.root() / "data" / "published", root / "data" / "published")
    shutil.copy(project.root() / "data" / "registry.tsv", root / "data")
    (root / "data" / "README.md").write_text("# Data\n")
    (root / "data" / "compendium.toml").write_text(SETTINGS)
    (root / "notebooks").mkdir()
    put(root, TABLE, "report.finish()")


def digest(folder: Path) -> dict[str, str]:
    """Every file of a folder, but those that only a build at work needs, with its sha256."""
    files = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".equipoise" not in path.parts
    ]
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


EMPTY_MANIFEST: dict[str, Any] = {
    "notebook": "example",
    "artefacts": [],
    "inputs": {},
    "versions": {},
    "sources": {},
    "parameters": {},
    "outputs": {},
}


def pretend(source: str, parameters: Mapping[str, Any], folder: str) -> tuple[str, str]:
    """Stand in for papermill: what the run would have left is JSON in the last cell."""
    script = json.loads(nbformat.read(source, as_version=4).cells[-1].source)
    if "failure" in script:
        return script["failure"], "as told"
    if "edit" in script:
        Path(script["edit"][0]).write_text(script["edit"][1])
    (Path(folder) / "tables").mkdir()
    (Path(folder) / "tables" / "rows.csv").write_text(json.dumps(dict(parameters)))
    versions = {"pandas": version("pandas")}
    (Path(folder) / "manifest.json").write_text(
        json.dumps(EMPTY_MANIFEST | {"versions": versions} | script)
    )
    return "", ""


def script(root: Path, name: str = "example", **manifest: Any) -> None:
    put(root, json.dumps(manifest), name=name)


def record(status: str, **more: Any) -> dict[str, Any]:
    entry = {
        "artefact": "permutations/table-2",
        "status": status,
        "data": "x",
        "note": "",
        "files": [],
        "cells": 1,
    }
    return entry | {"largest": None, "differences": [], "claims": []} | more
