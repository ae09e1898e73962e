"""Guards comparison with the printed tables, the writers, escaping, and the ledger's statuses."""

import base64
import io
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any, Final

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from nbformat import NotebookNode
from PIL import Image

from crawl import Page
from equipoise.readers import number
from equipoise_compendium import ledger, project
from equipoise_compendium.formatting import interval
from equipoise_compendium.printed import (
    WHOLE_TABLE,
    Difference,
    Printed,
    artefacts,
    compare,
    printed_table,
)
from equipoise_compendium.protocol import Evidence
from equipoise_compendium.provenance import REPORT_FOLDER_VARIABLE, read_manifest, write_manifest
from equipoise_compendium.rendering import (
    Shown,
    difference_lines,
    macros,
    markdown_cell,
    show_answer,
    show_table,
)
from equipoise_compendium.report import Report
from equipoise_compendium.site import markup
from equipoise_compendium.terms import STATUSES
from equipoise_compendium.verdicts import table_of
from equipoise_compendium.writing import write_csv

HOSTILE = '<script>alert("x")</script>|`a`\n[b](javascript:c) $d$'

REPLICATED: Final = "replicated on other data"
LEAD = Evidence(0.1, reason="nothing is sampled")
COPWA_LEADS = {"R112 annotations": LEAD, "R112 annotations, three-word nugget": LEAD}


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    monkeypatch.setenv(REPORT_FOLDER_VARIABLE, str(tmp_path))
    return Report("example")


def ours(name: str, keys: list[str]) -> pd.DataFrame:
    """Return the printed table as if it were ours, numbers as numbers."""
    table = printed_table(name)
    values = table.drop(columns=keys)
    return table[keys].join(values.map(lambda text: number(text) if text else None).astype(float))


def test_equal_at_the_printed_precision() -> None:
    table = ours("gfrc2/table-3", ["run"])
    table["EGNP"] += 0.00000049
    result = compare(table, "gfrc2/table-3", ["run"])
    assert (result.cells, result.differences) == (8, ())
    assert result.largest == pytest.approx(0.00000049)


def test_half_a_unit_too_far_is_a_difference() -> None:
    table = ours("gfrc2/table-3", ["run"])
    table.loc[0, "EGNP"] += 0.00000051
    (difference,) = compare(table, "gfrc2/table-3", ["run"]).differences
    assert (difference.row, difference.column, difference.printed) == (
        "COPWA-CS-QD-MN-2",
        "EGNP",
        "0.001728",
    )
    assert difference.reason == ""


def test_a_printed_whole_number_is_taken_at_its_word() -> None:
    table = ours("gfrc/table-1", ["run", "nugget"])
    table.loc[0, "g"] = 0.9
    assert [d.printed for d in compare(table, "gfrc/table-1", ["run", "nugget"]).differences] == [
        "1"
    ]


def test_a_printed_fraction_is_exact() -> None:
    keys = ["section", "run", "row"]
    table = printed_table("gfrc2/table-4")
    table["D 1"] = table["D 1"].map({"1": 1.0, "0": 0.0, "1/2": 0.5, "5/6": 0.8333})
    wrong = [d for d in compare(table, "gfrc2/table-4", keys).differences if d.column == "D 1"]
    assert [d.printed for d in wrong] == ["5/6"]


def test_missing_numbers_rows_and_columns() -> None:
    table = ours("gfrc2/table-3", ["run"])
    table.loc[0, "EGNP"] = float("nan")
    assert compare(table, "gfrc2/table-3", ["run"]).differences[0].ours == ""
    with pytest.raises(ValueError, match=r"our table has no column EGNP, only .*; set columns="):
        compare(table.drop(columns="EGNP"), "gfrc2/table-3", ["run"])
    with pytest.raises(
        ValueError, match=r"row ORG-CS-D-MN-1.* is missing from our table, which begins with"
    ):
        compare(table.head(1), "gfrc2/table-3", ["run"])
    with pytest.raises(ValueError, match="must identify one row"):
        compare(pd.concat([table, table]), "gfrc2/table-3", ["run"])


