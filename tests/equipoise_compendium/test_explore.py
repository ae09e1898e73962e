"""The page on which a reader moves the settings: driven by keyboard, its numbers are those of the report."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from chromium import Browser, Page
from equipoise_compendium import project
from equipoise_compendium.site import explore

PAGE = project.root() / "reports" / "site" / "explore.html"
SETTINGS = ["patience", "gains", "target", "stop model"]


def report(topic: str) -> pd.DataFrame:
    """The CSV of the build."""
    return pd.read_csv(
        project.root() / "reports" / "explore_conversations" / "figures" / f"{topic}.csv"
    )


def wanted(topic: str, **chosen: int) -> list[list[str]]:
    """What the table of a topic has to say, by score and run; settings are chosen by their place in the report."""
    table = report(topic)
    names = [name for name in table if name not in ("run", *SETTINGS, "paper")]
    for name, place in chosen.items():
        column = name.replace("_", " ")
        table = table[table[column] == report(topic)[column].unique()[place]]
    assert len(table) == 2
    return [[f"{value:.6f}" for value in table[name]] for name in names]


def shown(page: Page, topic: str) -> Any:
    rows = f"[...document.querySelectorAll('#about-{topic} tbody tr')]"
    return page.run(f"{rows}.map(row => [...row.cells].slice(1).map(cell => cell.textContent))")


def tab_to(page: Page, name: str) -> None:
    """Press Tab until a control of this name has the focus, and see that it is marked and in sight."""
    for _ in range(40):
        page.press("Tab")
        if page.run("document.activeElement.name || ''") == name:
            break
    focus = """(() => { const e = document.activeElement, box = e.getBoundingClientRect(), style = getComputedStyle(e);
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
    moved = "[...document.querySelectorAll('#about-R112 [id*=-mark-]')].map(e => [e.id, e.transform.baseVal[0].matrix.e])"
    for name, place in page.run(moved):
        run, score = map(int, name.split("-")[2:])
        assert place == pytest.approx(600 * float(told[score][run]) ** (1 / 3), abs=0.01)
    limit = page.run("document.getElementById('R112-limit').transform.baseVal[0].matrix.e")
    beyond = page.run(
        "[...document.querySelectorAll('#about-R112 .beyond')].map(e => [+e.dataset.end, e.x.baseVal.value])"
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
            const size = sizes[3 - i]; form.elements[name].value = rest % size; rest = Math.floor(rest / size); }});
          form.elements.patience.dispatchEvent(new Event("input", {{bubbles: true}}));
          all.push([...document.querySelectorAll("#about-M002 tbody td")].map(e => e.textContent)); }}
        return all; }})()"""
    )
    page.close()
    first, second = (part for _, part in table.groupby("run", sort=False))
    assert len(said) == len(first) == len(second)
    for row, one, other in zip(
        said, first[names].to_numpy(), second[names].to_numpy(), strict=True
    ):
        assert row == [f"{value:.6f}" for pair in zip(one, other, strict=True) for value in pair]


def test_without_scripts_the_settings_of_the_papers_are_shown() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for topic in explore.TOPICS:
        rows = re.findall(rf'id="{topic}-[01]-\d+"[^>]*>([\d.]+)</td>', text)
        paper = wanted(topic, paper=list(report(topic)["paper"].unique()).index(1))
        assert rows == [cell for pair in paper for cell in pair]
    assert "hidden" not in re.sub(r"<script.*", "", text, flags=re.DOTALL)
    assert "<fieldset disabled>" in text


def test_the_script_is_short_and_the_only_one_that_may_run() -> None:
    text, policy = explore.script()
    assert len(text.splitlines()) < 150
    page = html.unescape(PAGE.read_text(encoding="utf-8"))
    assert page.count("script-src") == 1
    assert policy in page
    assert not re.search(r"https?:|import|fetch|eval|innerHTML", text)
    with_scripts = {
        path.name
        for path in PAGE.parent.glob("*.html")
        if "script-src" in path.read_text(encoding="utf-8")
    }
    assert with_scripts == {"explore.html", "find.html"}


def test_without_the_report_there_is_no_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(project, "root", lambda: tmp_path)
    assert explore.values() == {}
