"""Markup of the pages: what of a notebook's may pass, prose, formulas as MathML, and the cells of an executed notebook.

All markup that comes from a notebook passes one list of what is allowed; whatever is not on it is
shown as text. MathML is not on it: what stands in a page comes from formulas, through a list of its
own.
"""

from __future__ import annotations

import base64
import functools
import html
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import math_core
import nbformat
import nh3
from markupsafe import Markup
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from traitlets.config import Config

from equipoise.problems import plain


def _words(text: str) -> set[str]:
    return set(text.split())


TEMPLATES = Path(__file__).parent / "templates"
TAGS = _words(
    "a abbr b blockquote br caption cite code dd del details div dl dt em figcaption figure h1 h2 h3 h4 h5 h6 hr i img "
    "li mark ol p pre s section small span strong sub summary sup table tbody td tfoot th thead tr ul"
)
_ATTRIBUTES = {
    "*": {"class", "id"},
    "a": {"href", "title", "download"},
    "img": {"alt", "src", "width", "height"},
    "td": {"colspan", "rowspan"},
    "th": {"scope", "colspan", "rowspan"},
}
_DROPPED = re.compile(r"<style\b.*?</style\s*>|<!--.*?-->", re.IGNORECASE | re.DOTALL)
_REFUSED = re.compile(
    rf"""<(?!/?(?:{"|".join(TAGS)})(?:\s(?:[^<>"']|"[^"]*"|'[^']*')*)?/?>)""", re.IGNORECASE
)
_LOCAL = re.compile(r"data:image/[a-z+.-]+;base64,[A-Za-z0-9+/=\s]*|(?!/)[\w./%-]+")
_ENDINGS = {"csv": "CSV", "md": "Markdown"}
_SHOWN = (
    "text/html",
    "text/markdown",
    "text/latex",
    "image/png",
    "image/jpeg",
    "text/plain",
)  # the best one first

_MATHML = _words(
    "math mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow mspace msqrt mstyle msub msubsup "
    "msup mtable mtd mtext mtr munder munderover"
)
_MATHML_ATTRIBUTES = _words(
    "accent accentunder columnalign columnspan depth display displaystyle fence form height largeop linethickness "
    "lspace mathvariant maxsize minsize movablelimits rspace scriptlevel separator stretchy style symmetric width"
)
_CONVERTER = math_core.LatexToMathML()
_NAME = (
    re.compile(  # that of a function or quantity, not a product of letters; text and commands stay
        r"\\(?:text|math[a-z]+|operatorname|begin|end)\*?\{[^}]*\}|\\[A-Za-z]+|"
        r"(?<![A-Za-z])(?!ijk)([A-Za-z]{3,}|[A-Z]{2}|wc|pw|uc)(?![A-Za-z])"
    )
)


# --- what may pass --------------------------------------------------------------------------------


def _address(_: str, name: str, value: str) -> str | None:
    """An attribute as it may stand: images are in the page or beside it, links lead to pages, never to a share."""
    if name == "src":
        return value if _LOCAL.fullmatch(value) else None
    bare = re.sub(r"\s", "", value).lower()
    return None if name == "href" and (bare.startswith(("data:", "//")) or "\\" in bare) else value


def clean(markup: object) -> str:
    """Markup, text or bytes, with every tag that is not allowed shown as text, and without attributes not allowed.

    So there are no scripts, event handlers, styles, frames, forms, and no images from other places.
    """
    text = plain(markup.decode() if isinstance(markup, bytes) else markup)
    text = _REFUSED.sub("&lt;", _DROPPED.sub("", text))
    allowed: dict[str, Any] = {
        "tags": TAGS,
        "attributes": _ATTRIBUTES,
        "attribute_filter": _address,
    }
    return nh3.clean(
        text, link_rel=None, url_schemes={"http", "https", "mailto", "data"}, **allowed
    )


