"""The page on which a reader moves the settings: its numbers are those of the report."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from equipoise_compendium import project
from equipoise_compendium.site.added import script
from equipoise_compendium.site.markup import TEMPLATES
from equipoise_studies.pages import explore
from explored import PAGE, report, wanted


def test_without_scripts_the_settings_of_the_papers_are_shown() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for topic in explore.TOPICS:
        rows = re.findall(rf'id="{topic}-[01]-\d+"[^>]*>([\d.]+)</td>', text)
        paper = wanted(topic, paper=list(report(topic)["paper"].unique()).index(1))
        assert rows == [cell for pair in paper for cell in pair]
    assert "hidden" not in re.sub(r"<script.*", "", text, flags=re.DOTALL)
    assert "<fieldset disabled>" in text


def test_scripts_are_short_and_the_only_ones_that_may_run() -> None:
    scripts = {
        "copy": TEMPLATES / "site" / "copy.js",
        "find": TEMPLATES / "site" / "find.js",
        "explore": explore.SCRIPT,
    }
    copied = script(scripts["copy"])[1]
    for path in PAGE.parent.glob("*.html"):
        page = html.unescape(path.read_text(encoding="utf-8"))
        digests = [copied]
        if path.stem in ("explore", "find"):
            digests.insert(0, script(scripts[path.stem])[1])
        assert page.count("script-src") == 1
        assert f'script-src {" ".join(digests)}">' in page
    for path in scripts.values():
        text, _ = script(path)
        assert len(text.splitlines()) < 150
        assert not re.search(r"https?:|import|fetch|\beval\b|innerHTML", text)


def test_without_the_report_there_is_no_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(project, "root", lambda: tmp_path)
    assert explore.values() == {}
