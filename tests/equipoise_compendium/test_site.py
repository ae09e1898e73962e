"""Guards the site: every link, its scripts, what passes its sanitiser, and what a browser shows."""

from __future__ import annotations

import html
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest

from chromium import PROGRAM, Browser, Page
from crawl import broken_links, pages
from equipoise import catalogue
from equipoise_compendium import build, plots, project, shown
from equipoise_compendium.provenance import REPORT_FOLDER_VARIABLE
from equipoise_compendium.report import Report
from equipoise_compendium.site import markup
from equipoise_compendium.site import pages as site
from equipoise_compendium.site.added import script
from equipoise_studies.pages import explore
from explored import PAGE, SETTINGS, report, wanted

SITE = project.root() / "reports" / "site"
NAMES = sorted(path.stem for path in SITE.glob("*.html"))
HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    '<svg onload="document.title=1"><a href="javascript:alert(1)">x</a></svg>'
    "<iframe src='http://192.0.2.1/'></iframe><img src='http://192.0.2.1/a.png'> "
    "$\\href{http://192.0.2.1}{x}$ & | `"
)
in_a_browser = pytest.mark.skipif(
    PROGRAM is None, reason="no Chromium on this machine: the pages are not opened in a browser"
)


# --- the pages as files ---------------------------------------------------------------------------


def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere() -> None:
    assert broken_links(SITE) == []
    for path, page in pages(SITE).items():
        sources = [values["src"] for _, values in page.tags if "src" in values]
        assert not any(source.startswith("http") for source in sources), path.name
        assert all(values.get("alt") for tag, values in page.tags if tag == "img"), path.name


def test_the_committed_site_is_that_of_the_reports_the_same_in_another_process() -> None:
    assert site.check() == []
    code = "from equipoise_compendium.site import pages; assert pages.check() == []"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_artefact_claim_and_measure_has_its_place() -> None:
    parsed = {path.stem: page for path, page in pages(SITE).items()}
    ledger = pd.read_csv(project.root() / "reports" / "ledger.csv", keep_default_na=False)
    for row in ledger.itertuples():
        anchor = f"{row.paper}-{row.artefact}"
        assert f"row-{anchor}" in parsed["artefacts"].ids
        if row.notebook:
            assert anchor in parsed[str(row.notebook)].ids
    claims = pd.read_csv(project.root() / "reports" / "claims.csv")
    names = {f"claim-{row.paper}-{row.name}" for row in claims.itertuples(index=False)}
    assert names <= set(parsed["claims"].ids)
    assert {measure.anchor for measure in catalogue.MEASURES} <= set(parsed["measures"].ids)
    for name in site.reported():
        tables = (project.root() / "reports" / name / "tables").glob("*.csv")
        shown_tables = set(parsed[name].ids)
        assert {path.stem for path in tables} <= shown_tables, name


def test_scripts_are_short_and_the_only_ones_that_may_run() -> None:
    scripts = {"find": site.TEMPLATES / "find.js", "explore": explore.SCRIPT}
    for name in NAMES:
        text = html.unescape((SITE / f"{name}.html").read_text(encoding="utf-8"))
        allowed = script(scripts[name])[1] if name in scripts else "'none'"
        assert re.findall(r"script-src ([^\"]*?) *\">", text) == [allowed]
    for path in scripts.values():
        text, _ = script(path)
        assert len(text.splitlines()) < 150
        assert not re.search(r"https?:|import|fetch|\beval\b|innerHTML", text)


def test_the_key_figure_is_at_the_top_of_its_notebook() -> None:
    seen = 0
    for path in sorted((project.root() / "notebooks").glob("*.ipynb")):
        if "KeyFigure()" not in path.read_text(encoding="utf-8"):
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
    for topic in explore.TOPICS:
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
    assert OBEYED.search(shown.markdown_cell(text)) is None
    made = shown.show_table("x", text, pd.DataFrame({text: [text]}), None, 4)
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