def formula(tex: str, *, block: bool = True) -> Markup:
    """A formula as MathML, names upright; one that cannot be converted is shown as it is written."""
    upright = _NAME.sub(lambda found: rf"\mathrm{{{found[1]}}}" if found[1] else found[0], tex)
    try:
        made = _CONVERTER.convert_with_local_state(upright, displaystyle=block)
    except math_core.LatexError:
        return Markup('<code class="tex-error">{}</code>').format(tex)
    styles = {"color", "text-align", "padding-left", "padding-right"}
    passed = nh3.clean(
        made, tags=_MATHML, attributes={"*": _MATHML_ATTRIBUTES}, filter_style_properties=styles
    )
    return Markup(passed)  # noqa: S704 - it is clean


class _Renderer(IPythonRenderer):
    """Marks formulas, for `prose` to convert when everything else is clean."""

    def inline_math(self, body: str) -> str:
        return f'<span class="tex">{html.escape(body)}</span>'

    def block_math(self, body: str) -> str:
        return f'<span class="tex block">{html.escape(body)}</span>'

    def latex_environment(self, name: str, body: str) -> str:
        return self.block_math(f"\\begin{{{name}}}{body}\\end{{{name}}}")


def prose(text: str, *, anchors: bool = True) -> Markup:
    """Markdown as clean HTML, its formulas as MathML, its headings with links to themselves."""
    renderer = _Renderer(escape=False, anchor_link_text="#", exclude_anchor_links=not anchors)
    marked = clean(MarkdownWithMath(renderer=renderer).render(text))
    parts = re.split(r'<span class="tex( block)?">([^<]*)</span>', marked)
    for place in range(2, len(parts), 3):
        block = bool(parts[place - 1])
        parts[place] = formula(html.unescape(parts[place]), block=block)
        parts[place - 1] = (
            '<span class="formula" role="group" aria-label="Formula" tabindex="0">' if block else ""
        )
        parts[place + 1] = f"</span>{parts[place + 1]}" if block else parts[place + 1]
    return Markup("".join(parts))  # noqa: S704 - every part is clean


# --- notebooks ------------------------------------------------------------------------------------


def _links(report: Path, kind: str, slug: str, endings: Mapping[str, str], code: str) -> str:
    """Links to the files that a table or figure has left, and to its code."""
    there = [f'<a href="#{code}">Code</a>'] + [
        f'<a href="../{quote(report.name)}/{kind}/{slug}.{ending}" download>{label}</a>'
        for ending, label in endings.items()
        if (report / kind / f"{slug}.{ending}").is_file()
    ]
    return f'<p class="downloads">{" · ".join(there)}</p>' if slug else ""


def image(source: str, svg: str, alt: str) -> str:
    """An image of a figure, with the size that its SVG names, which is in points; ``alt`` is escaped."""
    size = re.search(r'<svg\b[^>]*?\bwidth="([\d.]+)pt" height="([\d.]+)pt"', svg)
    shape = (
        f' width="{float(size[1]) * 4 / 3:.0f}" height="{float(size[2]) * 4 / 3:.0f}"'
        if size
        else ""
    )
    return f'<img src="{source}" alt="{html.escape(alt)}"{shape}>'


def _figure(
    report: Path, shown: Mapping[str, str], alt: str, slug: str, anchor: str, code: str
) -> str:
    """A figure that links to its file in the report, or that holds the image where there is no such file."""
    svg, caption = shown["image/svg+xml"], shown.get("text/plain", "")
    source = f"../{quote(report.name)}/figures/{slug}.svg"
    if slug:
        linked = f'<a href="{source}">{image(source, svg, alt or caption)}</a>'
    else:
        linked = image(
            f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}",
            svg,
            alt or caption,
        )
    links = _links(
        report, "figures", slug, {"svg": "SVG", "png": "PNG", "csv": "Values as CSV"}, code
    )
    name = f' id="{anchor}"' if slug else ""
    return f"<figure{name}>{linked}<figcaption>{html.escape(caption)}</figcaption>{links}</figure>"