@pytest.mark.parametrize("paper", sorted(set(artefacts()["paper"])))
def test_every_explanation_belongs_to_a_printed_cell(paper: str) -> None:
    table = pd.read_csv(project.data("published", paper, "explanations.csv"), dtype=str)
    assert not table.isna().any().any()
    for row in table.itertuples():
        columns = printed_table(str(row.artefact)).columns
        assert row.column in columns or (row.row, row.column) == (WHOLE_TABLE, WHOLE_TABLE)


@pytest.mark.parametrize("kind", [float, object])
def test_csv_keeps_twelve_digits_and_no_negative_zero(kind: type) -> None:
    stream = io.StringIO()
    numbers = pd.DataFrame({"third": [1 / 3, 2.0], "zero": [-0.0, None]}, dtype=kind)
    write_csv(numbers.assign(id=["007", "08"]), stream)
    assert stream.getvalue() == "third,zero,id\n0.333333333333,0,007\n2,,08\n"


def cells_of(shown: Shown) -> list[list[str]]:
    """The cells of the rows of a table, as HTML."""
    body = shown.formats["text/html"].split("<tbody>")[1]
    return [re.findall("<td[^>]*>(.*?)</td>", row) for row in re.findall("<tr>(.*?)</tr>", body)]


def test_the_last_bits_of_a_number_reach_no_report(report: Report, tmp_path: Path) -> None:
    """A table shows, compares and saves numbers with twelve digits; no p-value is shown as 0."""
    table = pd.DataFrame({"half": [0.125 + 2**-53, 0.375 - 2**-53], "none": [0.1 + 0.2 - 0.3, 0.5]})
    table = table.assign(p=[1 / 3e20, 0.5], mixed=[1 - 2**-53, "a"])
    shown = report.table("bits", table, digits=2)
    assert cells_of(shown) == [["0.12", "0.00", "&lt; 0.01", "1.00"], ["0.38", "0.50", "0.50", "a"]]
    saved = (tmp_path / "tables" / "bits.csv").read_text()
    assert saved == "half,none,p,mixed\n0.125,0,0,1\n0.375,0.5,0.5,a\n"


def test_a_manifest_has_twelve_digits_and_what_a_person_chose(tmp_path: Path) -> None:
    write_manifest(tmp_path, {"largest": [1 / 3, -0.0], "parameters": {"scale": 1e-13, "size": 3}})
    assert read_manifest(tmp_path) == {
        "largest": [0.333333333333, 0.0],
        "parameters": {"scale": 1e-13, "size": 3},
    }


def test_text_from_data_is_escaped_everywhere(report: Report) -> None:
    shown = report.table("hostile", pd.DataFrame({HOSTILE: [HOSTILE], "R": [0.5]}), caption=HOSTILE)
    assert "<script" not in shown.formats["text/html"]
    assert markdown_cell("$x$ ~~a~~ #b") == r"\$x\$ \~\~a\~\~ \#b"
    shown = report.table("plain", pd.DataFrame({"R": [0.5]}))
    assert cells_of(shown) == [["0.5000"]]


def test_differences_are_marked_and_explained(report: Report) -> None:
    table = ours("gfrc/table-2", ["run", "turn"])
    table.loc[2, "DistrSim RATINGS"] = 0.578417
    shown = report.table("gfrc/table-2", table, ["run", "turn"])
    assert (
        shown.formats["text/html"].count("≠ 0.5784</mark><br><small>published 0.5785</small>") == 1
    )
    assert shown.formats["text/html"].count("≠") == 1
    assert "after rounding them" in shown.formats["text/plain"]
    assert "45 of 46 published cells agree" in shown.formats["text/plain"]


def manifest(report: Report) -> dict[str, Any]:
    report.finish()
    content = json.loads((report.folder / "manifest.json").read_text())
    assert isinstance(content, dict)
    return content


