"""Guards the site: every link, its scripts, what passes its sanitiser, and what a browser shows."""

from __future__ import annotations

import html
import importlib.util
import json
import re
import shutil
import time
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest

from chromium import PROGRAM, Browser, Page
from commands import called
from crawl import broken_links, pages
from equipoise import catalogue
from equipoise_compendium import build, plots, project, rendering, terms, verdicts
from equipoise_compendium.provenance import REPORT_FOLDER_VARIABLE
from equipoise_compendium.report import Report
from equipoise_compendium.settings import settings
from equipoise_compendium.site import markup, picture
from equipoise_compendium.site import pages as site
from equipoise_compendium.site.added import script
from equipoise_compendium.site.compared import compared
from equipoise_studies.conversations import explore_page
from prose import shipped
from small_repository import digest, put_report

SITE = project.root() / "reports" / "site"
NAMES = sorted(path.stem for path in SITE.glob("*.html"))
USERS = set(site.reported()) - set(shipped())
"""Notebooks of a fork, in which a user may write what this project does not."""
HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    '<svg onload="document.title=1"><a href="javascript:alert(1)">x</a></svg>'
    "<iframe src='http://192.0.2.1/'></iframe><img src='http://192.0.2.1/a.png'> "
    "$\\href{http://192.0.2.1}{x}$ & | `"
)
PAGE = SITE / "explore.html"
SETTINGS = ["patience", "gains", "target", "stopping model"]
in_a_browser = pytest.mark.skipif(
    PROGRAM is None, reason="no Chromium on this machine: the pages are not opened in a browser"
)


# --- the pages as files ---------------------------------------------------------------------------


def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere() -> None:
    assert broken_links(SITE) == []
    for path, page in pages(SITE).items():
        sources = [values["src"] for _, values in page.tags if "src" in values]
        assert not any(source.startswith("http") for source in sources), path.name
        if path.stem in USERS:
            continue
        images = [values for tag, values in page.tags if tag == "img"]
        # In the gallery the caption names the image.
        assert all(each["alt"] or each.get("loading") == "lazy" for each in images), path.name


def test_the_committed_site_is_that_of_the_reports() -> None:
    assert site.check() == []


def test_a_new_notebook_changes_its_own_page_and_the_lists(root: Path) -> None:
    """A new paper changes the menu, and so every page."""
    put_report(root, "example")
    build.write_summaries()
    site.refresh()
    before = digest(root / "reports" / "site")
    put_report(root, "another", title="Another")
    build.write_summaries()
    site.refresh()
    after = digest(root / "reports" / "site")
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {"another.html", "figures.html", "find.html", "notebooks.html"}

    with (root / "data" / "published" / "artefacts.csv").open("a") as file:
        file.write("\nnewest,table-1,table,A table,page 1,not yet regenerated\n")
    assert site.check() == []
    build.write_summaries()
    page = root / "reports" / "site" / "example.html"
    assert "reports/site/example.html is outdated: run equipoise site" in site.check()
    site.refresh()
    assert 'href="notebooks.html#newest"' in page.read_text()


def test_every_artefact_claim_and_measure_has_its_place() -> None:
    parsed = {path.stem: page for path, page in pages(SITE).items()}
    ledger = pd.read_csv(project.root() / "reports" / "ledger.csv", keep_default_na=False)
    for row in ledger.itertuples():
        anchor = f"{row.paper}-{row.artefact}"
        assert f"row-{anchor}" in parsed["artefacts"].ids
        if row.notebook:
            assert anchor in parsed[str(row.notebook)].ids
    claims = pd.read_csv(project.root() / "reports" / "claims.csv")
    names = {f"claim-{row.paper}-{row.claim}" for row in claims.itertuples(index=False)}
    assert names <= set(parsed["claims"].ids)
    assert {measure.anchor for measure in catalogue.MEASURES} <= set(parsed["measures"].ids)
    for name in shipped():
        tables = (project.root() / "reports" / name / "tables").glob("*.csv")
        shown_tables = set(parsed[name].ids)
        # a table of 221 conversations is saved and not shown
        assert {path.stem for path in tables} - {"repeated_urls"} <= shown_tables, name


def test_scripts_are_short_and_the_only_ones_that_may_run() -> None:
    scripts = [rendering.TEMPLATES / "site.js", explore_page.SCRIPT]
    digests = {script(path)[0]: script(path)[1] for path in scripts}
    for name in NAMES:
        text = (SITE / f"{name}.html").read_text(encoding="utf-8")
        in_page = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
        allowed = " ".join(reversed([digests[text] for text in in_page]))
        assert re.findall(r"script-src ([^\"]*?) *\">", html.unescape(text)) == [allowed]
        assert len(in_page) <= 2
    for text in digests:
        assert len(text.splitlines()) < 150
        assert not re.search(r"https?:|import|fetch|\beval\b|innerHTML", text)


def test_the_picture_has_every_cell_that_differs_and_leads_to_it() -> None:
    index = (SITE / "artefacts.html").read_text(encoding="utf-8")
    mark = r'<a href="([^"]+)" aria-label="([^"]+)"><title>[^<]*</title>\s*<use href="#mark-(\w+)"'
    shown_cells = [each for each in re.findall(mark, index) if each[2] in ("explained", "likely")]
    expected = []
    for manifest in build.manifests():
        for record in manifest["artefacts"]:
            for each in record["differences"]:
                kind = "explained" if each["proved"] else "likely"
                cell = f"{each['row']}, {each['column']}: published {each['printed']}, "
                expected.append((kind, cell))
    assert len(expected) > 40
    labels = [(kind, html.unescape(label)) for _, label, kind in shown_cells]
    for kind, start in expected:
        assert any(label[0] == kind and label[1].startswith(start) for label in labels), start
    assert len(labels) == len(expected)
    texts = {name: (SITE / f"{name}.html").read_text(encoding="utf-8") for name in NAMES}
    n_cells = 0
    for address, label, _ in shown_cells:
        page, _, anchor = address.partition(".html#")
        if "-cell-" not in anchor:
            continue  # a figure has no cells
        found = re.search(
            rf'<mark id="{re.escape(anchor)}">.*?</mark><br><small>published (.*?)</small>',
            texts[page],
        )
        assert found is not None, address
        assert f": published {found[1]}, " in label, address
        n_cells += 1
    assert n_cells > 40


