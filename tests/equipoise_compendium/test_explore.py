"""The page on which a reader moves the settings: its numbers are those of the report."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from equipoise_compendium import project
from equipoise_compendium.site import explore
from explored import PAGE, report, wanted


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