def test_a_drawing_without_printed_numbers_is_an_illustration(report: Report) -> None:
    figure, _ = plt.subplots()
    report.figure("gfrc2/figure-4", figure)
    assert manifest(report)["artefacts"][0]["status"] == "redrawn"


def test_a_difference_is_explained_where_its_reason_is_proved(report: Report) -> None:
    table = ours("gfrc/table-2", ["run", "turn"])
    table.loc[table["run"].eq("bing-1") & table["turn"].eq("GF"), "DistrSim RATINGS"] = 0.578417
    report.table("gfrc/table-2", table, ["run", "turn"])
    record = manifest(report)["artefacts"][0]
    assert [cell["proved"] for cell in record["differences"]] == [True]
    assert record["status"] == "reproduced, differences explained"


def test_code_decides_the_status(report: Report) -> None:
    report.table("gfrc2/table-3", ours("gfrc2/table-3", ["run"]), ["run"])
    wrong = ours("gfrc2/table-5", ["run"])
    wrong["R"] = 0.5
    report.table("gfrc2/table-5", wrong, ["run"])
    report.table("permutations/table-2", wrong, basis=REPLICATED, data="a small collection")
    figure, _ = plt.subplots()
    report.figure(
        "gfrc2/figure-4",
        figure,
        values=ours("gfrc2/table-1", ["wc"]),
        keys=["wc"],
        against="gfrc2/table-1",
    )
    content = manifest(report)
    statuses = {record["artefact"]: record["status"] for record in content["artefacts"]}
    assert statuses == {
        "gfrc2/table-3": "reproduced",
        "gfrc2/table-5": "partly reproduced",
        "permutations/table-2": REPLICATED,
        "gfrc2/figure-4": "cross-checked",
    }
    # a difference without a reason: the build refuses it
    assert [d["reason"] for d in content["artefacts"][1]["differences"]] == ["", ""]
    table = ledger.table_of([content], table_of([content]))
    row = table[table["artefact"].eq("table-2") & table["paper"].eq("permutations")].iloc[0]
    # A finding without data is listed with its artefact.
    assert (row["findings"], row["carried"], row["remarks"]) == ("1", "", "")
    assert row["cannot_be_recomputed"] == row["not_tested"] == "1"
    assert set(table["status"]) == {*statuses.values(), "not reproduced"}
    with pytest.raises(ValueError, match="reported by both"):
        ledger.table_of([content, content | {"notebook": "another"}], table_of([content]))


def test_what_a_report_refuses(report: Report) -> None:
    table = pd.DataFrame({"R": [1.0]})
    figure, _ = plt.subplots()
    with pytest.raises(ValueError, match="a name must be letters"):
        report.table("../escape", table)
    with pytest.raises(ValueError, match=r"not found in data/published/artefacts\.csv"):
        report.table("gfrc/table-9", table, basis=REPLICATED, data="x")
    with pytest.raises(ValueError, match="must name its data"):
        report.table("permutations/table-2", table, basis=REPLICATED)
    with pytest.raises(ValueError, match="without published values"):
        report.figure("gfrc2/figure-4", figure, basis="recomputed")
    with pytest.raises(ValueError, match="by which a figure is compared"):
        report.figure("gfrc2/figure-4", figure, against="gfrc2/table-1")
    with pytest.raises(ValueError, match="must be reported before"):
        report.claim("gfrc2/copwa-outperforms", COPWA_LEADS)
    plt.close("all")


def test_a_claim_of_ours_can_be_judged_beside_the_notebook_of_its_artefact(
    report: Report,
) -> None:
    report.claim("gfrc2/any-stop-model", {"R112 annotations": LEAD})
    content = manifest(report)
    assert content["artefacts"] == []  # the ledger has the artefact from its own notebook
    table = table_of([content])
    claim = table.iloc[0]
    assert (claim["claim"], claim["artefact"]) == ("any-stop-model", "table-3")
    assert (claim["notebook"], claim["estimate"]) == ("example", 0.1)


