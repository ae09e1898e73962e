"""The site: the executed notebooks of ``reports/`` as pages that a browser opens from disk, without network.

An index shows the ledger as a matrix, each cell a link to its table or figure; every notebook is a page; the measures,
the benchmarks and the data are described. Pages are made from what lies in ``reports/`` and ``data/`` alone, the same
bytes at every run. Figures and tables are linked where they lie, beside ``reports/site``, not copied. All markup that
comes from a notebook passes one list of what is allowed; whatever is not on it is shown as text.
"""

from __future__ import annotations

import base64
import functools
import html
import http.server
import importlib.metadata
import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import bleach
import jinja2
import nbformat
from markupsafe import Markup
from nbconvert import HTMLExporter
from nbconvert.filters import markdown2html
from pygments.formatters import HtmlFormatter
from traitlets.config import Config

from equipoise import catalogue, project
from equipoise.reports.ledger import STATUS_MEANINGS, STATUSES, Ledger
from equipoise.reports.manifest import MANIFEST
from equipoise.reports.notebooks import Notebook, find_notebooks

_TEMPLATES = Path(__file__).parent / "templates"
_SECTIONS = (("measures", "Measures"), ("performance", "Performance"), ("data", "Data"))
_LETTERS = {"exact": "=", "explained": "≈", "derived": "D", "replica": "R", "kept": "K", "absent": "–"}
_BENCHMARKS = ("data", "outputs", "benchmarks.json")


# --- what may pass ------------------------------------------------------------------------------------------------

_TAGS = frozenset(
    re.findall(
        r"\w+",
        "a abbr b blockquote br caption cite code dd del details div dl dt em figcaption figure h1 h2 h3 h4 h5 h6 hr i "
        "img li mark ol p pre s section small span strong sub summary sup table tbody td tfoot th thead tr ul",
    )
)
_ATTRIBUTES = {"*": ["class", "id"], "th": ["scope", "colspan", "rowspan"], "td": ["colspan", "rowspan"]}
_SHOWN = ("text/html", "text/markdown", "text/latex", "image/png", "image/jpeg", "text/plain")  # the best one first
_STYLE = re.compile(r"<style\b.*?</style\s*>", re.IGNORECASE | re.DOTALL)


def _allowed(tag: str, name: str, value: str) -> bool:
    if name in _ATTRIBUTES["*"] or name in _ATTRIBUTES.get(tag, []):
        return True
    if tag == "a":
        return name in ("href", "title", "download")
    if tag == "img":  # nothing is loaded from elsewhere
        parts = urlsplit(value)
        local = not parts.netloc and (parts.scheme == "" or value.startswith("data:image/"))
        return name == "alt" or (name == "src" and local)
    return False


def clean(markup: object) -> str:
    """Return markup with every tag and attribute that is not allowed shown as text or left out.

    ``markup``: HTML, as text or bytes. Returns: Without scripts, event handlers, styles, frames, forms, and images
    from other places.
    """
    text = markup.decode() if isinstance(markup, bytes) else str(markup)
    return bleach.clean(
        _STYLE.sub("", text), tags=_TAGS, attributes=_allowed, protocols=["http", "https", "mailto", "data"]
    )


def _markdown(text: str) -> str:
    return clean(markdown2html(text))


# --- notebooks ----------------------------------------------------------------------------------------------------


def _links(report: Path, kind: str, slug: str, endings: Mapping[str, str]) -> str:
    """Download links to the files that a table or figure has left."""
    there = [
        f'<a href="../{report.name}/{kind}/{slug}.{ending}" download>{label}</a>'
        for ending, label in endings.items()
        if (report / kind / f"{slug}.{ending}").is_file()
    ]
    return f'<p class="downloads">{" · ".join(there)}</p>' if there else ""


def _image(source: str, caption: str) -> str:
    image = f'<img src="{source}" alt="{caption}">'
    return image if source.startswith("data:") else f'<a href="{source}">{image}</a>'


