"""Guards what a real browser makes of the pages, without network."""

import shutil
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest

from chromium import PROGRAM, Browser
from equipoise_compendium import ledger, project
from equipoise_compendium.provenance import REPORT_FOLDER_VARIABLE
from equipoise_compendium.report import Report
from equipoise_compendium.site import pages as site
from equipoise_compendium.site.added import script
from equipoise_compendium.site.markup import TEMPLATES
from site_pages import HOSTILE, HTML, PARSED, SITE, Page, formulas_of

if PROGRAM is None:
    pytest.skip(
        "no Chromium on this machine: the pages are not opened in a browser",
        allow_module_level=True,
    )


COPY_SCRIPT, COPY_DIGEST = script(TEMPLATES / "site" / "copy.js")


def test_the_browser_reports_what_a_page_asks_for_and_says(
    browser: Browser, tmp_path: Path
) -> None:
    """So that silence below means something."""
    loud = tmp_path / "loud.html"
    loud.write_text("<script>console.error('heard')</script><img src='http://192.0.2.1/a.png'>")
    page = browser.open(loud.as_uri())
    assert "heard" in page.said
    assert "http://192.0.2.1/a.png" in page.asked


@pytest.mark.parametrize("name", HTML)
def test_a_browser_opens_the_page_from_disk_and_typesets_every_formula(
    name: str, browser: Browser
) -> None:
    page = browser.open((SITE / name).as_uri())
    assert page.said == ""
    assert page.asked == []
    sizes = page.run(
        "[...document.querySelectorAll('math')].map(e => e.getBoundingClientRect().height)"
    )
    assert len(sizes) == formulas_of(name)
    assert all(size > 5 for size in sizes)
    for width in (1200, 400):  # a desk and a phone: the page is never wider than the window
        page.resize(width)
        assert page.run("document.documentElement.scrollWidth") <= width
    page.close()


FOCUS = """(() => {
  const wanted = "a[href], summary, [tabindex='0'], input, button";
  const all = [...document.querySelectorAll(wanted)].filter(e => e.checkVisibility());
  const here = document.activeElement, style = getComputedStyle(here);
  const box = here.getBoundingClientRect();
  return {
    wanted: all.length,
    place: all.indexOf(here),
    outline: style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth),
    seen: box.right > 0 && box.left < innerWidth && box.bottom > 0 && box.top < innerHeight,
    href: here.getAttribute("href") || "",
  };
})()"""


def test_the_index_can_be_walked_by_keyboard(browser: Browser) -> None:
    """Tab goes through every link once, in the page's order, each marked and in sight, and out."""
    page = browser.open((SITE / "index.html").as_uri())
    stops: list[dict[str, Any]] = []
    while len(stops) <= page.run(FOCUS)["wanted"]:
        page.press("Tab")
        stops.append(page.run(FOCUS))
        if stops[-1]["place"] < 0:  # no element of the page: the browser's own bar
            break
    assert [stop["place"] for stop in stops] == [*range(stops[0]["wanted"]), -1]
    assert stops[0]["href"] == "#main"
    assert all(stop["seen"] and stop["outline"] >= 2 for stop in stops[:-1])
    cells = {
        values["href"]
        for values in PARSED["index.html"].all("a")
        if values.get("class", "").startswith("cell")
    }
    assert cells <= {stop["href"] for stop in stops}
    page.press("Tab", shift=True)
    assert page.run(FOCUS)["place"] == stops[0]["wanted"] - 1
    page.close()


def test_enter_skips_to_the_content_opens_a_cell_and_unfolds_code(browser: Browser) -> None:
    page = browser.open((SITE / "index.html").as_uri())
    page.press("Tab")
    page.press("Enter")
    assert page.run("document.activeElement.id") == "main"
    page.press("Tab")
    assert page.run("document.activeElement.matches('main a')")
    page.run("document.querySelector('.matrix a.cell').focus()")
    cell = page.run(FOCUS)["href"]
    page.follow("Enter")
    assert page.run("location.pathname.split('/').pop() + location.hash") == cell
    assert page.run("document.querySelector(':target').getBoundingClientRect().top < innerHeight")
    page.run("document.querySelector('details.code:not([open]) summary').focus()")
    page.press("Enter")
    assert page.run("document.activeElement.closest('details').open")
    page.press("Tab")
    assert page.run("!document.activeElement.matches('body')")
    page.close()


def test_a_hostile_transcript_shows_as_text(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through every door: a table, a claim, plain and Markdown output, raw HTML and a caption."""
    root = tmp_path / "repository"
    shutil.copytree(project.root() / "data" / "published", root / "data" / "published")
    (root / "data" / "README.md").write_text("# Data\n")
    (root / "notebooks").mkdir()
    monkeypatch.chdir(root)
    monkeypatch.setenv(REPORT_FOLDER_VARIABLE, str(root / "reports" / "evil"))
    project.root.cache_clear()
    try:
        report = Report("evil")
        table = report.table(
            "said", pd.DataFrame({"turn": [1], "text": [HOSTILE]}), caption=HOSTILE
        )
        report.finish()
        outputs = [
            nbformat.v4.new_output("display_data", {"text/plain": "", **table.formats}),
            nbformat.v4.new_output("display_data", {"text/html": HOSTILE}),
            nbformat.v4.new_output("display_data", {"text/markdown": HOSTILE}),
            nbformat.v4.new_output("display_data", {"text/plain": HOSTILE}),
            nbformat.v4.new_output(
                "display_data", {"image/svg+xml": f"<svg>{HOSTILE}</svg>", "text/plain": HOSTILE}
            ),
            nbformat.v4.new_output(
                "display_data", {"application/javascript": "document.title = 'owned'"}
            ),
            nbformat.v4.new_output("stream", text=HOSTILE),
        ]
        title = nbformat.v4.new_markdown_cell("# A hostile transcript\n\nand a formula, $L + 1$")
        book = nbformat.v4.new_notebook(
            cells=[title, nbformat.v4.new_code_cell("1", outputs=outputs)]
        )
        nbformat.write(book, root / "notebooks" / "evil.ipynb")
        nbformat.write(book, root / "reports" / "evil" / "evil.ipynb")
        ledger.Ledger.of([]).write(root / "reports")
        assert site.refresh()
        assert not site.refresh()
        assert site.check() == []
        (root / "reports" / "site" / "index.html").write_text("altered")
        assert "index.html" in site.check()[0]
        page = browser.open((root / "reports" / "site" / "evil.html").as_uri())
    finally:
        project.root.cache_clear()
    dom = page.dom
    assert "<title>A hostile transcript · Compendium</title>" in dom
    assert page.asked == []
    assert "192.0.2.1" not in page.said
    assert dom.count("<math") == 1
    assert dom.count("&lt;script&gt;document.title='owned'&lt;/script&gt;") >= 5
    # The one that copies is ours; the policy lets no other run.
    assert Page(dom).all("script") == [{}]
    assert dom.count(COPY_SCRIPT) == 1


def test_claims_are_filtered_without_a_script(browser: Browser) -> None:
    page = browser.open((SITE / "claims.html").as_uri())
    shown = """[...document.querySelectorAll('article.claim')].filter(a => a.offsetParent)
        .map(a => a.className.split(' '))"""
    everything = page.run(shown)
    page.run("document.querySelector('a.verdict.undecided').click()")
    page.run("document.querySelector('#only-finding').click()")
    left = page.run(shown)
    assert left == [names for names in everything if {"undecided", "finding"} <= set(names)]
    assert 0 < len(left) < len(everything)
    page.close()