def test_words_keep_their_lines_and_are_no_markup() -> None:
    said = [("USER", "one\n<script>two</script>\n\n| *three*")]
    words = shown.show_words("p", "A <b>prompt</b>", said).formats
    assert "<td>one<br>&lt;script&gt;two&lt;/script&gt;<br><br>| *three*</td>" in words["text/html"]
    assert "A &lt;b&gt;prompt&lt;/b&gt;" in words["text/html"]
    assert "<script>" not in words["text/markdown"]
    assert r"\| \*three\*" in words["text/markdown"]


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
        {"text/plain": "", **table.formats},
        {"text/html": HOSTILE},
        {"text/markdown": HOSTILE},
        {"text/plain": HOSTILE},
        {"image/svg+xml": f"<svg>{HOSTILE}</svg>", "text/plain": HOSTILE},
        {"application/javascript": "document.title = 'owned'"},
    ]
    outputs = [nbformat.v4.new_output("display_data", bundle) for bundle in bundles]
    outputs.append(nbformat.v4.new_output("stream", text=HOSTILE))
    title = nbformat.v4.new_markdown_cell("# A hostile transcript\n\nand a formula, $L + 1$")
    code = nbformat.v4.new_code_cell("1", outputs=outputs)
    book = nbformat.v4.new_notebook(cells=[title, code])
    for folder in ("notebooks", "reports/evil"):
        nbformat.write(book, root / folder / "evil.ipynb")
    build.write_summaries(root / "reports")
    site.refresh()
    assert site.check() == []
    (root / "reports" / "site" / "cite.html").write_text("altered")
    assert site.check() == ["reports/site/cite.html is outdated: run equipoise site"]
    return root / "reports" / "site" / "evil.html"


def test_a_hostile_transcript_is_no_markup(hostile_page: Path) -> None:
    (page,) = [page for path, page in pages(hostile_page.parent).items() if path == hostile_page]
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"script", "iframe", "svg", "object", "embed"}
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
FLAT_FORMULAS = """[...document.querySelectorAll('math')]
  .filter(e => e.checkVisibility() && e.getBoundingClientRect().height < 6).length"""


@in_a_browser
@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_whole_on_desk_and_phone_light_and_dark(
    name: str, browser: Browser, axe: str
) -> None:
    page = browser.open((SITE / f"{name}.html").as_uri(), 1400)
    assert page.said == ""
    assert page.asked == []
    page.run(f"{axe};0")
    page.run("document.querySelectorAll('main details').forEach(fold => fold.open = true)")
    assert page.run(FLAT_FORMULAS) == 0
    for width, dark in ((1400, False), (390, True)):
        page.resize(width)
        page.look(dark=dark)
        assert page.run("document.documentElement.scrollWidth") <= width
        assert page.run(AXE) == [], (width, dark)
    page.close()


@in_a_browser
def test_a_newcomer_gets_there_by_keyboard(browser: Browser) -> None:
    """From the first page to a table, a definition, a contradicted claim, a guide, the licences."""
    index = (SITE / "index.html").as_uri()
    for words, place, text in (
        ("gfrc2 table 3", "#gfrc2-table-3", "EGNP"),
        ("TExFAIR", "", "TExFAIR"),
        ("score ranked lists", "", "equipoise score"),
        ("licences", "#Licences", "MIT"),
    ):
        page = browser.open(index)
        page.run("document.querySelector('header input').focus()")
        page.write(words)
        page.follow("Enter")
        assert page.run("document.querySelectorAll('#all li').length") > 0, words
        page.run("document.querySelector('#all a').focus()")
        page.follow("Enter")
        assert page.run("location.hash").endswith(place), words
        assert text in page.run("document.querySelector('main').innerText"), words
        assert page.said == ""
        page.close()
    page = browser.open(index)
    page.press("Tab")
    page.press("Enter")
    assert page.run("document.activeElement.id") == "main"  # the link that skips
    page.click(".matrix a.cell")
    assert page.run("document.querySelector(':target').getBoundingClientRect().top < innerHeight")
    page.close()


@in_a_browser
def test_claims_are_filtered_without_a_script(browser: Browser) -> None:
    page = browser.open((SITE / "claims.html").as_uri())
    visible = """[...document.querySelectorAll('article.claim')].filter(a => a.offsetParent)
        .map(a => a.className.split(' '))"""
    everything = page.run(visible)
    page.run("document.querySelector('a.verdict.undecided').click()")
    page.run("document.querySelector('#only-finding').click()")
    left = page.run(visible)
    assert left == [names for names in everything if {"undecided", "finding"} <= set(names)]
    assert 0 < len(left) < len(everything)
    page.close()


def _explored(page: Page, topic: str) -> Any:
    rows = f"[...document.querySelectorAll('#about-{topic} tbody tr')]"
    return page.run(f"{rows}.map(row => [...row.cells].slice(1).map(cell => cell.textContent))")


@in_a_browser
def test_explore_shows_the_report_under_every_combination(browser: Browser) -> None:
    page = browser.open(PAGE.as_uri())
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