def _with_files(notebook: nbformat.NotebookNode, report: Path) -> nbformat.NotebookNode:
    """Return a notebook whose figures and tables point to the files in its report, found by their content."""
    figures = {path.read_text(encoding="utf-8"): path.stem for path in sorted((report / "figures").glob("*.svg"))}
    tables = {path.read_text(encoding="utf-8"): path.stem for path in sorted((report / "tables").glob("*.md"))}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            shown = output.get("data", {})
            caption = html.escape(shown.get("text/plain", ""))
            if "image/svg+xml" in shown:
                slug = figures.get(shown["image/svg+xml"], "")
                encoded = base64.b64encode(shown["image/svg+xml"].encode()).decode()
                source = f"../{report.name}/figures/{slug}.svg" if slug else f"data:image/svg+xml;base64,{encoded}"
                links = _links(report, "figures", slug, {"svg": "SVG", "png": "PNG", "csv": "Values as CSV"})
                anchor = f"{slug}-figure" if slug in tables.values() else slug  # a table and a figure of one name
                name = f' id="{anchor}"' if slug else ""
                image = f"{_image(source, caption)}<figcaption>{caption}</figcaption>"
                output["data"] = {"text/html": f"<figure{name}>{image}{links}</figure>"}
            elif (slug := tables.get(shown.get("text/markdown", ""), "")) and "text/html" in shown:
                links = _links(report, "tables", slug, {"csv": "CSV", "md": "Markdown"})
                output["data"] = {
                    "text/html": f'<section class="result" id="{slug}">{shown["text/html"]}{links}</section>'
                }
            elif shown:
                first = next((kind for kind in _SHOWN if kind in shown), "")
                output["data"] = {first: shown[first]} if first else {"text/plain": "(not shown)"}
    return notebook


@functools.cache
def _exporter() -> HTMLExporter:
    config = Config()
    config.HTMLExporter.preprocessors = []
    config.CSSHTMLHeaderPreprocessor.enabled = False
    config.HighlightMagicsPreprocessor.enabled = True
    config.TemplateExporter.exclude_input_prompt = True
    config.TemplateExporter.exclude_output_prompt = True
    return HTMLExporter(
        config=config,
        extra_template_basedirs=[str(_TEMPLATES)],
        template_name="site",
        sanitize_html=True,
        filters={"clean_html": clean},
        anchor_link_text="#",
    )


def _body(report: Path) -> str:
    """Cells of the executed notebook of a report as HTML."""
    path = report / f"{report.name}.ipynb"
    notebook = _with_files(nbformat.read(path, as_version=4), report)
    return str(_exporter().from_notebook_node(notebook)[0]).strip()


def _headings(body: str) -> list[tuple[str, str]]:
    """Anchor, as in a link, and text of every section of a page."""
    found = re.findall(r'<h2 id="([^"]*)">(.*?)(?:<a class="anchor-link"[^>]*>.*?</a>)?</h2>', body, re.DOTALL)
    return [(html.unescape(anchor), html.unescape(re.sub(r"<[^>]+>", "", text)).strip()) for anchor, text in found]


# --- ledger -------------------------------------------------------------------------------------------------------


def _cell(row: Mapping[str, str]) -> dict[str, Any]:
    """What the pages say of one row of the ledger."""
    kind, _, number = row["artefact"].partition("-")
    name, reported = f"{row['paper']}-{row['artefact']}", bool(row["notebook"])
    data = f"Data: {row['data']}." if row["data"] else ""
    return {
        "id": f"row-{name}",
        "anchor": name,
        "href": f"{row['notebook']}.html#{name}" if reported else f"#row-{name}",
        "reported": reported,
        "label": f"{kind.capitalize()} {number}",
        "short": f"{kind[0].upper()}{number}",
        "chapter": number.partition(".")[0] if "." in number else "",
        "letter": _LETTERS[row["status"]],
        "claims": f"{row['claims_that_hold']} of {row['claims']}" if row["claims"] else "",
        "remarks": " ".join(filter(None, [row["remarks"] and f"{row['remarks'].rstrip('.')}.", data])),
        **{column: row[column] for column in ("title", "status", "cells", "differing", "notebook", "paper")},
    }


def _title(entry: str) -> str:
    """Title of a BibTeX entry, without its braces."""
    found = re.search(r"^\s*title = \{(.*)\},$", entry, re.MULTILINE)
    return re.sub(r"[{}]", "", found[1]) if found else ""


def _papers(cells: Sequence[Mapping[str, Any]], references: Mapping[str, str]) -> list[dict[str, Any]]:
    papers: list[dict[str, Any]] = []
    for name in dict.fromkeys(cell["paper"] for cell in cells):
        own = [cell for cell in cells if cell["paper"] == name]
        chapters = dict.fromkeys(cell["chapter"] for cell in own)
        parts = [
            {"name": f"Chapter {chapter}" if chapter else "", "cells": [c for c in own if c["chapter"] == chapter]}
            for chapter in chapters
        ]
        papers.append({"name": name, "title": _title(references.get(name, "")), "parts": parts})
    return papers


