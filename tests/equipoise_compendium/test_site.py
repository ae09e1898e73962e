"""Guards the site: markup that may pass, links, and what a real browser makes of the pages without network."""

import http.client
import itertools
import json
import re
import shutil
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import nbformat
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chromium import Browser
from commands import called
from equipoise import catalogue
from equipoise_compendium import ledger, printed, project
from equipoise_compendium.provenance import REPORT_FOLDER_VARIABLE
from equipoise_compendium.report import Report
from equipoise_compendium.site import markup, serve
from equipoise_compendium.site import pages as site

PAGES = site.pages()
HTML = [name for name in PAGES if name.endswith(".html")]
SITE = project.root() / "reports" / "site"
HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    '<svg onload="document.title=1"><a href="javascript:alert(1)">x</a></svg>'
    "<iframe src='http://192.0.2.1/'></iframe><img src='http://192.0.2.1/a.png'> $\\href{http://192.0.2.1}{x}$ & | `"
)


class Page(HTMLParser):
    """Tags of a page, with the ids and links that stand in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.ids: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.tags.append((tag, values))
        if "id" in values:
            self.ids.append(values["id"])

    def all(self, tag: str) -> list[dict[str, str]]:
        return [values for name, values in self.tags if name == tag]


PARSED = {name: Page(PAGES[name].decode()) for name in HTML}


# --- pages ----------------------------------------------------------------------------------------


def test_every_notebook_has_a_page_and_the_committed_site_is_this_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(site, "pages", lambda: PAGES)
    assert {f"{name}.html" for name in site.reported()} < set(HTML)
    assert site.check() == []
    assert {path.relative_to(SITE).as_posix() for path in SITE.rglob("*") if path.is_file()} == set(
        PAGES
    )


@pytest.mark.parametrize("name", HTML)
def test_links_resolve_and_nothing_is_loaded_from_elsewhere(name: str) -> None:
    page = PARSED[name]
    assert len(set(page.ids)) == len(page.ids)
    for tag, values in page.tags:
        for attribute in ("href", "src"):
            if attribute not in values:
                continue
            parts = urlsplit(values[attribute])
            if tag == "a" and parts.scheme in ("http", "https"):
                continue
            if values[attribute].startswith("data:"):
                assert tag in ("img", "link")
                continue
            assert (parts.scheme, parts.netloc) == ("", ""), values[attribute]
            target = unquote(parts.path) or name
            there = target in PAGES or (SITE / target).resolve().is_file()
            assert there, f"{name} points to {values[attribute]}"
            if parts.fragment:
                ids = PARSED[target].ids
                assert parts.fragment in ids or unquote(parts.fragment) in ids, values[attribute]


@pytest.mark.parametrize("name", HTML)
def test_a_page_can_be_read_without_eyes_or_mouse(name: str) -> None:
    page = PARSED[name]
    assert page.all("html")[0]["lang"] == "en"
    assert page.all("a")[0] == {"class": "skip", "href": "#main"}
    assert all(values.get("alt") for values in page.all("img"))
    assert len(page.all("h1")) == 1
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(later <= earlier + 1 for earlier, later in itertools.pairwise(levels)), levels


def test_the_index_shows_every_artefact_by_letter_and_leads_to_it() -> None:
    cells = [
        values
        for values in PARSED["index.html"].all("a")
        if values.get("class", "").startswith("cell")
    ]
    known = printed.artefacts()
    assert len(cells) == len(known)
    told = re.findall(
        r'<a class="cell (\w+)" href="([^"]*)"[^>]*><span aria-hidden="true">[TF][\d.]+ <b>(.)</b>(.*?)</span>\n'
        r'<span class="hidden">(.*?)</span></a>',
        PAGES["index.html"].decode(),
        re.DOTALL,
    )
    assert len(told) == len(known)
    for status, href, letter, marks, words in told:
        assert letter == site.LETTERS[status]
        assert words.endswith(f"{status.capitalize()}.")
        assert href.startswith("#row-") == (status == "absent")
        assert ("✗" in marks) == ("contradicted" in words)
        assert ("?" in marks) == ("undecided" in words)
    assert sum("✗" in marks for *_, marks, _ in told) > 2
    assert len(set(site.LETTERS.values())) == len(ledger.STATUSES) == len(site.LETTERS)


def test_each_reported_artefact_can_be_downloaded() -> None:
    for name in site.reported():
        manifest = json.loads((project.root() / "reports" / name / "manifest.json").read_text())
        links = {values.get("href") for values in PARSED[f"{name}.html"].all("a")}
        for record in manifest["artefacts"]:
            assert {f"../{name}/{file}" for file in record["files"]} <= links, record["artefact"]


def test_contrast_of_text_and_ground() -> None:
    """WCAG 2.1, contrast of at least 4.5 to 1, for every ground that text stands on and every colour of code."""
    style = PAGES["assets/style.css"].decode()
    day, night, code, code_by_night = re.split(
        r"@media screen and \(prefers-color-scheme: dark\)|/\* code \*/", style
    )
    light = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", day))
    dark = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", night))

    def luminance(colour: str) -> float:
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(one: str, other: str) -> float:
        low, high = sorted((luminance(one), luminance(other)))
        return (high + 0.05) / (low + 0.05)

    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert set(light) == set(dark)
    for variables, rules in ((light, code), (dark, code_by_night)):
        inks = {"soft", "link", "focus"}
        for ground in set(variables) - {"ink", "line", "edge", *inks}:
            assert contrast(variables["ink"], variables[ground]) >= 4.5, ground
        for ink in inks:
            assert (
                min(contrast(variables[ink], variables[g]) for g in ("paper", "ground")) >= 4.5
            ), ink
        colours = re.findall(r"^\.highlight .*[{ ]color: (#[0-9a-f]{6})", rules, re.MULTILINE)
        assert len(colours) > 20
        assert min(contrast(colour, variables["ground"]) for colour in colours) >= 4.5
    inside = re.sub(r":root \{.*?\}", "", day + night, flags=re.DOTALL)
    assert set(re.findall(r"#[0-9a-f]{3,6}\b", inside)) == {
        "#e08a00"
    }  # a mark of the page Explore, edged with ink


def test_the_same_bytes_again() -> None:
    assert site.pages() == PAGES


# --- what may pass --------------------------------------------------------------------------------


def test_hostile_markup_is_text() -> None:
    page = Page(markup.clean(HOSTILE))
    assert [tag for tag, _ in page.tags] == ["img", "a", "img"]
    assert all(not name.startswith("on") for _, values in page.tags for name in values)
    assert [values.get("src") for values in page.all("img")] == ["x", None]
    assert page.all("a") == [{}]


@given(
    st.lists(
        st.sampled_from(
            [
                *(
                    "<script>",
                    "</script>",
                    "<img ",
                    "src=//192.0.2.1 ",
                    "onerror=a ",
                    "style=b ",
                    ">",
                    "<a href=",
                    "x",
                    '"',
                ),
                "javascript:a",
                "JaVaScRiPt:a",
                "data:text/html,a",
                "<style>",
                "<svg>",
                "<math>",
                "<!--",
                "-->",
                "&lt;",
            ]
        ),
        max_size=12,
    ).map("".join)
)
def test_nothing_active_passes(written: str) -> None:
    for tag, values in Page(markup.clean(written)).tags:
        assert tag in markup.TAGS
        assert not {name for name in values if name.startswith("on") or name == "style"}
        assert not values.get("href", "").lower().startswith("javascript")
        source = values.get("src", "")
        assert not urlsplit(source).netloc


def test_formulas_are_mathml_and_hostile_ones_text() -> None:
    page = Page(
        markup.prose("so $L \\le 1$ and\n\n$$\\sum_{i<n} x_i$$\n\n\\begin{align}a &= b\\end{align}")
    )
    assert [values.get("display", "inline") for values in page.all("math")] == [
        "inline",
        "block",
        "block",
    ]
    for tex in (r"\href{javascript:alert(1)}{x}", r"\nosuch", r"\frac{1"):
        assert markup.formula(tex) == f'<code class="tex-error">{tex}</code>'
    for text in (
        HOSTILE,
        r"$\text{<script>alert(1)</script>}$",
        '$x" onload="a$',
        '<span class="tex"><img src=x></span>',
    ):
        for tag, values in Page(markup.prose(text)).tags:
            assert tag in markup.TAGS | markup._MATHML
            assert not {name for name in values if name.startswith("on")}
    written = '<math href="javascript:a"><mi>x</mi><maction actiontype="toggle"></maction></math>'
    assert Page(markup.prose(written)).tags == [("p", {})]


def formulas_of(page: str) -> int:
    """Formulas that the sources of a page hold."""
    if page == "measures.html":
        return sum(1 + len(measure.symbols) for measure in catalogue.MEASURES)
    notebook = site.reported().get(page.removesuffix(".html"))
    cells = (
        [cell.source for cell in notebook.content.cells if cell.cell_type == "markdown"]
        if notebook
        else []
    )
    prose = re.sub(r"`.*?`", "", "\n".join(cells), flags=re.DOTALL)
    return len(re.findall(r"\$\$.+?\$\$|\$.+?\$", prose, re.DOTALL))


def test_every_formula_of_our_own_is_converted() -> None:
    assert not [name for name in HTML if b"tex-error" in PAGES[name]]
    assert {name: PAGES[name].count(b"<math") for name in HTML} == {
        name: formulas_of(name) for name in HTML
    }
    assert sum(map(formulas_of, HTML)) > 100


def letters_of(tex: str) -> set[str]:
    """Names in a formula: runs of letters, and Greek ones."""
    greek = set(re.findall(r"\\(alpha|delta|kappa|omega|pi|tau|Delta)\b", tex))
    plain = re.sub(r"\\text\{.*?\}|\\(begin|end)\{\w+\}|\\[A-Za-z]+", " ", tex)
    return set(re.findall(r"[A-Za-z]+", plain)) | greek


def test_every_symbol_of_a_measure_is_defined_and_every_option_told() -> None:
    page = PAGES["measures.html"].decode()
    for measure in catalogue.MEASURES:
        known = set().union(*(letters_of(symbol) for symbol, _ in measure.symbols))
        known |= {letter for name in known for letter in name} | set(
            re.findall("[A-Za-z]+", measure.name)
        )
        missing = letters_of(measure.formula) - known - {"log", "max", "min", "du"}
        assert missing == set(), measure.name
        assert measure.example
        assert measure.example.splitlines()[0][4:40].replace("'", "&#39;") in page.replace(
            "&#34;", '"'
        )
        assert [option.name for option in measure.options if not measure.explained(option)] == []
    assert "the largest TED that any list can have" in page


# --- in a browser ---------------------------------------------------------------------------------


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
  const here = document.activeElement, style = getComputedStyle(here), box = here.getBoundingClientRect();
  return {
    wanted: all.length,
    place: all.indexOf(here),
    outline: style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth),
    seen: box.right > 0 && box.left < innerWidth && box.bottom > 0 && box.top < innerHeight,
    href: here.getAttribute("href") || "",
  };
})()"""


