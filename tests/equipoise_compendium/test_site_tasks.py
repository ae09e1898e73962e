"""Guards what a newcomer comes for: nine tasks, each in at most three actions from the first page.

An action is a link or button that is gone to, or words that are written and sent off.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chromium import PROGRAM, Browser, Page
from equipoise_compendium import project

if PROGRAM is None:
    pytest.skip(
        "no Chromium on this machine: the pages are not opened in a browser",
        allow_module_level=True,
    )

SITE = project.root() / "reports" / "site"
IN_SIGHT = """(() => { const box = document.querySelector(%s).getBoundingClientRect();
  return box.height > 0 && box.top < innerHeight && box.bottom > 0; })()"""
MOST_ACTIONS, MOST_SECONDS = 3, 20


class Reader:
    """A reader with a mouse or a keyboard, whose actions are counted."""

    def __init__(self, page: Page, *, mouse: bool) -> None:
        self.page = page
        self.mouse = mouse
        self.actions = 0

    def go(self, selector: str) -> None:
        """Follow a link, or press a button."""
        self.actions += 1
        if self.mouse:
            self.page.click(selector)
            return
        for _ in range(500):
            self.page.press("Tab")
            if self.page.run(f"document.activeElement.matches({json.dumps(selector)})"):
                break
        else:
            raise AssertionError(f"Tab does not lead to {selector}")
        if self.page.run("document.activeElement.tagName") == "BUTTON":
            self.page.press("Enter")
            return
        leads_elsewhere = "!document.activeElement.getAttribute('href').startsWith('#')"
        if self.page.run(leads_elsewhere):
            self.page.follow("Enter")
        else:
            self.page.press("Enter")

    def find(self, words: str) -> None:
        """Write words into the box of the page, and take the first that is found."""
        self.page.run("document.querySelector('header input').focus()")
        self.page.write(words)
        self.page.follow("Enter")
        self.page.follow("Enter")
        self.actions += 2

    def sees(self, selector: str) -> bool:
        """Whether something is in the window."""
        return bool(self.page.run(IN_SIGHT % json.dumps(selector)))

    def text(self, selector: str) -> Any:
        """The words of something."""
        return self.page.run(f"document.querySelector({json.dumps(selector)}).innerText")


def table_3_of_gfrc2(reader: Reader) -> None:
    reader.find("gfrc2 table 3")
    assert reader.page.run("location.hash") == "#gfrc2-table-3"
    assert reader.sees("#gfrc2-table-3 table")
    assert "EGNP" in reader.text(":target")


def definition_of_texfair(reader: Reader) -> None:
    reader.find("TExFAIR definition")
    assert reader.sees(":target math")
    assert reader.text(":target").startswith("TExFAIR")
    assert "the largest TED that any list can have" in reader.text(":target")


def contradicted_claim_and_why(reader: Reader) -> None:
    reader.go(".told[open] a")
    assert reader.sees(":target .verdict.contradicted")
    assert reader.sees(":target .numbers")
    assert "; contradicted " in reader.text(":target .numbers")


def code_of_a_figure(reader: Reader) -> None:
    reader.go(".matrix a.cell[href*='gfrc2-figure-']")
    assert reader.sees(":target img")
    reader.go(":target .downloads a")
    assert reader.sees(":target .highlight")
    assert "report.figure(" in reader.text(":target")


def score_my_runs(reader: Reader) -> None:
    if reader.mouse:
        reader.go(".actions a[href^='guide-runs']")
    else:
        reader.find("score my runs")
    assert reader.page.run("location.pathname").endswith("guide-runs.html")
    assert "equipoise score" in reader.text("main pre")
    assert reader.sees("main pre")


def fork(reader: Reader) -> None:
    if reader.mouse:
        reader.go(".actions a[href^='guide-fork']")
    else:
        reader.find("fork")
    assert reader.page.run("location.pathname").endswith("guide-fork.html")


def not_reproduced_and_why(reader: Reader) -> None:
    if reader.mouse:
        reader.go("a[href='artefacts.html#not-reproduced']")
    else:
        reader.find("what is not reproduced")
    assert reader.page.run("location.href").endswith("artefacts.html#not-reproduced")
    assert reader.sees("#not-reproduced")
    assert "Data in their place" in reader.text("main")


def cite(reader: Reader) -> None:
    if reader.mouse:
        reader.go(".actions a[href='cite.html']")
    else:
        reader.find("cite")
    assert reader.sees("#software")
    reader.go("main .copied button")
    entry = reader.page.run("document.querySelector('main .copied pre').textContent")
    assert reader.page.copied() == f"{entry}\n"
    assert entry.startswith("@software{equipoise,")


def licence_of_the_data(reader: Reader) -> None:
    if reader.mouse:
        reader.go("footer a[href^='data.html']")
    else:
        reader.find("licence of the data")
    assert reader.page.run("location.href").endswith("data.html#Licences")
    assert reader.sees(":target")


TASKS = [
    table_3_of_gfrc2,
    definition_of_texfair,
    contradicted_claim_and_why,
    code_of_a_figure,
    score_my_runs,
    fork,
    not_reproduced_and_why,
    cite,
    licence_of_the_data,
]


@pytest.fixture(params=[1400, 390])
def first_page(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    page = browser.open((SITE / "index.html").as_uri(), request.param)
    yield page
    page.close()


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.__name__)
@pytest.mark.parametrize("mouse", [True, False], ids=["mouse", "keyboard"])
def test_a_newcomer_gets_there(
    task: Callable[[Reader], None], mouse: bool, first_page: Page
) -> None:
    reader = Reader(first_page, mouse=mouse)
    start = time.monotonic()
    task(reader)
    assert time.monotonic() - start < MOST_SECONDS
    assert reader.actions <= MOST_ACTIONS
    assert first_page.said == ""
    assert first_page.asked == []


@pytest.mark.parametrize(
    ("words", "address"),
    [
        ("TExFAIR definition", "measures.html#group-balance-texfair"),
        ("score my runs", "guide-runs.html"),
        ("licence", "data.html#Licences"),
        ("not reproduced", "artefacts.html#not-reproduced"),
        ("cite", "cite.html"),
        ("citation bibtex", "cite.html"),
        ("contradicted", "claims.html"),
        ("install", "guide-start.html"),
    ],
)
def test_what_one_would_type_leads_there(words: str, address: str, browser: Browser) -> None:
    page = browser.open((SITE / "find.html").as_uri() + f"?q={words.replace(' ', '+')}")
    hits = page.run("[...document.querySelectorAll('#best a')].map(a => a.getAttribute('href'))")
    assert any(hit.startswith(address) for hit in hits[:3]), hits[:6]
    page.close()