def _cited(notebook: Notebook, cells: Sequence[Mapping[str, Any]], references: Mapping[str, str]) -> list[str]:
    """Entries of the works that a notebook regenerates, or whose title stands in its text."""
    keys = {cell["paper"] for cell in cells}
    keys |= {f"{cell['paper']}-ch{cell['chapter']}" for cell in cells if cell["chapter"]}
    text = " ".join(" ".join(c.source for c in notebook.content.cells if c.cell_type == "markdown").split())
    return [entry for key, entry in references.items() if key in keys or (_title(entry) and _title(entry) in text)]


# --- pages --------------------------------------------------------------------------------------------------------


def _assets() -> dict[str, bytes]:
    """Style sheet, MathJax (one file, with its licence) and its settings."""
    own = {name: (_TEMPLATES / "site" / name).read_bytes() for name in ("style.css", "settings.js")}
    colours = HtmlFormatter(style="default").get_style_defs(".highlight")
    own["style.css"] += f"\n/* code */\n{_dark_enough(colours)}\n".encode()
    package = importlib.metadata.distribution("django-static-mathjax")
    files = {Path(str(file)).name: Path(str(package.locate_file(file))) for file in package.files or []}
    mathjax = Path(str(package.locate_file("mathjax/static/mathjax/es5/tex-svg.js")))
    own |= {"tex-svg.js": mathjax.read_bytes(), "tex-svg.LICENSE": files["LICENSE"].read_bytes()}
    return {f"assets/{name}": content for name, content in own.items()}


def _dark_enough(rules: str) -> str:
    """Darken the colours of highlighted code until they stand out 4.5 to 1 from the ground of code blocks."""

    def luminance(channels: Sequence[float]) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def darken(match: re.Match[str]) -> str:
        digits = match[2] if len(match[2]) == 6 else "".join(2 * digit for digit in match[2])
        channels = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        ground = luminance([0xF5 / 255, 0xF5 / 255, 0xF2 / 255])
        while (ground + 0.05) / (luminance(channels) + 0.05) < 4.6:
            channels = [0.9 * channel for channel in channels]
        return match[1] + "#" + "".join(f"{int(255 * channel):02x}" for channel in channels)

    kept = [line for line in rules.splitlines() if line.startswith(".highlight .") and "background" not in line]
    return re.sub(r"(?<![-\w])(color: )#([0-9a-fA-F]{6}|[0-9a-fA-F]{3})\b", darken, "\n".join(kept))


def _performance() -> list[tuple[str, list[dict[str, str]]]]:
    """Ratios of the kept benchmark run, by topic."""
    path = project.root().joinpath(*_BENCHMARKS)
    kept: dict[str, dict[str, float]] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    topics: dict[str, list[dict[str, str]]] = {}
    for name, ratios in sorted(kept.items()):
        module, _, test = name.partition("::")
        topic = Path(module).stem.removeprefix("bench_").replace("_", " ").capitalize()
        label = test.removeprefix("test_").replace("_", " ")
        for what, ratio in ratios.items():
            topics.setdefault(topic, []).append({"benchmark": label, "what": what, "ratio": f"{ratio:g}"})
    return list(topics.items())


def reported() -> dict[str, Notebook]:
    """Notebooks that have a report, by name: those that get a page."""
    reports = project.root() / "reports"
    return {name: notebook for name, notebook in find_notebooks().items() if (reports / name / MANIFEST).is_file()}


