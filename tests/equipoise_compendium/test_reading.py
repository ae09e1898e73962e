"""Guards how the site is read: by keyboard, on desk and phone, light and dark, and unseen."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
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
LOOKS = [(1400, "light"), (1400, "dark"), (390, "light"), (390, "dark")]
IN_SIGHT = """(() => { const box = document.querySelector(%s).getBoundingClientRect();
  return box.height > 0 && box.top < innerHeight && box.bottom > 0; })()"""


@pytest.fixture(params=LOOKS, ids=lambda look: f"{look[0]}-{look[1]}")
def first_page(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    width, theme = request.param
    page = browser.open((SITE / "index.html").as_uri(), width)
    page.look(dark=theme == "dark")
    assert page.run(f"matchMedia('(prefers-color-scheme: {theme})').matches")
    yield page
    page.close()


def tab_to(page: Page, wanted: str) -> None:
    """Press Tab until what has the focus is as wanted."""
    for _ in range(400):
        page.press("Tab")
        if page.run(f"document.activeElement.matches({json.dumps(wanted)})"):
            return
    raise AssertionError(f"Tab does not lead to {wanted}")


def in_sight(page: Page, selector: str) -> Any:
    return page.run(IN_SIGHT % json.dumps(selector))


def find(page: Page, words: str) -> None:
    """Write into the box of the header and press Enter; and Enter again, on the page Find."""
    tab_to(page, "header input")
    page.write(words)
    page.follow("Enter")
    page.follow("Enter")


# --- four ways, each in at most three actions: a link or a box that is gone to, and Enter ---------


def test_a_reader_finds_table_3_of_gfrc2(first_page: Page) -> None:
    find(first_page, "gfrc2 table 3")
    assert first_page.run("location.hash") == "#gfrc2-table-3"
    assert in_sight(first_page, "#gfrc2-table-3 table")
    assert "EGNP" in first_page.run("document.querySelector(':target').innerText")


def test_a_reader_finds_the_definition_of_texfair(first_page: Page) -> None:
    find(first_page, "texfair")
    assert in_sight(first_page, ":target math")
    text = first_page.run("document.querySelector(':target').innerText")
    assert text.startswith("TExFAIR")
    assert "the largest TED that any list can have" in text


def test_a_reader_finds_a_contradicted_claim_with_its_reason(first_page: Page) -> None:
    tab_to(first_page, ".told[open] a")
    first_page.follow("Enter")
    assert in_sight(first_page, ":target .verdict.contradicted")
    assert in_sight(first_page, ":target .numbers")
    assert "; contradicted " in first_page.run(
        "document.querySelector(':target .numbers').textContent"
    )


def test_a_reader_finds_the_code_of_a_figure(first_page: Page) -> None:
    tab_to(first_page, ".matrix a.cell[href*='gfrc2-figure-']")
    first_page.follow("Enter")
    assert in_sight(first_page, ":target img")
    tab_to(first_page, ":target .downloads a")
    first_page.press("Enter")
    assert first_page.run("document.querySelector(':target').closest('details').open")
    assert in_sight(first_page, ":target .highlight")
    assert "report.figure(" in first_page.run("document.querySelector(':target').innerText")


# --- every page -----------------------------------------------------------------------------------

NAMES = sorted(path.stem for path in SITE.glob("*.html"))
CUT = """[...document.querySelectorAll('.scroll, figure > a')]
  .filter(e => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1)
  .filter(e => !getComputedStyle(e).backgroundImage.includes('gradient')
    || (e.tabIndex < 0 && innerWidth > 640))
  .map(e => e.ariaLabel)"""
BLANK = """[...document.querySelectorAll('td, th')].map(e => e.getBoundingClientRect())
  .filter(b => b.width > 0)
  .filter(b => b.height > innerHeight / 2 && b.width < innerWidth / 3).length"""
SIZED = (
    """[...document.querySelectorAll('img')].filter(e => !(e.alt && e.width && e.height)).length"""
)
# On a phone a figure is the one drawn for it, and is never cut, nor shown at less than four fifths.
UNFIT = """[...document.querySelectorAll('figure img')]
  .filter(e => e.checkVisibility() && (e.getBoundingClientRect().right > innerWidth
    || (innerWidth < 640 && e.closest('picture')
      && (!e.currentSrc.endsWith('.narrow.svg') || e.clientWidth < 0.8 * e.naturalWidth))))
  .map(e => [e.currentSrc, e.clientWidth, e.naturalWidth])"""
BESIDE = """[...document.querySelectorAll('.beside')]
  .map(e => getComputedStyle(e).display + getComputedStyle(e).position)"""


@pytest.mark.parametrize("name", NAMES)
def test_no_table_is_cut_without_a_sign_and_no_cell_is_blank_space(
    name: str, browser: Browser
) -> None:
    page = browser.open((SITE / f"{name}.html").as_uri(), 1400)
    for width in (1400, 900, 390):
        page.resize(width)
        assert page.run(CUT) == [], width
        assert page.run(BLANK) == 0, width
        assert page.run(UNFIT) == [], width
        assert page.run("document.documentElement.scrollWidth") <= width
        assert all(
            shown == ("blocksticky" if width >= 1100 else "nonestatic")
            for shown in page.run(BESIDE)
        ), width
    assert page.run(SIZED) == 0
    page.close()


@pytest.fixture(scope="module")
def axe() -> str:
    spec = importlib.util.find_spec("axe_core_python")
    if spec is None or spec.origin is None:
        pytest.skip("axe-core-python is not installed: accessibility is not checked by a tool")
    return (Path(spec.origin).parent / "axe.min.js").read_text(encoding="utf-8")


AXE = """axe.run(document, {resultTypes: ["violations"]}).then(found => found.violations
  .filter(one => one.impact === "serious" || one.impact === "critical")
  .map(one => [one.id, one.nodes.length, one.nodes[0].html.slice(0, 200)]))"""


@pytest.mark.parametrize("name", NAMES)
def test_axe_finds_nothing_serious(name: str, browser: Browser, axe: str) -> None:
    page = browser.open((SITE / f"{name}.html").as_uri(), 1400)
    page.run(f"{axe};0")
    for width, dark in ((1400, False), (390, True)):
        page.resize(width)
        page.look(dark=dark)
        assert page.run(AXE) == [], width
    page.close()