def _folded(cell: Any, shown: Mapping[str, str], report: Path, tables: Mapping[str, str]) -> str:
    """Tables behind a title that opens, each with its place and its files."""
    begin, end, words = '<div class="equipoise-table">', "</details>", shown["text/markdown"]
    first, *rest = shown["text/html"].removesuffix(end).split(begin)
    within = [
        slug
        for _, slug in sorted(
            (words.index(text), slug) for text, slug in tables.items() if text in words
        )
    ]
    code = cell.metadata.setdefault("code_of", f"code-{within[0]}")
    parts = [
        f'<section class="result" id="{slug}">{begin}{part}{_links(report, "tables", slug, _ENDINGS, code)}</section>'
        for slug, part in zip(within, rest, strict=True)
    ]
    return "".join([first, *parts, end])


def _with_files(notebook: nbformat.NotebookNode, report: Path) -> nbformat.NotebookNode:
    """A notebook whose figures and tables point to their code, and to their files in the report, found by content."""
    figures = {
        path.read_text(encoding="utf-8"): path.stem
        for path in sorted((report / "figures").glob("*.svg"))
    }
    tables = {
        path.read_text(encoding="utf-8"): path.stem
        for path in sorted((report / "tables").glob("*.md"))
    }
    for cell, output in [
        (each, output) for each in notebook.cells for output in each.get("outputs", [])
    ]:
        shown = output.get("data", {})
        svg = shown.get("image/svg+xml", "")
        slug = figures.get(svg, "") if svg else tables.get(shown.get("text/markdown", ""), "")
        if svg:
            anchor = (
                f"{slug}-figure" if slug in tables.values() else slug
            )  # a table and a figure of one name
            code = cell.metadata.setdefault("code_of", f"code-{anchor}")
            alt = output.get("metadata", {}).get("image/svg+xml", {}).get("alt", "")
            output["data"] = {"text/html": _figure(report, shown, alt, slug, anchor, code)}
        elif shown.get("text/html", "").startswith("<details>"):
            output["data"] = {"text/html": _folded(cell, shown, report, tables)}
        elif slug and "text/html" in shown:
            code = cell.metadata.setdefault("code_of", f"code-{slug}")
            links = _links(report, "tables", slug, _ENDINGS, code)
            section = f'<section class="result" id="{slug}">{shown["text/html"]}{links}</section>'
            output["data"] = {"text/html": section}
        elif shown:
            first = next((kind for kind in _SHOWN if kind in shown), "")
            output["data"] = {first: shown[first]} if first else {"text/plain": "(not shown)"}
    return notebook


@functools.cache
def _exporter() -> HTMLExporter:
    config = Config()
    config.CSSHTMLHeaderPreprocessor.enabled = False
    config.TemplateExporter.exclude_input_prompt = True
    config.TemplateExporter.exclude_output_prompt = True
    return HTMLExporter(
        config=config,
        extra_template_basedirs=[str(TEMPLATES)],
        template_name="site",
        sanitize_html=True,
        filters={"clean_html": clean, "prose": prose},
    )


def body(report: Path) -> Markup:
    """Cells of the executed notebook of a report as HTML."""
    notebook = nbformat.read(next(report.glob("*.ipynb")), as_version=4)
    made = _exporter().from_notebook_node(_with_files(notebook, report))[0]
    return Markup(made.strip())  # noqa: S704 - every part has passed clean()


def headings(page: str) -> list[tuple[str, str]]:
    """Anchor, as in a link, and text of every section of a page."""
    found = re.findall(
        r'<h2 id="([^"]*)">(.*?)(?:<a class="anchor-link"[^>]*>.*?</a>)?</h2>', page, re.DOTALL
    )
    return [
        (html.unescape(anchor), html.unescape(re.sub(r"<[^>]+>", "", text)).strip())
        for anchor, text in found
    ]