def pages() -> dict[str, bytes]:
    """Every file of the site by its path below ``reports/site``, made from the reports as they are.

    Returns: Empty while no notebook has a report.
    """
    reports, notebooks = project.root() / "reports", reported()
    if not notebooks:
        return {}
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES / "site"), autoescape=True, undefined=jinja2.StrictUndefined
    )
    environment.globals["sections"] = _SECTIONS
    references = catalogue.references()
    ledger = Ledger.read((reports / "ledger.csv").read_text(encoding="utf-8"))
    cells = [_cell(row) for row in ledger.table.to_dict("records")]
    made = {name: [cell for cell in cells if cell["notebook"] == name] for name in notebooks}

    def render(template: str, **values: Any) -> bytes:
        page = environment.get_template(f"{template}.html").render(**values)
        return ("\n".join(line.rstrip() for line in page.splitlines()) + "\n").encode()

    counts = ledger.table["status"].value_counts()
    entries = [{"name": name, "title": notebook.title} for name, notebook in notebooks.items()]
    files = _assets()
    files["index.html"] = render(
        "contents",
        title="Equipoise",
        here="index",
        formulas=False,
        total=len(cells),
        statuses=[(s, _LETTERS[s], STATUS_MEANINGS[s], counts.get(s, 0)) for s in reversed(STATUSES)],
        papers=_papers(cells, references),
        notebooks=[entry | {"counts": _counts(made[entry["name"]])} for entry in entries],
    )
    for index, (name, notebook) in enumerate(notebooks.items()):
        body = _body(reports / name)
        opening, end, rest = body.partition("</section>")
        parameters = [
            {"name": p.name, "type": p.type, "default": repr(p.default), "help": p.help}
            for p in notebook.parameters.values()
        ]
        files[f"{name}.html"] = render(
            "notebook",
            title=notebook.title,
            here=name,
            formulas="$" in body,
            name=name,
            opening=Markup(opening + end),  # noqa: S704 - every part has passed clean()
            rest=Markup(rest),  # noqa: S704 - as above
            artefacts=made[name],
            headings=_headings(body),
            parameters=parameters,
            references=_cited(notebook, made[name], references),
            before=entries[index - 1] if index else None,
            after=entries[index + 1] if index + 1 < len(entries) else None,
        )
    measures = catalogue.MEASURES
    families = dict.fromkeys(measure.family for measure in measures)
    cited = {key for measure in measures for key in measure.sources}
    files["measures.html"] = render(
        "measures",
        title="Measures",
        here="measures",
        formulas=True,
        measures=measures,
        families=[(family, [m for m in measures if m.family == family]) for family in families],
        references=[(key, entry) for key, entry in references.items() if key in cited],
    )
    files["performance.html"] = render(
        "performance", title="Performance", here="performance", formulas=False, topics=_performance()
    )
    described = _markdown((project.root() / "data" / "README.md").read_text(encoding="utf-8"))
    files["data.html"] = render(
        "document",
        title="Data",
        here="data",
        formulas=False,
        body=Markup(described),  # noqa: S704 - it has passed clean()
    )
    return dict(sorted(files.items()))


def _counts(cells: Sequence[Mapping[str, Any]]) -> str:
    """How many artefacts of a notebook have which status."""
    statuses = [cell["status"] for cell in cells]
    return ", ".join(f"{statuses.count(status)} {status}" for status in reversed(STATUSES) if status in statuses)


# --- on disk ------------------------------------------------------------------------------------------------------


def _folder() -> Path:
    return project.root() / "reports" / "site"


def _differing(files: Mapping[str, bytes]) -> Iterator[str]:
    """Files of the site that are not, or not yet, what they should be."""
    folder = _folder()
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    for name in sorted(there | set(files)):
        if name not in there or name not in files or (folder / name).read_bytes() != files[name]:
            yield name


def refresh() -> bool:
    """Make the site anew, whole, where it is not what the reports say.

    Returns: Whether anything was written. Nothing is while no notebook has a report.
    """
    files = pages()
    if not files or not any(_differing(files)):
        return False
    work = project.root() / ".equipoise"
    work.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="site-", dir=work) as staging:
        staged, retired = Path(staging) / "site", Path(staging) / "retired"
        for name, content in files.items():
            target = staged / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        if _folder().exists():
            _folder().rename(retired)
        staged.rename(_folder())
        shutil.rmtree(retired, ignore_errors=True)
    return True


def check() -> list[str]:
    """Compare the site with the reports.

    Returns: A line where it is out of date; empty where all is well.
    """
    files = pages()
    differing = list(_differing(files)) if files else []  # without a report there is nothing to show
    return [f"reports/site is out of date ({', '.join(differing)}): run equipoise build"] if differing else []


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files to the address it is bound to, under its own names only, and says nothing."""

    def do_GET(self) -> None:
        if self._foreign():
            self.send_error(403, "this server answers to localhost only")
        elif self.path == "/":
            self.send_response(302)
            self.send_header("Location", "/site/index.html")
            self.end_headers()
        else:
            super().do_GET()

    def do_HEAD(self) -> None:
        if self._foreign():
            self.send_error(403, "this server answers to localhost only")
        else:
            super().do_HEAD()

    def _foreign(self) -> bool:
        """Whether the request names another host: a page elsewhere whose name was pointed here."""
        return self.headers.get("Host", "").rpartition(":")[0] not in ("127.0.0.1", "localhost")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the method it replaces
        """Keep quiet."""


def server(port: int = 0) -> http.server.ThreadingHTTPServer:
    """Server of the reports on the loopback address 127.0.0.1, reachable from this machine only.

    ``port``: 0 takes a free one. Returns: Bound, not yet serving; ``server_port`` is its port.
    """
    if not (_folder() / "index.html").is_file():
        raise FileNotFoundError("reports/site has not been made: run equipoise build")
    handler = functools.partial(_Handler, directory=str(project.root() / "reports"))
    return http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