def test_the_first_page_has_each_finding_with_both_answers_and_counts_them() -> None:
    index = (SITE / "index.html").read_text(encoding="utf-8")
    square = (
        r'class="square(?: main)?" href="claims.html#([^"]+)"[^>]*>'
        r'<i class="([^"]+)"></i><i class="([^"]+)"'
    )
    expected = []
    for claim in verdicts.read():
        if claim["kind"] == "finding":
            answers = [terms.css_name(claim[at]) for at in ("in_paper", "elsewhere")]
            expected.append((rendering.claim_anchor(claim), *answers))
    assert sorted(re.findall(square, index)) == sorted(expected)
    carried = sum(answer == "carried" for _, answer, _ in expected)
    counted = re.sub(r"<a href=.claims.html\?[^>]*>(\d+)</a>", r"\1", index)
    assert f"<b>{carried}</b> of {len(expected)} findings" in counted
    tested = [answer for *_, answer in expected if answer != "not-tested"]
    assert f"<b>{tested.count('holds')}</b> of {len(tested)} tested" in counted
    ledger = pd.read_csv(project.root() / "reports" / "ledger.csv")
    cells, differing = ledger[["cells", "differing"]].sum().astype(int)
    assert (
        f"<b>{cells - differing}</b> of {cells} recomputed cells of published tables equal" in index
    )


def test_a_table_on_other_data_lists_its_differences_the_largest_first() -> None:
    (row,) = [row for row in site.read_ledger().to_dict("records") if row["label"] == "Table 3.7"]
    records = [each for manifest in build.manifests() for each in manifest["artefacts"]]
    (record,) = [each for each in records if each["artefact"] == "thesis/table-3.7"]
    found = compared(row, record)
    ours = pd.read_csv(project.root() / "reports" / row["notebook"] / record["files"][0])
    ours = ours[ours["published"].notna()]
    gaps = ours["JSI"] - ours["published"]
    largest = ours.loc[gaps.abs().idxmax()]
    gap, low = largest["JSI"] - largest["published"], largest["low"] - largest["published"]
    assert len(found.lines) == len(ours)
    assert found.largest["Row"] == f"{largest['collection']} {largest['run']}"
    assert found.largest["Difference"] == f"{gap:.4f}".replace("-", "−")
    assert found.largest["95% CI of it"].startswith(f"[{low:.4f}".replace("-", "−"))
    shown = [abs(float(line[4].replace("−", "-"))) for line in found.lines]
    assert shown == sorted(shown, reverse=True)
    assert found.why


def test_a_strip_is_linear_near_zero_and_ends_at_its_limits() -> None:
    places = [picture.left(value) for value in (-1e9, -1000, -1, -0.5, 0, 0.5, 1, 1000, 1e9)]
    assert places == [4, 4, 38.5, 44.2, 50, 55.8, 61.5, 96, 96]
    ones, tens, hundreds = (picture.left(value) for value in (1, 10, 100))
    assert tens - ones == pytest.approx(hundreds - tens, abs=0.2)


def test_the_key_figure_is_at_the_top_of_its_notebook() -> None:
    seen = 0
    for name in shipped():
        path = project.root() / "notebooks" / f"{name}.ipynb"
        if "top_of_page()" not in path.read_text(encoding="utf-8"):
            continue
        executed = project.root() / "reports" / path.stem / path.name
        cells = json.loads(executed.read_text(encoding="utf-8"))["cells"]
        first = next(cell for cell in cells if cell["cell_type"] == "code")
        figures = [output for output in first["outputs"] if "image/png" in output["data"]]
        assert len(figures) == 1, path.stem
        assert figures[0]["metadata"]["image/png"]["alt"]
        assert figures[0]["metadata"]["equipoise"]["figure"]
        seen += 1
    assert seen > 5


def test_without_scripts_the_settings_of_the_papers_are_shown() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for topic in explore_page.TOPICS:
        rows = re.findall(rf'id="{topic}-[01]-\d+"[^>]*>([\d.]+)</td>', text)
        paper = wanted(topic, paper=list(report(topic)["paper"].unique()).index(1))
        assert rows == [cell for pair in paper for cell in pair]
    assert "<fieldset disabled>" in text


# --- text that would do harm ----------------------------------------------------------------------

OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


@pytest.mark.parametrize(
    "hidden", ["\x1b[31m", "\x1b]0;owned\x07", "\x08", "\x9b2J", "\u202e", "\u2066", "\u2028"]
)
def test_control_characters_are_shown_and_not_obeyed(hidden: str) -> None:
    text = f"a{hidden}b"
    escaped = f"a{hidden.encode('unicode_escape').decode()}b"
    assert OBEYED.search(rendering.markdown_cell(text)) is None
    made = rendering.show_table("x", text, pd.DataFrame({text: [text]}), None, 4)
    assert all(OBEYED.search(content) is None for content in made.formats.values())
    assert escaped in made.formats["text/html"]
    assert OBEYED.search(markup.clean(f"<p title='{text}'>{text}</p>")) is None
    assert escaped in markup.prose(text)
    assert OBEYED.search(plots.literal(text)) is None