def test_the_index_can_be_walked_by_keyboard(browser: Browser) -> None:
    """Tab goes through every link once, in the order of the page, each marked and in sight, and out at the end."""
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
    """Through every door: a table, a claim, plain output, Markdown output, raw HTML and a caption."""
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
    assert "<title>A hostile transcript · Equipoise</title>" in dom
    assert page.asked == []
    assert "192.0.2.1" not in page.said
    assert dom.count("<math") == 1
    assert dom.count("&lt;script&gt;document.title='owned'&lt;/script&gt;") >= 5
    assert Page(dom).all("script") == []


# --- served ---------------------------------------------------------------------------------------


@pytest.fixture
def port() -> Iterator[int]:
    with serve.server() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def test_the_server_answers_on_loopback_and_to_its_own_name_only(port: int) -> None:
    def ask(path: str, host: str, method: str = "GET") -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request(method, path, headers={"Host": f"{host}:{port}"})
        answer = connection.getresponse()
        content = answer.status, answer.read()
        connection.close()
        return content

    assert ask("/site/index.html", "127.0.0.1") == (200, PAGES["index.html"])
    assert ask("/", "localhost")[0] == 302
    assert ask("/site/index.html", "rebound.example")[0] == 403
    assert ask("/site/index.html", "rebound.example", "HEAD")[0] == 403
    assert ask("/../data/README.md", "127.0.0.1")[0] == 404
    assert ask("/%2e%2e/data/README.md", "127.0.0.1")[0] == 404


