"""Guards the site: markup that may pass, links, and what a browser makes of it without network."""

import base64
import csv
import html
import http.client
import itertools
import json
import re
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import called
from equipoise import catalogue
from equipoise_compendium import claim_marks, ledger, printed, project
from equipoise_compendium.shown import Shown, folded
from equipoise_compendium.site import markup, serve
from equipoise_compendium.site import pages as site
from site_pages import HOSTILE, HTML, PAGES, PARSED, SITE, Page, formulas_of

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
        for attribute in ("href", "src", "srcset"):
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
        r'<a class="cell (\w+)" href="([^"]*)"[^>]*>'
        r'<span aria-hidden="true">[TF][\d.]+ <b>(.)</b>(.*?)</span>\n'
        r'<span class="hidden">(.*?)</span></a>',
        PAGES["index.html"].decode(),
        re.DOTALL,
    )
    assert len(told) == len(known)
    for status, href, letter, marks, words in told:
        assert letter == site.LETTERS[status]
        assert words.endswith(f"{status.capitalize()}.")
        assert href.startswith("artefacts.html#row-") == (status == "absent")
        assert ("✗" in marks) == ("contradicted" in words)
        assert ("?" in marks) == ("undecided" in words)
    assert any("✗" in marks for *_, marks, _ in told)
    assert len(set(site.LETTERS.values())) == len(ledger.STATUSES) == len(site.LETTERS)


def test_home_counts_as_the_ledger_and_the_page_of_claims_do() -> None:
    home, claims_page = (PAGES[name].decode() for name in ("index.html", "claims.html"))
    with (project.root() / "reports" / "ledger.csv").open(encoding="utf-8", newline="") as lines:
        statuses = Counter(row["status"] for row in csv.DictReader(lines))
    counts = {word: number for number, word in re.findall(r"<b>(\d+)</b> (\w+)(?=[,:])", home)}
    assert {status: int(count) for status, count in counts.items()} == statuses
    with (project.root() / "reports" / "verdicts.csv").open(encoding="utf-8", newline="") as lines:
        verdicts = [row for row in csv.DictReader(lines) if row["paper"] == "all"]
    of_basis = {"recomputed": "on printed numbers", "replica": "on a replica"}
    for row in verdicts:
        if row["basis"] not in of_basis or row["verdict"] == "all":
            continue
        words = rf"{row['sentences']} sentences {of_basis[row['basis']]}"
        line = claims_page.split(f'<dt id="{row["verdict"].replace(" ", "-")}">')[1]
        assert words in line.partition("</dd>")[0]
        part = home.split(f"{of_basis[row['basis']].capitalize()}: ")[1].partition("<h3>")[0]
        if row["sentences"] != "0":
            assert f">{row['verdict']}</span> {row['sentences']}: " in part


def test_home_says_of_whom_it_is_and_unfolds_three_findings_with_their_numbers() -> None:
    home = PAGES["index.html"].decode()
    main = home.partition("<main")[2]
    for words in ("Tetsuya Sakai (2023)", "Amin Abolghasemi (2026)", "Version 0.1.0"):
        assert words in main.partition("<h2")[0]
    actions = re.findall(r'<a href="([^"]+)">', re.findall(r'class="actions">(.*?)</p>', main)[0])
    assert actions == ["#notebooks", "guide-runs.html", "guide-fork.html", "cite.html"]
    leads = re.findall(r'<article class="lead-finding">(.*?)</article>', main, re.DOTALL)
    assert len(leads) == 3
    for lead in leads:
        assert re.search(r"<b>-?[\d.]+ \[-?[\d.]+, -?[\d.]+\]", lead)
        drawing = base64.b64decode(re.findall(r"base64,([^\"]+)", lead)[0]).decode()
        assert drawing.startswith("<svg")
        assert "<circle" in drawing
        assert 'class="verdict' in lead