@pytest.mark.parametrize(
    "link",
    [
        "data:text/html,a",
        " data:text/html,a",
        "da\nta:text/html,a",
        "\x01data:text/html,a",
        "&#100;ata:text/html,a",
        "//host/share",
        "\\\\host\\share",
        "/\\host/share",
        "/\t/host",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "java\tscript:alert(1)",
        "blob:a",
    ],
)
def test_a_link_that_leads_to_code_or_a_share_is_dropped(link: str) -> None:
    cleaned = markup.clean(f'<a href="{link}">x</a><img src="{link}">')
    for page in (cleaned, str(markup.prose(f"[x]({link}) ![y](<{link}>)"))):
        for value in re.findall(r'(?:href|src)="([^"]*)"', page):
            assert re.fullmatch(r"/?[\w%][\w./%-]*", value), page


def test_the_citation_has_year_version_and_address_of_the_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    citation = (project.root() / "CITATION.cff").read_text(encoding="utf-8")
    release = "commit: 0123abc\nurl: https://example.org/equipoise\n"
    (tmp_path / "CITATION.cff").write_text(f"{citation}{release}")
    monkeypatch.setattr(project, "root", lambda: tmp_path)
    entry = site._software()
    version, year = (
        re.search(rf"^{key}: (\S+)", citation, re.MULTILINE) for key in ("version", "date-released")
    )
    assert version is not None
    assert year is not None
    assert f"  version = {{{version[1]}}}," in entry
    assert f"  year = {{{year[1][:4]}}}," in entry
    assert "  url = {https://example.org/equipoise}," in entry
    assert "  note = {commit 0123abc}," in entry
    (tmp_path / "data").mkdir()
    address = "https://forge.example/us/equipoise"
    (tmp_path / "data" / "compendium.toml").write_text(f'repository = "{address}"\n')
    assert f"  url = {{{address}}}," in site._software()


def test_names_in_code_lead_to_measures_and_to_their_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = SITE.parent / "thesis_ch4_ranking_bias" / "thesis_ch4_ranking_bias.ipynb"
    cells = nbformat.read(path, as_version=4).cells
    code = markup.Code.of(cells, {"equipoise.texfair": "measures.html#ranking-bias-texfair"})
    texfair = '<a href="measures.html#ranking-bias-texfair">equipoise.texfair</a>([])'
    written = code.written("equipoise.texfair([]); claims.differences(x); pd.read_csv(y)", 1)
    assert texfair in written
    assert '<a href="#function-claims.differences">claims.differences</a>(x)' in written
    assert "pd.read_csv(y)" in written
    section = code.functions()
    assert re.findall('id="([^"]+)"', section.content) == ["function-claims.differences"]
    assert '<span class="k">def</span> differences(' in section.content
    study = "lib/equipoise_studies/ranking_bias/claims.py"
    assert f"<p><code>{study}</code></p>" in section.content
    chosen = settings().model_copy(update={"repository": "https://forge.example/us"})
    monkeypatch.setattr(markup, "settings", lambda: chosen)
    assert f'<a href="https://forge.example/us/blob/HEAD/{study}">' in code.functions().content


def test_numbers_of_an_answer_lead_to_the_cells_that_have_them() -> None:
    runs = ["1, first", "2, second"]  # a number and a comma, that are no thousands
    table = pd.DataFrame({"run": runs, "mean": [0.5449, 0.5551], "low": [0.51, 0.52]})
    shown = rendering.show_table("own", "Own", table, None, 4).formats["text/html"]
    context = markup.Context(markup.Code({}, {}, {}), {}, {}, {})
    for words in ("0.54", "55.5%", "0.5", "0", "nothing"):
        context.places[words, "own"] = "own"
    context.places["0.54", "other"] = "other"
    page = context.point_to("own", shown)
    assert re.findall(r'<td id="(own-number-\d)"[^>]*>([^<]*)', page) == [
        ("own-number-0", "0.5449"),
        ("own-number-1", "0.5551"),
    ]
    assert context.places["0", "own"] == "own"
    assert context.places["0.5", "own"] == "own"  # four cells round to it
    words = rendering.linked("It is [0.54](#own) <b>.", context.places)
    assert words == 'It is <a href="#own-number-0">0.54</a> &lt;b&gt;.'


@pytest.mark.parametrize("name", shipped())
def test_every_computed_number_of_an_answer_is_a_link(name: str) -> None:
    executed = site.reported()[name].content.cells
    (answer,) = (
        values["sentences"]
        for macro, values in map(rendering.made_by, markup._outputs(executed))
        if macro == "answer"
    )
    text = rendering.LINK.sub("", " ".join(answer))
    left = set(re.findall(r"(?<![\w.−[])\d+\.\d+(?![\w,\]])|\d+%(?![,\]])", text))
    # Levels of tests and intervals, a margin, a table; the ends of an interval stand in brackets.
    assert left <= {"95%", "90%", "5%", "0.01", "4.1"}


@pytest.mark.usefixtures("one_process")
def test_a_raw_or_empty_cell_is_built_checked_and_shown_as_text(root: Path) -> None:
    path = root / "notebooks" / "example.ipynb"
    notebook = nbformat.read(path, as_version=4)
    cells = [nbformat.v4.new_raw_cell("<b>raw</b> & text"), nbformat.v4.new_raw_cell("")]
    cells += [nbformat.v4.new_markdown_cell(""), nbformat.v4.new_code_cell("")]
    notebook.cells[1:1] = cells
    nbformat.write(notebook, path)
    assert called("build", "example").exit_code == 0
    page = (root / "reports" / "site" / "example.html").read_text()
    assert "<pre>&lt;b&gt;raw&lt;/b&gt; &amp; text</pre>" in page
    assert called("check").exit_code == 0
    nbformat.write(notebook, path.with_name("recompute_example.ipynb"))
    assert isinstance(called("check").exception, SystemExit)


