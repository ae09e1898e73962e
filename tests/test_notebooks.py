"""Runs the quick notebooks through pytest-notebook; the others are run by the build."""

import sys
from pathlib import Path

import nbformat
import pytest
from pytest_notebook.nb_regression import NBRegressionFixture

from equipoise_compendium import notebooks, project
from equipoise_compendium.provenance import REPORT_FOLDER_VARIABLE
from prose import shipped

NOTEBOOKS = notebooks.find_notebooks(shipped())
QUICK = ["gfrc2_iclr_researchers", "gfrc_time_travel_movies"]


@pytest.mark.skipif(
    sys.version_info[:2] != (3, 11),
    reason="the committed reports are those of Python 3.11; sum() rounds otherwise from 3.12 on",
)
@pytest.mark.parametrize("name", QUICK)
def test_notebook_runs_and_gives_the_committed_outputs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = project.root() / "reports" / name
    monkeypatch.setenv(REPORT_FOLDER_VARIABLE, str(tmp_path))
    fixture = NBRegressionFixture(
        exec_cwd=str(project.root() / "notebooks"),
        exec_timeout=600,
        post_processors=("equipoise",),
        diff_color_words=False,
    )
    fixture.check(str(report / f"{name}.ipynb"))
    for path in sorted(tmp_path.rglob("*.*")):
        if path.name != "manifest.json":
            committed = report / path.relative_to(tmp_path)
            assert path.read_bytes() == committed.read_bytes(), path.name


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


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_figure_has_a_text_for_those_who_cannot_see_it(name: str) -> None:
    executed = nbformat.read(project.root() / "reports" / name / f"{name}.ipynb", as_version=4)
    for cell in executed.cells:
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                assert output.metadata["image/png"]["alt"]
