"""Prose is shown only where its expectations hold; a build fails where one does not."""

from pathlib import Path

import pytest

from equipoise_compendium import build
from equipoise_compendium import report as reports
from equipoise_compendium.printed import printed_table
from equipoise_compendium.protocol import Evidence
from equipoise_compendium.provenance import REPORT_FOLDER_VARIABLE, VARIANT_VARIABLE
from equipoise_compendium.report import Report
from small_repository import put

FALSE = "report.expect(scale == 1, 'the scale is one')"
TEXT = """\
report = Report("example")
report.answer()
"""


def in_cell(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Go on in another cell."""
    monkeypatch.setattr(reports, "_running_cell", lambda: number)


def said(report: Report, text: str = "It is larger.") -> str:
    return report.say(text).formats["text/plain"]


@pytest.fixture(params=["by hand", "with other parameters"])
def rerun(request: pytest.FixtureRequest, root: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    """Return the report of a notebook that is run by hand, or built with other parameters."""
    if request.param != "by hand":
        monkeypatch.setenv(REPORT_FOLDER_VARIABLE, str(root / "staged"))
        monkeypatch.setenv(VARIANT_VARIABLE, "scale = 2")
    return Report("example")


def test_prose_of_the_cell_and_the_answer_are_left_out(
    rerun: Report, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    in_cell(monkeypatch, 1)
    assert rerun.expect(2 > 1, "two is larger")
    assert said(rerun) == "It is larger."
    in_cell(monkeypatch, 2)
    assert not rerun.expect(1 > 2, "one is larger")
    assert capsys.readouterr().out == "Not so with these parameters: one is larger.\n"
    assert said(rerun) == ""
    in_cell(monkeypatch, 3)
    assert said(rerun) == "It is larger."
    rerun.answer("One is larger.", "It is so.")
    rerun.finish()
    manifest = (rerun.folder / "manifest.json").read_text()
    assert "Not so: one is larger." in manifest
    assert "It is so." not in manifest


def test_an_expectation_of_the_whole_notebook_leaves_out_all_prose(
    rerun: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_cell(monkeypatch, 1)
    rerun.expect(False, "the text is about this study", everywhere=True)
    in_cell(monkeypatch, 2)
    assert said(rerun) == ""


def test_a_build_names_notebook_cell_and_text(root: Path) -> None:
    put(root, TEXT, f"{FALSE}\nreport.answer('One.')", "report.finish()")
    assert [outcome.error for outcome in build.build()] == [""]
    put(root, TEXT, f"scale = 2\n{FALSE}", "report.finish()")
    (outcome,) = build.build()
    assert (outcome.notebook, outcome.state) == ("example", "kept")
    place, _, message = outcome.error.partition(": AssertionError: ")
    assert place == "cell 4, line 2"
    assert message == "prose relies on this, and it does not hold: the scale is one"
    (outcome,) = build.build(given={"scale": "3"})
    assert (outcome.state, outcome.error) == ("built", "")


@pytest.mark.usefixtures("root")
def test_by_hand_each_cell_that_differs_is_listed_with_both_values() -> None:
    table = printed_table("gfrc2/table-3").set_index("run").astype(float).reset_index()
    run, published = table.loc[1, "run"], table.loc[1, "EGNP"]
    table.loc[1, "EGNP"] += 0.5
    formats = Report("example").table("gfrc2/table-3", table, ["run"]).formats
    cell = f"{run}, EGNP: published {published:.6f}, computed {published + 0.5:.6f}"
    assert formats["text/html"].count(f"<li>{cell} (no reason is known)</li>") == 1


def test_by_hand_a_table_with_other_rows_is_shown_and_not_compared(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = printed_table("gfrc2/table-3").iloc[:1]
    shown = Report("example").table("gfrc2/table-3", table, ["run"]).formats["text/plain"]
    assert "Not compared: gfrc2/table-3: row ORG-CS-D-MN-1 is missing" in shown
    monkeypatch.setenv(REPORT_FOLDER_VARIABLE, str(root / "staged"))
    with pytest.raises(ValueError, match="row ORG-CS-D-MN-1 is missing"):
        Report("example").table("gfrc2/table-3", table, ["run"])


def test_by_hand_a_claim_on_other_collections_is_not_judged(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evidence = {"others": Evidence(1.0, reason="nothing is sampled")}
    shown = Report("example").claim("gfrc2/copwa-outperforms", evidence).formats["text/plain"]
    assert "Not judged: claim copwa-outperforms of gfrc2: collections must be" in shown
    monkeypatch.setenv(REPORT_FOLDER_VARIABLE, str(root / "staged"))
    with pytest.raises(ValueError, match="collections must be"):
        Report("example").claim("gfrc2/copwa-outperforms", evidence)
