"""Guards that to open, run and save a notebook in JupyterLab leaves the change alone."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from equipoise_compendium import project, provenance

pytest.importorskip("jupyter_server")

from jupyter_server.services.contents.largefilemanager import LargeFileManager

# Jupyter has no types, so a manager is of any.
HOOK = "equipoise_compendium.saving.before_saving"
ANOTHER_KERNEL = {
    "kernelspec": {"display_name": "My Python", "language": "python", "name": "mine"},
    "language_info": {"name": "python", "version": "3.13.9", "file_extension": ".py"},
}


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(project.root() / "notebooks", tmp_path / "notebooks")
    monkeypatch.setattr(project, "root", lambda: tmp_path)
    return tmp_path


def opened_and_run(manager: Any, path: str) -> dict[str, Any]:
    """A notebook as JupyterLab has it when all of it has been run with a kernel of this machine."""
    model = manager.get(path)
    model["content"]["metadata"].update(ANOTHER_KERNEL)
    cells = [cell for cell in model["content"]["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells, start=1):
        cell["execution_count"] = number
        cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "seen\n"}]
        cell["metadata"]["execution"] = {"iopub.status.busy": "now"}
    return dict(model)


NOTEBOOKS = sorted(path.name for path in (project.root() / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_run_and_saved_a_notebook_has_no_diff_but_the_change(name: str, clone: Path) -> None:
    manager: Any = LargeFileManager(root_dir=str(clone), pre_save_hook=HOOK)
    path = f"notebooks/{name}"
    before = (clone / path).read_bytes()
    model = opened_and_run(manager, path)
    manager.save(model, path)
    assert (clone / path).read_bytes() == before
    model = opened_and_run(manager, path)
    model["content"]["cells"][0]["source"] += "\nA new line."
    manager.save(model, path)
    lines = (clone / path).read_text(encoding="utf-8").splitlines()
    added = set(lines) - set(before.decode().splitlines())
    assert len(added) <= 2
    assert any("A new line." in line for line in added)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_opened_and_saved_without_the_command_it_has_none_either(name: str, clone: Path) -> None:
    """As JupyterLab by itself saves it: it writes the metadata of the kernel that it starts."""
    from ipykernel.kernelspec import get_kernel_dict

    manager: Any = LargeFileManager(root_dir=str(clone))
    path = f"notebooks/{name}"
    before = (clone / path).read_text(encoding="utf-8")
    model = manager.get(path)
    kernel = model["content"]["metadata"]["kernelspec"]
    assert kernel["display_name"] == get_kernel_dict()["display_name"]
    information = model["content"]["metadata"]["language_info"]
    from ipykernel.ipkernel import IPythonKernel

    written = IPythonKernel.language_info.copy()
    written["version"] = information["version"]  # the one thing that differs between machines
    assert information == written
    manager.save(model, path)
    assert (clone / path).read_text(encoding="utf-8") == before


def test_a_report_keeps_its_outputs_and_the_kernel_that_it_names(clone: Path) -> None:
    manager: Any = LargeFileManager(root_dir=str(clone), pre_save_hook=HOOK)
    path = "reports/own_conversation/own_conversation.ipynb"
    (clone / path).parent.mkdir(parents=True)
    shutil.copy(project.root() / "notebooks" / "own_conversation.ipynb", clone / path)
    kernel = manager.get(path)["content"]["metadata"]["kernelspec"]
    manager.save(opened_and_run(manager, path), path)
    saved = manager.get(path)["content"]
    assert saved["metadata"]["kernelspec"] == kernel
    assert any(cell.get("outputs") for cell in saved["cells"])


def test_a_notebook_elsewhere_keeps_what_it_has(clone: Path) -> None:
    manager: Any = LargeFileManager(root_dir=str(clone), pre_save_hook=HOOK)
    model = opened_and_run(manager, f"notebooks/{NOTEBOOKS[0]}")
    manager.save(model, "mine.ipynb")
    saved = manager.get("mine.ipynb")["content"]
    assert saved["metadata"]["kernelspec"]["name"] == "mine"
    assert any(cell.get("outputs") for cell in saved["cells"])


def test_the_copies_of_jupyter_are_no_part_of_a_report(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "a.csv").write_text("a\n1\n")
    before = provenance.output_digests(tmp_path)
    for folder in (tmp_path, tmp_path / "tables"):
        (folder / ".ipynb_checkpoints").mkdir()
        (folder / ".ipynb_checkpoints" / "x-checkpoint.ipynb").write_text("{}")
    assert provenance.output_digests(tmp_path) == before
    assert list(before) == ["tables/a.csv"]
