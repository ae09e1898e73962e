"""Guards how the site is read: by keyboard, on desk and phone, light and dark, and unseen."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from chromium import PROGRAM, Browser
from equipoise_compendium import project

if PROGRAM is None:
    pytest.skip(
        "no Chromium on this machine: the pages are not opened in a browser",
        allow_module_level=True,
    )


SITE = project.root() / "reports" / "site"
NAMES = sorted(path.stem for path in SITE.glob("*.html"))
CUT = """[...document.querySelectorAll('.scroll, figure > a')]
  .filter(e => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1)
  .filter(e => !getComputedStyle(e).backgroundImage.includes('gradient')
    || (e.tabIndex < 0 && innerWidth > 640))
  .map(e => e.ariaLabel)"""
TOO_WIDE = """[...document.querySelectorAll('.scroll')]
  .filter(e => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1)
  .map(e => [e.ariaLabel, e.scrollWidth, e.clientWidth])"""
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
        if width == 1400:
            assert page.run(TOO_WIDE) == []
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
  .map(one => [one.id, one.nodes.length, one.nodes[0].html.slice(0, 200)]))"""


@pytest.mark.parametrize("name", NAMES)
def test_axe_finds_nothing(name: str, browser: Browser, axe: str) -> None:
    page = browser.open((SITE / f"{name}.html").as_uri(), 1400)
    page.run(f"{axe};0")
    # What is folded has a place of its own only when open; else it seems to lie beneath the foot.
    page.run("document.querySelectorAll('main details').forEach(fold => fold.open = true)")
    for width, dark in ((1400, False), (390, True)):
        page.resize(width)
        page.look(dark=dark)
        assert page.run(AXE) == [], (width, dark)
    page.close()
