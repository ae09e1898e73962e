"""Guards the page on which a reader moves the numbers, in a browser."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
import pytest

from chromium import PROGRAM, Browser, Page
from equipoise_compendium import project
from explored import PAGE, SETTINGS, report, wanted

if PROGRAM is None:
    pytest.skip(
        "no Chromium on this machine: the pages are not opened in a browser",
        allow_module_level=True,
    )


def shown(page: Page, topic: str) -> Any:
    rows = f"[...document.querySelectorAll('#about-{topic} tbody tr')]"
    return page.run(f"{rows}.map(row => [...row.cells].slice(1).map(cell => cell.textContent))")


def tab_to(page: Page, name: str) -> None:
    """Press Tab until a control of this name has the focus; see that it is marked and in sight."""
    for _ in range(40):
        page.press("Tab")
        if page.run("document.activeElement.name || ''") == name:
            break
    focus = """(() => {
        const e = document.activeElement, box = e.getBoundingClientRect();
        const style = getComputedStyle(e);
        const seen = box.top >= 0 && box.bottom <= innerHeight;
        return [e.name, parseFloat(style.outlineWidth), style.outlineStyle, seen]; })()"""
    found, width, style, seen = page.run(focus)
    assert (found, width >= 2, style, seen) == (name, True, "solid", True)


@pytest.mark.parametrize("width", [1400, 390])
def test_scores_and_figure_follow_the_keyboard(width: int, browser: Browser) -> None:
    page = browser.open(PAGE.as_uri(), width)
    assert page.said == ""
    assert page.asked == []
    assert page.run("document.documentElement.scrollWidth") <= width
    assert shown(page, "M002") == wanted(
        "M002", paper=list(report("M002")["paper"].unique()).index(1)
    )
    tab_to(page, "topic")
    page.press("ArrowRight")
    assert page.run("document.getElementById('about-M002').hidden")
    assert shown(page, "R112") == wanted(
        "R112", paper=list(report("R112")["paper"].unique()).index(1)
    )
    tab_to(page, "patience")
    for _ in range(6):
        page.press("ArrowLeft")
    assert page.run("document.activeElement.getAttribute('aria-valuetext')") == "50 words"
    for name, times in (("gains", 2), ("target", 2), ("stop", 3)):
        tab_to(page, name)
        for _ in range(times):
            page.press("ArrowDown")
    chosen = {
        "patience": 0,
        "gains": 0,
        "target": 2,
        "stop_model": 3,
    }  # the gains of R112's paper are the second of three
    told = shown(page, "R112")
    assert told == wanted("R112", **chosen)
    assert told != wanted("R112", **chosen | {"stop_model": 0})
    # the figure says the same
    moved = """[...document.querySelectorAll('#about-R112 [id*=-mark-]')]
        .map(e => [e.id, e.transform.baseVal[0].matrix.e])"""
    for name, place in page.run(moved):
        run, score = map(int, name.split("-")[2:])
        assert place == pytest.approx(600 * float(told[score][run]) ** (1 / 3), abs=0.01)
    limit = page.run("document.getElementById('R112-limit').transform.baseVal[0].matrix.e")
    beyond = page.run(
        "[...document.querySelectorAll('#about-R112 .beyond')]"
        ".map(e => [+e.dataset.end, e.x.baseVal.value])"
    )
    nuggets = pd.read_csv(project.data("conversations", "R112.csv"))
    assert sorted(end for end, _ in beyond) == sorted(nuggets.loc[nuggets["end"] > 50, "end"])
    assert all(place > limit - 4 for _, place in beyond)
    status = page.run(
        "[...document.querySelectorAll('[aria-live=polite]')].map(e => e.textContent).join()"
    )
    assert {told[0][0], told[-2][1]} <= set(
        re.findall(r"\d\.\d{6}", status)
    )  # R of one run, GFRC2 of the other
    tab_to(page, "")
    page.press("Enter")  # the button
    assert shown(page, "R112") == wanted(
        "R112", paper=list(report("R112")["paper"].unique()).index(1)
    )
    assert page.run("document.documentElement.scrollWidth") <= width
    assert page.said == ""
    page.close()


def test_every_combination_is_looked_up_rightly(browser: Browser) -> None:
    """The script's place of a combination is the row of the report, for each one."""
    page = browser.open(PAGE.as_uri())
    table = report("M002")
    names = [name for name in table if name not in ("run", *SETTINGS, "paper")]
    sizes = [table[name].nunique() for name in SETTINGS]
    said = page.run(
        f"""(() => {{ const form = document.getElementById("settings"), all = [], sizes = {sizes};
        const count = sizes.reduce((a, b) => a * b, 1);
        for (let n = 0; n < count; n++) {{ let rest = n;
          ["stop", "target", "gains", "patience"].forEach((name, i) => {{
            const size = sizes[3 - i]; form.elements[name].value = rest % size;
            rest = Math.floor(rest / size); }});
          form.elements.patience.dispatchEvent(new Event("input", {{bubbles: true}}));
          const cells = [...document.querySelectorAll("#about-M002 tbody td")];
          all.push(cells.map(e => e.textContent)); }}
        return all; }})()"""
    )
    page.close()
    first, second = (part for _, part in table.groupby("run", sort=False))
    assert len(said) == len(first) == len(second)
    for row, one, other in zip(
        said, first[names].to_numpy(), second[names].to_numpy(), strict=True
    ):
        assert row == [f"{value:.6f}" for pair in zip(one, other, strict=True) for value in pair]