def test_a_mark_shows_estimate_interval_and_bound_in_their_order() -> None:
    claim = {
        "said": "gain",
        "estimate": 0.5,
        "low": 0.25,
        "high": 1.0,
        "n": 9,
        "printed": 0.75,
        "reason": "",
        "contradicted_if": "<= 0",
        "verdict": "holds",
    }
    drawing = base64.b64decode(re.findall(r"base64,([^\"]+)", claim_marks.mark(claim))[0]).decode()
    bound = float(re.findall(r"M([\d.]+) 2V", drawing)[0])
    low, high = map(float, re.findall(r'M([\d.]+) 12H([\d.]+)" [^>]*stroke-width="6"', drawing)[0])
    estimate = float(re.findall(r'cx="([\d.]+)" cy="12" r="6"', drawing)[0])
    printed = float(re.findall(r'cx="([\d.]+)" cy="12" r="8"', drawing)[0])
    assert bound < low < estimate < printed < high
    # what contradicts lies before the bound, dashed
    assert f'd="M0 12H{bound}"' in drawing
    assert 'alt="0.5 [0.25, 1] on a line; contradicted at or below 0"' in claim_marks.mark(claim)
    nothing = claim | {"estimate": None, "low": None, "high": None, "printed": None, "reason": "x"}
    assert claim_marks.mark(nothing) == ""


def test_equipoise_and_each_paper_can_be_cited() -> None:
    page = html.unescape(PAGES["cite.html"].decode())
    assert "@software{equipoise," in page
    references = catalogue.references()
    for paper in printed.artefacts()["paper"].unique():
        assert references[paper] in page


def test_what_is_not_reproduced_says_which_data_stand_in() -> None:
    page = html.unescape(PAGES["artefacts.html"].decode())
    part = page.partition('id="not-reproduced"')[2].partition('id="list"')[0]
    with (project.root() / "reports" / "ledger.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    short_of = [row for row in rows if row["status"] in ("replica", "differing", "kept", "absent")]
    assert len(short_of) > 30
    for row in short_of:
        assert f"#{row['paper']}-{row['artefact']}" in part or row["status"] == "absent"
        assert row["data"] in part or row["status"] != "replica"


def test_each_reported_artefact_can_be_downloaded() -> None:
    for name in site.reported():
        manifest = json.loads((project.root() / "reports" / name / "manifest.json").read_text())
        links = {values.get("href") for values in PARSED[f"{name}.html"].all("a")}
        for record in manifest["artefacts"]:
            assert {f"../{name}/{file}" for file in record["files"]} <= links, record["artefact"]


def test_contrast_of_text_and_ground() -> None:
    """WCAG 2.1: a contrast of 4.5 to 1 on every ground of text, and for every colour of code."""
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
    assert "Error: no compendium at" in said.output
    assert "(equipoise init makes them)" in " ".join(said.output.split())


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
    where = [
        f"--ServerApp.root_dir={project.root()}",
        "--LabApp.default_url=/lab/tree/notebooks",
        "--ContentsManager.pre_save_hook=equipoise_compendium.saving.before_saving",
    ]
    assert started[0][1:] == ["-m", "jupyterlab", *where, "--no-browser"]


# --- variants -------------------------------------------------------------------------------------


def test_the_page_of_variants_says_what_can_be_changed() -> None:
    page = PAGES["variants.html"].decode()
    for name, notebook in site.reported().items():
        assert f'href="{name}.html"' in page
        for parameter in notebook.parameters.values():
            assert f"<code>{parameter.name}=" in page


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
    # The marks of claims are drawn within the page.
    sources = [values["src"] for values in page.all("img") if values["src"][:5] != "data:"]
    images = [unquote(source) for source in sources]
    assert len(images) > 3
    links = [
        unquote(values["href"])
        for values in page.all("a")
        if values.get("href", "#")[0] not in "#h"
    ]
    assert len(links) > 10
    missing = [name for name in images + links if not (made.parent / name).is_file()]
    assert missing == []
    assert not page.all("script")
    assert "&lt;script&gt;document.title" in made.read_text()


def test_a_title_may_open_sentences_alone(tmp_path: Path) -> None:
    """Folded tables get links to their files; folded claims have none, and stay as they are."""
    fold = folded("On what is printed", [Shown.text("a", "**Holds**", "<p>It holds.</p>")])
    output = nbformat.v4.new_output("display_data", fold.formats)
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell("fold", outputs=[output])]
    nbformat.write(notebook, tmp_path / "example.ipynb")
    page = markup.body(tmp_path)
    assert "<summary>On what is printed</summary><p>It holds.</p></details>" in page
