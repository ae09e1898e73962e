"""Guards JupyterLab: what it opens can be read, and what it saves is the change alone."""

from __future__ import annotations

import difflib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

import small_repository
from chromium import FLAGS, PROGRAM
from equipoise_compendium import project

if PROGRAM is None or find_spec("jupyterlab") is None:
    pytest.skip(
        "no Chromium or no JupyterLab on this machine: no notebook is opened in it",
        allow_module_level=True,
    )

NOTEBOOK = "own_conversation"
SOURCE = f"notebooks/{NOTEBOOK}.ipynb"
REPORT = f"reports/{NOTEBOOK}/{NOTEBOOK}.ipynb"
BEFORE, AFTER = "patience: int = 1250", "patience: int = 1000"
SECONDS = 60
DIRTY = "document.querySelectorAll('.lm-TabBar-tab.jp-mod-dirty').length > 0"
# A cell whose code is folded shows no number.
ALL_HAVE_RUN = """(() => {
  const prompts = [...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')]
    .map(e => e.textContent).filter(text => text);
  const idle = document.querySelector(".jp-Notebook-ExecutionIndicator[data-status='idle']");
  return idle && prompts.length > 0 && prompts.every(text => /\\[\\d+\\]/.test(text)); })()"""
DRAWINGS = """[...document.querySelectorAll('.jp-OutputArea-output img, .jp-RenderedSVG svg')]
  .filter(e => !e.matches('.mark') && e.getBoundingClientRect().width > 300).length"""
CAPTIONS = """[...document.querySelectorAll('.jp-RenderedMarkdown em')].map(e => e.innerText)"""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compendium of the cheapest notebook, with its report."""
    folder = tmp_path_factory.mktemp("lab") / "equipoise"
    shutil.copytree(project.root() / "data", folder / "data")
    (folder / "data" / "findings.md").unlink()  # they are of every notebook
    (folder / "data" / "compendium.toml").write_text(small_repository.SETTINGS)
    (folder / "notebooks").mkdir()
    shutil.copy(project.root() / SOURCE, folder / SOURCE)
    equipoise(folder, "build")
    return folder


def environment(clone: Path) -> dict[str, str]:
    """Where Jupyter keeps what it knows is in the test's folder, not in the user's."""
    folders = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    kept = {name: str(clone.parent / name.lower()) for name in folders}
    for name in ("SETTINGS", "WORKSPACES"):
        kept[f"JUPYTERLAB_{name}_DIR"] = str(clone.parent / name.lower())
    return os.environ | kept | {"PYTHONPATH": str(project.root() / "lib")}


def equipoise(clone: Path, *words: str) -> None:
    ended = subprocess.run(
        (sys.executable, "-m", "equipoise_cli", *words),
        cwd=clone,
        env=environment(clone),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, (ended.stdout + ended.stderr)[-3000:]


@pytest.fixture(scope="module")
def lab(clone: Path) -> Iterator[Callable[[str], str]]:
    """JupyterLab as `equipoise lab` starts it; the address of a file in it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex()
    words = (
        *(sys.executable, "-m", "equipoise_cli", "lab", "--", "--no-browser", "--allow-root"),
        *(f"--port={port}", f"--IdentityProvider.token={token}"),
    )
    with (clone.parent / "lab.log").open("w") as log:
        server = subprocess.Popen(
            words, cwd=clone, env=environment(clone), stdout=log, stderr=subprocess.STDOUT
        )
    try:
        until(lambda: answers(f"http://127.0.0.1:{port}/api"))
        yield lambda file: f"http://127.0.0.1:{port}/lab/tree/{file}?reset&token={token}"
    finally:
        server.terminate()
        server.wait()


def answers(address: str) -> bool:
    try:
        with urlopen(address):  # noqa: S310 - our own server
            return True
    except URLError:
        return False


def until(condition: Callable[[], Any]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "JupyterLab does not come to it"
        time.sleep(0.2)


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # The last of the rules for hosts holds; ours lets this machine alone be reached.
        local = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
        chromium = playwright.chromium.launch(executable_path=PROGRAM, args=[*FLAGS, local])
        # So tall that JupyterLab, which leaves out cells that are out of sight, shows them all.
        yield chromium.new_page(viewport={"width": 1400, "height": 9000})
        chromium.close()


def opened(page: Any, address: str) -> None:
    page.goto(address)
    page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=SECONDS * 1000)
    page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status='idle']", timeout=60000)


def saved(page: Any) -> None:
    page.get_by_role("menuitem", name="File", exact=True).click()
    with page.expect_response(lambda response: response.request.method == "PUT"):
        page.get_by_role("menuitem", name="Save Notebook").first.click()
    until(lambda: not page.evaluate(DIRTY))


def test_a_report_of_others_can_be_read_and_its_checkpoint_breaks_no_check(
    page: Any, lab: Callable[[str], str], clone: Path
) -> None:
    committed = (clone / REPORT).read_bytes()
    opened(page, lab(REPORT))
    until(lambda: page.evaluate(DRAWINGS) == 1)
    assert any("Relevant nuggets" in text for text in page.evaluate(CAPTIONS))
    assert (clone / "reports" / NOTEBOOK / ".ipynb_checkpoints").is_dir()
    saved(page)
    assert (clone / REPORT).read_bytes() == committed
    equipoise(clone, "check")


def test_run_changed_and_saved_a_notebook_differs_by_the_change(
    page: Any, lab: Callable[[str], str], clone: Path
) -> None:
    before = (clone / SOURCE).read_text(encoding="utf-8")
    opened(page, lab(SOURCE))
    page.locator(".cm-line", has_text=BEFORE).click()
    page.keyboard.press("Home")
    for _ in BEFORE:
        page.keyboard.press("Shift+ArrowRight")
    page.keyboard.type(AFTER)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    until(lambda: page.evaluate(ALL_HAVE_RUN))
    assert page.evaluate(DRAWINGS) == 1
    saved(page)
    after = (clone / SOURCE).read_text(encoding="utf-8")
    diff = difflib.ndiff(before.splitlines(), after.splitlines())
    changes = [line for line in diff if line[0] in "+-"]
    assert len(changes) == 2
    assert BEFORE in changes[0]
    assert AFTER in changes[1]