def test_findings_without_data_need_no_cell(report: Report) -> None:
    """They are stated, with both reasons, and judged with the artefact that they are about."""
    report.table("gfrc2/table-5", ours("gfrc2/table-5", ["run"]), keys=["run"])
    (claim,) = table_of([manifest(report)]).to_dict("records")
    assert claim["claim"] == "one-scale"
    assert (claim["in_paper"], claim["elsewhere"]) == ("cannot be recomputed", "not tested")
    assert "gives no bound" in claim["in_paper_reason"]


def test_a_figure_says_what_is_to_be_seen_in_it(report: Report) -> None:
    for name, alt, said in (
        ("with", "a line that falls <", "a line that falls <"),
        ("without", "", "a line"),
    ):
        figure, ax = plt.subplots()
        ax.plot([0, 1], [1, 0])
        shown = report.figure(name, figure, "a line", alt=alt)
        content, about = shown._repr_mimebundle_()
        assert about["equipoise"] == {"figure": name}
        png = base64.b64decode(content["image/png"])
        drawing = Image.open(io.BytesIO(png))
        assert drawing.mode == "P"
        assert about["image/png"] == {"alt": said, "width": drawing.width * 4 // 5}
        assert content["text/plain"] == "a line"
        assert [path.name for path in report.folder.glob(f"figures/{name}.*")] == [f"{name}.svg"]
        svg = ET.parse(report.folder / "figures" / f"{name}.svg").getroot()  # noqa: S314 - ours
        title = svg.find("{http://www.w3.org/2000/svg}title")
        assert title is not None
        assert title.text == said
        assert svg.get("aria-label") == said


def test_a_page_shows_a_figure_in_two_widths(report: Report) -> None:
    for wide, widths in ((False, ["(max-width: 40rem)", ""]), (True, [""])):
        ax = plt.figure(figsize=(8, 3)).subplots()
        content, about = report.figure(f"f{wide}", ax, "A < b", wide=wide)._repr_mimebundle_()
        output = NotebookNode(data=content, metadata=about)
        drawn = markup.Figure.of(report.folder, output)
        page = str(macros(in_notebook=False).figure(drawn, [], ""))
        tags = [values for tag, values in Page(page).tags if tag in ("source", "img")]
        assert [values.get("media", "") for values in tags] == widths
        *phone, image = tags
        assert image["alt"] == "A < b"
        assert int(image["width"]) > 700
        for values in phone:
            path = report.folder.parent / values["srcset"].removeprefix("../")
            assert path.stat().st_size > 1000
            assert 300 < int(values["width"]) < 360


def test_figures_are_the_same_bytes_each_time(report: Report, tmp_path: Path) -> None:
    files = {}
    for attempt in range(2):
        figure, ax = plt.subplots()
        ax.plot([0, 1], [0, 1], "o-", label="a")
        ax.legend()
        shown = report.figure("twice", ax, caption="A & B")
        svg = (tmp_path / "figures" / "twice.svg").read_bytes()
        files[attempt] = svg, base64.b64decode(shown.formats["image/png"])
        assert not plt.fignum_exists(figure.number)
    assert files[0] == files[1]
    assert b"Matplotlib" not in files[0][1]


def test_the_committed_ledger_covers_every_artefact_honestly() -> None:
    table = pd.read_csv(project.root() / "reports" / "ledger.csv", dtype=str, keep_default_na=False)
    assert (table["paper"] + "/" + table["artefact"]).tolist() == artefacts().index.tolist()
    assert set(table["status"]) <= set(STATUSES)
    assert (table.loc[table["status"] == "not reproduced", "remarks"] != "").all()
    for files in table["files"]:
        for file in files.split():
            assert (project.root() / "reports" / file).is_file()
    is_case_study = table["paper"].isin(["gfrc", "gfrc2"]) & table["artefact"].str.startswith("tab")
    assert is_case_study.sum() == 7
    assert set(table.loc[is_case_study, "status"]) <= {
        "reproduced",
        "reproduced, differences explained",
    }
    assert not ((table["cells"] == "") & (table["status"] == "cross-checked")).any()


def test_a_variant_is_held_against_no_paper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EQUIPOISE_REPORT_FOLDER", str(tmp_path))
    ours = printed_table("gfrc2/table-3").set_index("run").astype(float).add(1).reset_index()
    report = Report("gfrc2_iclr_researchers")
    assert "no reason is known" in report.table("gfrc2/table-3", ours, ["run"]).formats["text/html"]
    monkeypatch.setenv("EQUIPOISE_VARIANT", "patience = 600")
    report = Report("gfrc2_iclr_researchers")
    shown = report.table("gfrc2/table-3", ours, ["run"]).formats["text/html"]
    assert "<caption>patience = 600</caption>" in shown
    assert "<caption>default parameters</caption>" in shown
    assert "published" not in shown
    judged = report.claim("gfrc2/copwa-outperforms", COPWA_LEADS)
    assert "Not judged" in judged.formats["text/html"]
    assert "<td>gfrc2, Table 3</td><td>variant</td>" in report.finish().formats["text/html"]
    assert json.loads((tmp_path / "manifest.json").read_text())["artefacts"][0]["claims"] == []


def test_cells_that_differ_for_one_reason_are_counted_and_others_named() -> None:
    differences = [
        Difference("0", "R", "1", "2", "why", proved=True),
        Difference("1", "R", "1", "", "", proved=False),
        Difference("2", "R", "1", "2", "why", proved=True),
    ]
    assert difference_lines(differences) == [
        "2 cells differ: why",
        "1, R: published 1, computed nothing (no reason is known)",
    ]


def test_a_tolerance_adds_to_the_precision_of_a_printed_number() -> None:
    cell = Printed.parse("0.1544")
    assert not cell.agrees(0.1546, "0.1544")
    assert cell.agrees(0.1564, "0.1544", 0.002)
    assert not cell.agrees(0.1566, "0.1544", 0.002)


def test_a_table_is_set_as_people_read_it(report: Report) -> None:
    table = pd.DataFrame(
        {
            "run": ["x", "y"],
            "MAP": [0.5, 0.25],
            "MAP better than": ["b", ""],
            "cited_all": [3.0, 12.0],
        }
    )
    shown = report.table("set", table)
    head, body = shown.formats["text/html"].split("<tbody>")
    assert re.findall('<th scope="col">(.*?)</th>', head) == ["run", "MAP", "cited all"]
    cells = [
        "<td>x</td>",
        '<td class="number">0.5000<sup>b</sup></td>',
        '<td class="number">3</td>',
    ]
    assert body.startswith(f"<tr>{''.join(cells)}</tr>")
    assert cells_of(shown)[1] == ["y", "0.2500", "12"]
    saved = pd.read_csv(report.folder / "tables" / "set.csv")
    assert saved.columns.tolist() == table.columns.tolist()


def test_no_p_value_is_shown_as_nothing() -> None:
    table = pd.DataFrame({"p of r": [1e-9, 0.00004, 0.00006, 0.5], "power": [1e-9, 0.5, 0.5, 0.5]})
    cells = cells_of(show_table("x", "x", table, None, 4))
    assert [row[0] for row in cells] == ["&lt; 0.0001", "&lt; 0.0001", "0.0001", "0.5000"]
    assert cells[0][1] == "0.0000"


def test_an_answer_of_three_sentences_is_one_and_a_list() -> None:
    short = show_answer(["It <b>holds</b>.", "Twice."]).formats
    assert "<p><b>Answer.</b> It &lt;b&gt;holds&lt;/b&gt;. Twice.</p></div>" in short["text/html"]
    long = show_answer(["It holds.", "Here <i>.", "There *."]).formats
    page = "<p><b>Answer.</b> It holds.</p><ul><li>Here &lt;i&gt;.</li><li>There *.</li></ul>"
    assert page in long["text/html"]
    assert long["text/plain"] == "Answer. It holds. Here <i>. There *."


def test_an_interval_has_minus_signs_and_the_decimals_of_its_estimate() -> None:
    assert interval(-0.0104, -0.02, 0.0001, 3) == "−0.010 [−0.020, 0.000]"