def test_the_command_serves_until_interrupted(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    taken = called("site", "--serve", "--port", str(port))
    assert taken.exit_code == 2
    assert f"cannot serve on port {port}" in taken.output
    monkeypatch.setattr("http.server.ThreadingHTTPServer.serve_forever", interrupted)
    served = called("site", "--serve")
    assert served.exit_code == 0
    assert re.match(r"http://127\.0\.0\.1:\d+/site/index\.html ", served.output)


@pytest.mark.parametrize("command", [["site"], ["site", "--serve"], ["build"], ["check"], ["list"]])
def test_outside_a_clone_one_sentence_says_so(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        project, "__file__", str(tmp_path / "lib" / "equipoise_compendium" / "project.py")
    )
    project.root.cache_clear()
    try:
        said = called(*command)
    finally:
        project.root.cache_clear()
    assert said.exit_code == 2
    assert "Error: no Equipoise repository at" in said.output
    assert "run this in a clone" in " ".join(said.output.split())


def test_the_command_makes_the_site_only_where_it_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {
        path.relative_to(SITE).as_posix(): path.read_bytes()
        for path in SITE.rglob("*")
        if path.is_file()
    }
    monkeypatch.setattr(site, "pages", lambda: there)
    made = called("site")
    assert (made.exit_code, made.output) == (0, "reports/site is up to date.\n")


def test_the_command_opens_jupyterlab_at_the_notebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr("os.execv", lambda _, command: started.append(command))
    assert called("lab", "--", "--no-browser").exit_code == 0
    where = [f"--ServerApp.root_dir={project.root()}", "--LabApp.default_url=/lab/tree/notebooks"]
    assert started[0][1:] == ["-m", "jupyterlab", *where, "--no-browser"]


# --- variants -------------------------------------------------------------------------------------


def test_a_variant_has_a_page_complete_in_itself(tmp_path: Path) -> None:
    report = project.root() / "reports" / "gfrc2_iclr_researchers"
    folder = tmp_path / "gfrc2_iclr_researchers" / "patience=300"
    shutil.copytree(report, folder)
    manifest = json.loads((folder / "manifest.json").read_text()) | {
        "parameters": {"patience": HOSTILE}
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    made = site.variant(folder)
    page = Page(made.read_text())
    assert made.parent == folder.parent
    images = [unquote(values["src"]) for values in page.all("img")]
    assert len(images) > 3
    links = [
        unquote(values["href"])
        for values in page.all("a")
        if values.get("href", "#")[0] not in "#h"
    ]
    assert len(links) > 10
    assert all((made.parent / name).is_file() for name in images + links)
    assert not page.all("script")
    assert "&lt;script&gt;document.title" in made.read_text()


def test_claims_are_filtered_without_a_script(browser: Browser) -> None:
    page = browser.open((SITE / "claims.html").as_uri())
    shown = "[...document.querySelectorAll('article.claim')].filter(a => a.offsetParent).map(a => a.className.split(' '))"
    everything = page.run(shown)
    page.run("document.querySelector('a.verdict.undecided').click()")
    page.run("document.querySelector('#only-finding').click()")
    left = page.run(shown)
    assert left == [names for names in everything if {"undecided", "finding"} <= set(names)]
    assert 0 < len(left) < len(everything)
    page.close()
