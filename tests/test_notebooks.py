"""Runs every notebook through pytest-notebook and compares it with the copy in reports/."""

import ast
import json
import sys
from pathlib import Path

import nbformat
import pytest
from pytest_notebook.nb_regression import NBRegressionFixture

import reading
from equipoise_compendium import notebooks, project, provenance
from equipoise_compendium.provenance import REPORT_FOLDER_VARIABLE

NOTEBOOKS = notebooks.find_notebooks()
SHIPPED = [name for name, book in NOTEBOOKS.items() if book.content.cells[0].id != "title"]
"""Those that `equipoise new` has not made: the rules of the house hold for them."""


@pytest.mark.skipif(
    sys.version_info[:2] != (3, 11),
    reason="the committed reports are those of Python 3.11; sum() rounds otherwise from 3.12 on",
)
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_runs_and_gives_the_committed_outputs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = project.root() / "reports" / name
    inputs = json.loads((report / "manifest.json").read_text())["inputs"]
    unreachable = provenance.missing_data(inputs)
    if unreachable:
        pytest.skip(
            f"needs {', '.join(unreachable[:3])}: "
            "set EQUIPOISE_MIRROR to a folder that has the data"
        )
    monkeypatch.setenv(REPORT_FOLDER_VARIABLE, str(tmp_path))
    fixture = NBRegressionFixture(
        exec_cwd=str(project.root() / "notebooks"),
        exec_timeout=600,
        post_processors=("equipoise",),
        diff_color_words=False,
    )
    fixture.check(str(report / f"{name}.ipynb"))
    # what pytest-notebook cannot compare with care, the files that the run has left, is compared by
    # its bytes
    for path in sorted(tmp_path.rglob("*.*")):
        if path.name != "manifest.json":
            assert path.read_bytes() == (report / path.relative_to(tmp_path)).read_bytes(), (
                path.name
            )


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_sources_hold_no_outputs_and_no_functions(name: str) -> None:
    notebook = NOTEBOOKS[name]
    code = [cell for cell in notebook.content.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code)
    assert not any(
        line.startswith(("def ", "class ")) for cell in code for line in cell.source.splitlines()
    )
    assert sum("parameters" in cell.metadata.get("tags", []) for cell in code) == 1
    assert code[-1].source.strip() == "report.finish()"
    assert all(parameter.help for parameter in notebook.parameters.values())


COMPUTING = ("equipoise.measures", "equipoise.statistics", "equipoise.permutations")
"""Packages whose functions say how a number arises."""


def imported_to_compute(cells: list[ast.Module]) -> set[str]:
    """Names that the cells of a notebook import from `COMPUTING`."""
    names = set()
    for cell in cells:
        for node in ast.walk(cell):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(COMPUTING):
                names |= {alias.asname or alias.name for alias in node.names}
    return names


@pytest.mark.parametrize("name", SHIPPED)
def test_a_cell_that_computes_is_open(name: str) -> None:
    """What only draws, claims or says may be folded; a call of a measure or a test may not."""
    cells = [cell for cell in NOTEBOOKS[name].content.cells if cell.cell_type == "code"]
    trees = [ast.parse(cell.source) for cell in cells]
    computing = imported_to_compute(trees)
    assert computing or name == "gfrc_protocol"
    for cell, tree in zip(cells, trees, strict=True):
        assert not any(isinstance(node, ast.NamedExpr) for node in ast.walk(tree)), cell.source
        if cell.metadata.get("jupyter", {}).get("source_hidden", False):
            called = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            assert not called & computing, cell.source[:80]
            assert "parameters" not in cell.metadata.get("tags", [])


@pytest.mark.parametrize("name", SHIPPED)
def test_the_head_says_how_long_a_notebook_takes_to_read(name: str) -> None:
    """To the minute, counted in its committed report; 12 at most."""
    executed = project.root() / "reports" / name / f"{name}.ipynb"
    minutes = reading.minutes(nbformat.read(executed, as_version=4))
    stated = reading.STATED.search(NOTEBOOKS[name].content.cells[0].source)
    assert stated is not None, f"its head should say **Reading time.** About {minutes:.0f} minutes."
    assert abs(int(stated[1]) - minutes) <= 1
    assert minutes <= 12


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_figure_says_what_is_to_be_seen_in_it(name: str) -> None:
    executed = nbformat.read(project.root() / "reports" / name / f"{name}.ipynb", as_version=4)
    outputs = [
        output for cell in executed.cells if cell.cell_type == "code" for output in cell.outputs
    ]
    figures = [output for output in outputs if "image/svg+xml" in output.get("data", {})]
    assert all(output.metadata.get("image/svg+xml", {}).get("alt") for output in figures)


def test_whose_defaults_a_variant_names() -> None:
    """The case studies' are the paper's; elsewhere some are ours, which a variant calls default."""
    papers = {
        name
        for name, notebook in notebooks.find_notebooks().items()
        if notebook.defaults == "paper"
    }
    assert papers == {"gfrc_time_travel_movies", "gfrc2_iclr_researchers"}
