"""Notebooks are run by hand, as in JupyterLab, with another parameter: each goes on to its end."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from chromium import FLAGS, PROGRAM
from equipoise_compendium import project
from equipoise_compendium.report import ANSWER_CHANGED
from prose import shipped

CHANGES = {
    "explore_conversations": "patience = [50, 1000]",
    "fairness_of_conversations": "patience = 60",
    "gfr_fairweb_pilot": "cutoff = 100",
    "gfrc2_iclr_researchers": "patience = 500",
    "gfrc_protocol": "known = 'conversations/harvest/known.csv'",
    "gfrc_time_travel_movies": "gains = {1: 1.0, 2: 1.0}",
    "orders_beyond_the_script": "seed = 1",
    "own_conversation": "patience = 100",
    "real_systems": "patience = 300",
    "thesis_ch2_query_by_example": "k1 = 1.2",
    "thesis_ch3_satisfaction": "labels = 'lower'",
    "thesis_ch4_ranking_bias": "cutoff = 20",
    "thesis_ch5_attribution": "level = 0.9",
    "utterance_permutations": "cutoff = 10",
}
"""By notebook, the line of its parameters that is another one."""
QUICK = ["gfrc2_iclr_researchers", "own_conversation"]
CASES = [
    pytest.param(name, marks=[] if name in QUICK else pytest.mark.upstream) for name in CHANGES
]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Copy what a notebook reads, so that nothing is written into this repository."""
    for name in ("data", "notebooks"):
        shutil.copytree(project.root() / name, tmp_path / name)
    return tmp_path / "notebooks"


def change(path: Path, assignment: str) -> None:
    """Write another value into the cell of parameters."""
    book = nbformat.read(path, as_version=4)
    (cell,) = [cell for cell in book.cells if "parameters" in cell.metadata.get("tags", [])]
    name = assignment.partition(" ")[0]
    assert re.search(rf"^{name}: ", cell.source, re.MULTILINE)
    cell.source += f"\n{assignment}"
    nbformat.write(book, path)


def texts(path: Path) -> list[str]:
    """Read the plain text of all outputs of an executed notebook."""
    outputs = []
    for cell in nbformat.read(path, as_version=4).cells:
        for output in cell.get("outputs", []):
            assert output.output_type != "error"
            outputs.append(output.get("data", {}).get("text/plain", output.get("text", "")))
    return outputs


def ends_with_its_answer(outputs: list[str]) -> None:
    """Check that an answer is shown, or each line that does not hold, and the summary."""
    answers = [text for text in outputs if text.startswith("Answer. ")]
    lines = {text for text in outputs if text.startswith("Not so with these parameters: ")}
    assert "It is computed below" not in answers[0]
    assert (ANSWER_CHANGED in answers[0]) == bool(lines)
    for line in lines:
        assert line.partition(": ")[2] in answers[0]
    assert "tables and figures regenerated" in outputs[-1] or "regenerates no" in outputs[-1]


@pytest.mark.parametrize("name", CASES)
def test_a_notebook_run_by_hand_goes_on_to_its_end(name: str, clone: Path) -> None:
    change(clone / f"{name}.ipynb", CHANGES[name])
    arguments = ["nbconvert", "--to", "notebook", "--execute", "--inplace", f"{name}.ipynb"]
    command = [sys.executable, "-m", "jupyter", *arguments, "--log-level=ERROR"]
    subprocess.run(command, cwd=clone, env=dict(os.environ), check=True)
    outputs = texts(clone / f"{name}.ipynb")
    ends_with_its_answer(outputs)
    if name == "gfrc2_iclr_researchers":  # from its table with half the patience
        assert any("0 of 8 published cells agree" in text for text in outputs)


def test_the_parameters_that_are_changed_are_of_all_notebooks() -> None:
    assert set(CHANGES) == set(shipped())


@pytest.fixture
def jupyterlab(clone: Path) -> Iterator[str]:
    """Serve JupyterLab at the notebooks; return its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--no-browser", "--allow-root", "--expose-app-in-browser", "--log-level=ERROR"]
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "jupyter", "lab", *options),
            *(f"--ServerApp.port={port}", f"--ServerApp.root_dir={clone}"),
            *("--IdentityProvider.token=", "--LabApp.news_url=None"),
        ],
        cwd=clone,
        env=os.environ | {"JUPYTER_CONFIG_DIR": str(clone.parent / "config")},
    )
    address = f"http://127.0.0.1:{port}/lab"
    for _ in range(600):
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)
    yield address
    server.terminate()
    server.wait(60)


@pytest.mark.skipif(
    PROGRAM is None, reason="no Chromium on this machine, in which JupyterLab opens"
)
def test_jupyterlab_runs_all_cells_with_another_parameter(jupyterlab: str, clone: Path) -> None:
    from playwright.sync_api import sync_playwright

    path = clone / "gfrc2_iclr_researchers.ipynb"
    flags = [flag for flag in FLAGS if "resolver" not in flag]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=PROGRAM, args=flags)
        page = chromium.new_page(viewport={"width": 1400, "height": 1000})
        page.set_default_timeout(120_000)
        page.goto(f"{jupyterlab}/tree/{path.name}")
        line = page.locator(".cm-line", has_text="patience: int = 1000").first
        line.scroll_into_view_if_needed()
        line.get_by_text("1000", exact=True).dblclick()
        page.keyboard.type("500")
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        page.get_by_text("What this notebook regenerates").wait_for(state="attached")
        page.keyboard.press("Control+s")
        for _ in range(100):
            page.wait_for_timeout(100)
            if nbformat.read(path, as_version=4).cells[-1].get("outputs"):
                break
        chromium.close()
    cell = nbformat.read(path, as_version=4).cells[5]
    assert "patience: int = 500  #" in cell.source
    ends_with_its_answer(texts(path))