def test_words_keep_their_lines_and_are_no_markup() -> None:
    said = [("USER", "one\n<script>two</script>\n\n| *three*")]
    words = rendering.show_words("p", "A <b>prompt</b>", said).formats
    assert "<td>one<br>&lt;script&gt;two&lt;/script&gt;<br><br>| *three*</td>" in words["text/html"]
    assert "A &lt;b&gt;prompt&lt;/b&gt;" in words["text/html"]


@pytest.fixture
def hostile_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page of a notebook with a hostile text in every kind of output."""
    root = tmp_path / "repository"
    shutil.copytree(project.root() / "data" / "published", root / "data" / "published")
    (root / "data" / "README.md").write_text("# Data\n")
    (root / "notebooks").mkdir()
    monkeypatch.chdir(root)
    monkeypatch.setenv(REPORT_FOLDER_VARIABLE, str(root / "reports" / "evil"))
    monkeypatch.setattr(project, "root", lambda: root)
    report = Report("evil")
    table = report.table("said", pd.DataFrame({"text": [HOSTILE]}), caption=HOSTILE)
    report.finish()
    bundles = [
        {"text/html": HOSTILE},
        {"text/markdown": HOSTILE},
        {"text/plain": HOSTILE},
        {"image/svg+xml": f"<svg>{HOSTILE}</svg>", "text/plain": HOSTILE},
        {"application/javascript": "document.title = 'owned'"},
    ]
    outputs = [nbformat.v4.new_output("display_data", bundle) for bundle in bundles]
    outputs.append(nbformat.v4.new_output("stream", text=HOSTILE))
    for shown_output in (table, report.say(HOSTILE), rendering.show_answer([HOSTILE])):
        data, metadata = shown_output._repr_mimebundle_()
        outputs.append(nbformat.v4.new_output("display_data", data, metadata=metadata))
    unknown: dict[str, Any] = {"equipoise": {"__class__": {}}}
    outputs.append(nbformat.v4.new_output("display_data", {"text/html": HOSTILE}, metadata=unknown))
    title = nbformat.v4.new_markdown_cell("# A hostile transcript\n\nand a formula, $L + 1$")
    code = nbformat.v4.new_code_cell("1", outputs=outputs)
    book = nbformat.v4.new_notebook(cells=[title, code])
    for folder in ("notebooks", "reports/evil"):
        nbformat.write(book, root / folder / "evil.ipynb")
    build.write_summaries()
    site.refresh()
    assert site.check() == []
    (root / "reports" / "site" / "cite.html").write_text("altered")
    assert site.check() == ["reports/site/cite.html is outdated: run equipoise site"]
    return root / "reports" / "site" / "evil.html"


def test_a_hostile_transcript_is_no_markup(hostile_page: Path) -> None:
    (page,) = [page for path, page in pages(hostile_page.parent).items() if path == hostile_page]
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"iframe", "svg", "object", "embed"}
    scripts = re.findall(r"<script>(.*?)</script>", hostile_page.read_text(), re.DOTALL)
    assert scripts == [script(rendering.TEMPLATES / "site.js")[0]]
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert not any(name.startswith("on") for _, values in page.tags for name in values)
    assert not any("192.0.2.1" in address for address in page.addresses)
    assert [tag for tag, _ in page.tags].count("math") == 1


# --- in a browser ---------------------------------------------------------------------------------


@in_a_browser
def test_a_hostile_transcript_does_nothing(hostile_page: Path, browser: Browser) -> None:
    page = browser.open(hostile_page.as_uri())
    assert "<title>A hostile transcript · Compendium</title>" in page.dom
    assert page.asked == []
    loud = hostile_page.with_name("loud.html")  # so that silence means something
    loud.write_text("<script>console.error('heard')</script><img src='http://192.0.2.1/a.png'>")
    page = browser.open(loud.as_uri())
    assert "heard" in page.said
    assert "http://192.0.2.1/a.png" in page.asked


@pytest.fixture(scope="module")
def axe() -> str:
    spec = importlib.util.find_spec("axe_core_python")
    if spec is None or spec.origin is None:
        pytest.skip("axe-core-python is not installed: accessibility is not checked by a tool")
    return (Path(spec.origin).parent / "axe.min.js").read_text(encoding="utf-8")


AXE = """axe.run(document, {resultTypes: ["violations"]}).then(found => found.violations
  .map(one => [one.id, one.nodes.length, one.nodes[0].html.slice(0, 200)]))"""
WITHOUT_REPEATED = """(() => { const repeated = (all, kept) => [...all].slice(kept)
    .filter(one => !one.querySelector("mark, use")).forEach(one => one.remove());
  document.querySelectorAll("table").forEach(table => repeated(table.rows, 6));
  document.querySelectorAll("ul, ol").forEach(list => repeated(list.children, 12));
  repeated(document.querySelectorAll("details.claim"), 12);
  repeated(document.querySelectorAll("math"), 12);
  repeated(document.querySelectorAll("details.code"), 3); })()"""
"""Removes rows, items, claims, formulas and code like those before them, which axe reads."""
FLAT_FORMULAS = """[...document.querySelectorAll('math')]
  .filter(e => e.checkVisibility() && e.getBoundingClientRect().height < 6).length"""


@in_a_browser
@pytest.mark.parametrize("name", [name for name in NAMES if name not in USERS])
def test_a_page_is_whole_on_desk_and_phone_light_and_dark(
    name: str, browser: Browser, axe: str
) -> None:
    page = browser.open((SITE / f"{name}.html").as_uri(), 1400)
    assert page.said == ""
    assert page.asked == []
    if name != "measures":
        assert page.run("document.documentElement.scrollHeight") <= 12_000
    if name in shipped():  # the first layer; sections are closed
        assert len(page.run("document.querySelector('main').innerText").split()) <= 1500
    page.run(f"{axe};0")
    page.run("document.querySelectorAll('main details').forEach(fold => fold.open = true)")
    page.run("document.querySelectorAll('#show-code').forEach(box => box.click())")
    assert page.run(FLAT_FORMULAS) == 0
    for width in (1400, 390):
        page.resize(width)
        assert page.run("document.documentElement.scrollWidth") <= width
    page.run(WITHOUT_REPEATED)
    for width, dark in ((390, True), (1400, False)):
        page.resize(width)
        page.look(dark=dark)
        assert page.run(AXE) == [], (width, dark)
    page.close()


TASKS = {
    "a table of a paper": (["search gfrc2 table 3", "first"], "#gfrc2-table-3"),
    "the definition of a measure": (["search TExFAIR definition", "first"], ".measure:target"),
    "a finding that is not carried, and why": (
        [
            "click header a[href='claims.html']",
            "click label:has(#only-in-the-paper-not-carried)",
            "click details.in-the-paper-not-carried summary",
        ],
        "details.in-the-paper-not-carried[open] dd",
    ),
    "scores of my runs": (["click .actions a[href='guide-runs.html']"], ".document pre"),
    "a compendium of my own": (["click .actions a[href='guide-fork.html']"], "h1"),
    "the licences of the data": (["click footer a[href$='#Licences']"], "#Licences"),
    "how to cite": (["click .actions a[href='cite.html']"], "pre.bibtex"),
    "other numbers in a figure": (
        ["search gfrc2 figure 4", "first", "click #gfrc2-figure-4 a[href^='explore']"],
        "#about-R112 figure",
    ),
    "what a status means": (["click main a[href='terms.html']"], "dt:text('cross-checked')"),
    "the best ranker of chapter 4": (
        [
            "click .works a[href='thesis_ch4_ranking_bias.html']",
            "click th button:text-is('NFaiRR')",
        ],
        "table.sortable th[aria-sort='descending']",
    ),
    "cells of the thesis that differ, and why": (
        ["click main a[href='differing.html']", "type thesis"],
        "tbody tr:has-text('thesis') td.wide",
    ),
    "the largest difference of Table 4.1, and why": (
        ["search table 4.1", "first"],
        "[id='thesis-table-4.1'] .status :text('Largest difference')",
    ),
    "patience with its effect": (["search patience", "first"], "#settings, .explored svg"),
    "the command for runs": (["search score my runs", "first"], ".document pre"),
    "what Chapter 4 found about neural rankers": (
        ["click .works a[href='thesis_ch4_ranking_bias.html']"],
        ".first .verdict",
    ),
    "the code of the key figure of chapter 5": (
        [
            "click .works a[href='thesis_ch5_attribution.html']",
            "click .first figcaption a[href^='#code-']",
        ],
        "details.code[open] pre:target",
    ),
    "the code of a number of chapter 5": (
        [
            "click .works a[href='thesis_ch5_attribution.html']",
            "click main a[href^='#claim-thesis-5.3-human-number']",
            "click details.code:has(+ .work td:target) > summary",
        ],
        "details.code[open] pre",
    ),
    "the code that judges a finding": (
        ["click .square[href$='#claim-thesis-5.5-origin']", "click .panel a:text-is('Code')"],
        "details.code[open] pre:target",
    ),
    "the figure of placebo labels": (["search placebo figure", "first"], "figure:target img"),
}
"""What a newcomer looks for from the first page: actions, and what must be in view."""


def _act(page: Page, action: str) -> None:
    verb, _, rest = action.partition(" ")
    if verb == "search":
        page.run("document.querySelector('input[type=search]').focus()")
        page.write(rest)
        page.follow("Enter")
    elif verb == "first":
        page.run("document.querySelector('#all a').focus()")
        page.follow("Enter")
    elif verb == "type":
        page.run("document.querySelector('#q').focus({preventScroll: true})")
        page.write(rest)
    else:
        page.click(rest)


@in_a_browser
@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("task", TASKS)
def test_a_newcomer_needs_three_actions_and_few_seconds(
    task: str, width: int, browser: Browser
) -> None:
    actions, place = TASKS[task]
    assert len(actions) <= 3
    page = browser.open((SITE / "index.html").as_uri(), width)
    start = time.monotonic()
    for action in actions:
        _act(page, action)
    assert page.in_view(place)
    assert time.monotonic() - start < 20
    assert page.said == ""
    page.close()


@in_a_browser
def test_a_table_of_systems_is_sorted_by_number(browser: Browser) -> None:
    page = browser.open((SITE / "thesis_ch4_ranking_bias.html").as_uri())
    column = """[...document.querySelector('table.sortable').tBodies[0].rows]
        .map(row => row.cells[[...row.parentElement.parentElement.tHead.rows[0].cells]
        .findIndex(head => head.textContent === 'NFaiRR')].textContent)"""
    page.click("th button:text-is('NFaiRR')")
    values = page.run(column)
    assert len(values) > 10
    assert values == sorted(values, key=float, reverse=True)
    page.click("th button:text-is('NFaiRR')")
    assert page.run(column) == sorted(values, key=float)
    page.close()


@in_a_browser
def test_differing_cells_are_listed_with_their_reasons(browser: Browser) -> None:
    page = browser.open((SITE / "differing.html").as_uri())
    page.run("document.querySelector('#q').focus()")
    page.write("thesis")
    rows = page.run(
        """[...document.querySelectorAll('tbody tr')]
        .filter(row => !row.hidden).map(row => [...row.cells].map(cell => cell.textContent))"""
    )
    expected = 0
    for manifest in build.manifests():
        for record in manifest["artefacts"]:
            is_thesis = record["artefact"].startswith("thesis/")
            expected += len(record["differences"]) if is_thesis else 0
    assert len([row for row in rows if row[0].startswith("thesis, ")]) == expected > 20
    assert all(row[5] and row[6] in ("yes", "no") for row in rows)
    page.close()


@in_a_browser
@pytest.mark.parametrize("width", [1400, 390])
def test_the_first_screen_has_question_counts_and_search(width: int, browser: Browser) -> None:
    page = browser.open((SITE / "index.html").as_uri(), width)
    for place in ("h1", ".tally", "#sentence", ".square"):
        assert page.in_view(place), place
    page.run("document.querySelector('#sentence').focus()")
    page.write("neural rankers are fairer")
    page.follow("Enter")
    assert page.run("document.querySelector('#q').value") == "neural rankers are fairer"
    page.close()


@in_a_browser
def test_escape_closes_a_menu_paper_has_every_fold_and_bibtex_is_copied(browser: Browser) -> None:
    page = browser.open((SITE / "cite.html").as_uri())
    page.click(".menu summary")
    assert page.in_view(".menu a")
    page.press("Escape")
    assert page.run("document.querySelector('.menu[open]')") is None
    page.click(".bibtex + button")
    assert page.copied() == page.run("document.querySelector('.bibtex').textContent")
    page = browser.open((SITE / "claims.html").as_uri())
    folded = "document.querySelector('details.finding dl').checkVisibility()"
    assert not page.run(folded)
    page.look(dark=False, printed=True)
    assert page.run(folded)
    page.close()


@in_a_browser
def test_a_square_opens_its_finding_and_escape_returns_to_it(browser: Browser) -> None:
    page = browser.open((SITE / "index.html").as_uri())
    anchor = page.run("document.querySelector('.square.main').hash.slice(1)")
    page.click(".square.main")
    assert page.in_view(f"#panel-{anchor} blockquote")
    links = page.run(f"[...document.querySelectorAll('#panel-{anchor} a')].map(a => a.innerText)")
    assert links == ["Evidence", "Code", "Data", "Cite"]
    page.press("Escape")
    assert page.run("document.querySelector('.panel:popover-open')") is None
    assert page.run("document.activeElement.hash") == f"#{anchor}"
    page.close()


@in_a_browser
def test_a_search_without_a_hit_says_what_to_try(browser: Browser) -> None:
    page = browser.open(f"{(SITE / 'find.html').as_uri()}?q=xyzzy")
    assert page.in_view("#nothing a")
    page.run("document.querySelector('#q').value = '--intervals'")
    page.run("document.querySelector('#q').dispatchEvent(new Event('input'))")
    assert page.run("document.querySelector('#nothing').hidden")
    assert page.in_view("#all a:text('equipoise score gfr')")
    page.close()


@in_a_browser
def test_the_picture_of_cells_shows_one_paper(browser: Browser) -> None:
    page = browser.open((SITE / "artefacts.html").as_uri())
    page.press("Tab")
    page.press("Enter")
    assert page.run("document.activeElement.id") == "main"  # the link that skips
    visible = """[...document.querySelectorAll('.strips > li:not(.axis, .group)')]
        .filter(row => row.offsetParent).length"""
    everything = page.run(visible)
    ledger = pd.read_csv(project.root() / "reports" / "ledger.csv")
    ledger = ledger[ledger["status"] != terms.REPLICATED]
    assert everything == len(ledger)
    page.click("label:has(#paper-2)")
    second = ledger["paper"].unique()[1]
    assert page.run(visible) == (ledger["paper"] == second).sum()
    page.close()


VISIBLE = """[...document.querySelectorAll('details.claim')].filter(a => a.offsetParent)
    .map(a => [a.className.split(' '), a.textContent])"""


@in_a_browser
def test_claims_are_filtered_by_several_answers_and_by_words(browser: Browser) -> None:
    """The style sheet hides them, so that it works without a script, too."""
    page = browser.open((SITE / "claims.html").as_uri())
    assert all("finding" in each[0] for each in page.run(VISIBLE))
    page.click("label:has(#only-finding)")
    everything = page.run(VISIBLE)
    chosen = {"elsewhere-inconclusive", "elsewhere-holds"}
    for name in (*chosen, "in-the-paper-carried"):
        page.click(f"label:has(#only-{name})")
    left = [
        each for each in everything if chosen & set(each[0]) and "in-the-paper-carried" in each[0]
    ]
    assert page.run(VISIBLE) == left
    assert 0 < len(left) < len(everything)
    told = "document.querySelector('#told').textContent"
    assert page.run(told) == f"{len(left)} of {len(everything)}"
    holds = sum("elsewhere-holds" in each[0] for each in left)
    count = "document.querySelector('label:has(#only-elsewhere-holds) .counts').textContent"
    assert page.run(count) == f"({holds})"
    page.run("document.querySelector('#q').focus()")
    page.write("bm25")
    left = [each for each in left if "bm25" in each[1].lower()]
    assert page.run(VISIBLE) == left
    page.press("Enter")
    address = page.run("location.href")
    assert "q=bm25&in-the-paper=carried&elsewhere=holds&elsewhere=inconclusive&kind=" in address
    assert page.run("history.length") == 1 + 1  # an empty page was first
    page.close()
    page = browser.open(address)
    assert page.run(VISIBLE) == left
    page.close()
    claim = "document.querySelector('details.claim:last-of-type')"
    page = browser.open((SITE / "claims.html").as_uri())
    anchor = page.run(f"{claim}.id")
    page.close()
    page = browser.open(f"{(SITE / 'claims.html').as_uri()}#{anchor}")
    assert page.run("document.querySelector(':target').open")
    page.close()


@in_a_browser
def test_counts_lead_to_their_claims_and_none_is_said_to_be_none(browser: Browser) -> None:
    parsed = {path.stem: page for path, page in pages(SITE).items()}
    for question, answers in verdicts.QUESTIONS.items():
        for answer in answers:
            group, name = terms.css_name(question), terms.css_name(answer)
            address = f"claims.html?{group}={name}"
            if question == "check":
                address = f"claims.html?kind=check-{name}"
            else:
                assert address in parsed["index"].addresses
            assert address in parsed["claims"].addresses
            page = browser.open(f"{SITE.as_uri()}/{address}")
            shown_claims = page.run(VISIBLE)
            assert all(f"{group}-{name}" in each[0] for each in shown_claims)
            claims = [
                each for each in verdicts.read() if each["kind"] in ("finding", "consistency check")
            ]
            column = "elsewhere" if question == "elsewhere" else "in_paper"
            assert len(shown_claims) == sum(each[column] == answer for each in claims)
            is_empty = page.run("document.querySelector('#nothing').checkVisibility()")
            assert is_empty == (not shown_claims)
            if is_empty:
                text = page.run("document.querySelector('#nothing').textContent")
                assert f"No finding has the answer “{answer}” {question}." in text
            page.close()


QUOTED = (
    "gfrc/bing-outperforms",
    "gfrc2/copwa-outperforms",
    "permutations/2-first-utterance",
    "permutations/5-permutation",
    "thesis/2.3-significant",
    "thesis/2.4-oracle",
    "thesis/3.7-zephyr",
    "thesis/4.1-fairer",
    "thesis/4.2-cutoff",
    "thesis/5.3-human",
    "thesis/5.2-3-to-18",
)
HEADS = {"Data", "Basis", "Parts that meet it", "Estimate", "Result"}


@in_a_browser
def test_one_search_leads_from_a_sentence_to_criterion_data_and_number(browser: Browser) -> None:
    """As copied: other case, ligatures, quotation marks, dashes, line ends, and a reference."""
    judged = {f"{each['paper']}/{each['claim']}": each for each in verdicts.read()}
    for name in QUOTED:
        claim = judged[name]
        copied = claim["quote"].upper().replace("FI", "\ufb01").replace("-", "\u2010")
        copied = copied.replace("'", "\u2019").replace("SIGNIFICANT", "SIGNI- ficant") + " [146]"
        words = claim["quote"].split()
        page = browser.open((SITE / "find.html").as_uri())
        found = [f"claims.html#claim-{name.replace('/', '-')}", *_badges(claim)]
        half = max(6, len(words) // 2)
        for part in (" ".join(words[-half:]), " ".join(words[:-1])):
            assert found in _first(page, part, 2), part
        assert _first(page, copied) == [found]
        page.run("document.querySelector('#all a').focus()")
        page.follow("Enter")
        anchor = f"document.getElementById('claim-{name.replace('/', '-')}')"
        assert page.run(f"{anchor}.checkVisibility() && {anchor}.open"), name
        shown_text = page.run(f"{anchor}.innerText")
        assert name in shown_text
        assert claim["quote"] in shown_text
        assert claim["criterion"].replace("-", "−") in shown_text
        assert terms.SOURCES[claim["bound_source"]] in shown_text
        heads = page.run(f"[...{anchor}.querySelectorAll('th')].map(each => each.textContent)")
        assert set(heads) >= HEADS
        rows = page.run(
            f"[...{anchor}.querySelectorAll('tbody tr')].map(row => "
            "[...row.cells].map(cell => cell.textContent))"
        )
        for row, cells in zip(claim["evidence"], rows, strict=True):
            assert cells[0] == row["collection"]
            if row["estimate"] is not None:
                assert (
                    cells[heads.index("Parts that meet it")]
                    == f"{row['met']:.0f} of {row['parts']:.0f}"
                )
                if row["n"] is not None:
                    assert cells[heads.index("n")] == f"{row['n']:,.0f} {row['counted']}"
        page.close()


QUERIES = {
    "score my own runs": "guide-runs.html",
    "score my runs": "guide-runs.html",
    "evaluate my run": "guide-runs.html",
    "my own data": "guide-runs.html",
    "rerun with other parameters": "guide-recompute.html",
    "install": "guide-start.html",
    "cite": "cite.html",
    "how to cite": "cite.html",
    "contradicted": "claims.html?in-the-paper=contradicted",
    "not carried": "claims.html?in-the-paper=not-carried",
    "does not hold": "claims.html?elsewhere=does-not-hold",
    "inconclusive": "claims.html?elsewhere=inconclusive",
    "patience": "explore.html",
    "TExFAIR definition": "measures.html#ranking-bias-texfair",
    "Table 4.1": "thesis_ch4_ranking_bias.html#thesis-table-4.1",
    "gfrc2 figure 4 csv": "../gfrc2_iclr_researchers/figures/gfrc2-figure-4.csv",
    "--intervals": "guide-runs.html",
    "equipoise compare": "guide-compare.html",
    "BM25 neural rankers": "claims.html#claim-thesis-4.1-fairer",
    "permute conversations": "guide-orders.html",
    "licence": "data.html#Licences",
}
"""What a reader types, and the address that must be the first or second hit."""


def _first(page: Page, query: str, hits: int = 1) -> Any:
    """Address and answers of the first hits of a query."""
    page.run(f"document.querySelector('#q').value = {json.dumps(query)}")
    page.run("document.querySelector('#q').dispatchEvent(new Event('input'))")
    return page.run(
        f"[...document.querySelectorAll('#all li')].slice(0, {hits}).map(item => ["
        "item.querySelector('a').getAttribute('href'), "
        "...[...item.querySelectorAll('.verdict')].map(each => each.textContent)])"
    )


def _badges(claim: dict[str, Any]) -> list[str]:
    return [f"{name.capitalize()}: {text}" for name, text, _ in rendering.claim_answers(claim)]


@in_a_browser
def test_words_lead_to_the_place_that_a_reader_wants(browser: Browser) -> None:
    assert (SITE / "find.html").stat().st_size < 350_000
    page = browser.open((SITE / "find.html").as_uri())
    hits = {query: [each[0] for each in _first(page, query, 2)] for query in QUERIES}
    assert [query for query, address in QUERIES.items() if address not in hits[query]] == []
    page.close()


def test_a_page_names_the_licence_of_its_data() -> None:
    text = (SITE / "thesis_ch4_ranking_bias.html").read_text(encoding="utf-8")
    row = "<td>KlaraKrieg/GrepBiasIR</td><td>CC0-1.0</td>"
    assert row in text
    assert row not in (SITE / "utterance_permutations.html").read_text(encoding="utf-8")


def test_the_protocol_is_one_page() -> None:
    text = (SITE / "protocol.html").read_text(encoding="utf-8")
    dates = pd.read_csv(project.root() / "data/published/data_dates.csv")
    assert all((project.root() / "data" / file).is_file() for file in dates["file"])
    assert all(f"<td>{date}</td>" in text for date in dates["first recorded"])
    protocol = (project.root() / "data/published/protocol.md").read_text(encoding="utf-8")
    assert len(protocol.split()) <= 1500
    for term in re.findall(r"^\*\*(.+?)\*\*", protocol, re.MULTILINE):
        assert f"<strong>{term}</strong>" in text
    assert 'href="protocol.html"' in (SITE / "claims.html").read_text(encoding="utf-8")


@in_a_browser
def test_a_link_to_a_table_opens_its_section_and_one_switch_shows_the_code(
    browser: Browser,
) -> None:
    address = (SITE / "thesis_ch4_ranking_bias.html").as_uri()
    page = browser.open(f"{address}#thesis-table-4.2")
    assert page.in_view("[id='thesis-table-4.2']")
    opened = "document.querySelectorAll('details.part[open]').length"
    assert page.run(opened) == 1
    code = "[...document.querySelectorAll('details.code pre')].filter(e => e.checkVisibility())"
    assert page.run(f"{code}.length") == 0
    page.click("details.part[open] details.code:has(+ .work [id='thesis-table-4.2']) summary")
    assert '"thesis/table-4.2"' in page.run(f"{code}.at(-1).textContent")
    page.click("label:has(#show-code)")
    assert page.run(f"{code}.length") > 30
    page.click("label:has(#show-code)")
    page.click("label:has(#open-all)")
    assert page.run(opened) == page.run("document.querySelectorAll('details.part').length") > 3
    page.close()


def report(topic: str) -> pd.DataFrame:
    """The CSV of the build."""
    figures = project.root() / "reports" / "explore_conversations" / "figures"
    return pd.read_csv(figures / f"{topic}.csv")


def wanted(topic: str, **chosen: int) -> list[list[str]]:
    """What the table of a topic must show, by score and run; settings by place in the report."""
    table = report(topic)
    names = [name for name in table if name not in ("run", *SETTINGS, "paper")]
    for name, place in chosen.items():
        column = name.replace("_", " ")
        table = table[table[column] == report(topic)[column].unique()[place]]
    assert len(table) == 2
    return [[f"{value:.6f}" for value in table[name]] for name in names]


def _explored(page: Page, topic: str) -> Any:
    rows = f"[...document.querySelectorAll('#about-{topic} tbody tr')]"
    return page.run(f"{rows}.map(row => [...row.cells].slice(1).map(cell => cell.textContent))")


@in_a_browser
def test_the_state_of_explore_is_in_its_address(browser: Browser) -> None:
    page = browser.open(f"{PAGE.as_uri()}#about-R112")
    paper = list(report("R112")["paper"].unique()).index(1)
    assert _explored(page, "R112") == wanted("R112", paper=paper)
    assert not page.run("document.querySelector('#about-M002').checkVisibility()")
    page.run("document.querySelector('#patience').focus()")
    page.press("ArrowLeft")
    page.run("document.querySelector('#gains').focus()")
    page.press("ArrowDown")
    changed, address = _explored(page, "R112"), page.run("location.href")
    assert changed != wanted("R112", paper=paper)
    page.close()
    page = browser.open(address)
    assert _explored(page, "R112") == changed
    page.close()
    page = browser.open(f"{PAGE.as_uri()}#about-no&patience=99&gains=x&__proto__=1")
    assert _explored(page, "M002")
    assert page.said == ""
    page.close()


@in_a_browser
def test_explore_shows_the_report_under_every_combination(browser: Browser) -> None:
    page = browser.open(PAGE.as_uri())
    assert page.run("[location.hash, scrollY]") == ["", 0]  # a reader sees the settings first
    paper = list(report("M002")["paper"].unique()).index(1)
    assert _explored(page, "M002") == wanted("M002", paper=paper)
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
