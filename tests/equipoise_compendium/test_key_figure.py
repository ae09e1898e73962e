"""The figure of a notebook's answer stands where the notebook begins, whole and with its words."""

from __future__ import annotations

import json

import pytest

from equipoise_compendium import project

NOTEBOOKS = [
    path
    for path in sorted((project.root() / "notebooks").glob("*.ipynb"))
    if "KeyFigure()" in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", [path.name for path in NOTEBOOKS])
def test_the_key_figure_is_drawn_where_its_notebook_begins(name: str) -> None:
    report = project.root() / "reports" / name.removesuffix(".ipynb") / name
    cells = json.loads(report.read_text(encoding="utf-8"))["cells"]
    first = next(cell for cell in cells if cell["cell_type"] == "code")
    figures = [output for output in first["outputs"] if "image/svg+xml" in output["data"]]
    assert len(figures) == 1
    assert figures[0]["metadata"]["image/svg+xml"]["alt"]
    assert "is drawn below" not in json.dumps(first["outputs"])
