"""How JupyterLab saves the notebooks of the repository, so that a diff holds what was changed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat

from equipoise_compendium import project

_MACHINES_OWN = ("kernelspec", "language_info")
"""Metadata that JupyterLab sets from the kernel that it finds on this machine."""


def before_saving(model: Mapping[str, Any], path: str, **_: object) -> None:
    """Take from a notebook in ``notebooks/`` what a run leaves, as they are kept without it.

    Its outputs go, which reports hold, and its kernel stays the one that the file names; a report
    keeps its outputs. Jupyter calls this with what it is about to save; `equipoise lab` tells it
    to.
    """
    file = project.root() / path
    is_source = file.parent == project.root() / "notebooks"
    is_report = file.parent.parent == project.root() / "reports"
    if model.get("type") != "notebook" or not (is_source or is_report):
        return
    notebook = model["content"]
    if is_source:
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                cell["outputs"] = []
                cell["execution_count"] = None
                cell["metadata"].pop("execution", None)
    metadata = _metadata_of(file)
    for key in _MACHINES_OWN:
        if key in metadata:
            notebook["metadata"][key] = metadata[key]


def _metadata_of(file: Path) -> Mapping[str, Any]:
    """The metadata of a notebook as it was last saved; none of a new or a damaged one."""
    try:
        return dict(nbformat.read(file, as_version=4).metadata)
    except (OSError, ValueError, nbformat.reader.NotJSONError):
        return {}
