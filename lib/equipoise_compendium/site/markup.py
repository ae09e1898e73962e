"""Markup of the pages: prose, formulas as MathML, and the cells of an executed notebook.

All markup that comes from a notebook passes one list of what is allowed; whatever is not on it is
shown as text. MathML is not on it: what stands in a page comes from formulas, through a list of its
own.
"""

from __future__ import annotations

import base64
import functools
import html
import re
from collections.abc import Iterable, Mapping
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

from equipoise_compendium.looks import NARROW_ENDING
from equipoise_compendium.settings import settings
from equipoise_compendium.shown import CAPTION, DRAWN_HERE, KEY_FIGURE
from equipoise_compendium.words import plain


def _words(text: str) -> set[str]:
    return set(text.split())


TEMPLATES = Path(__file__).parent / "templates"
TAGS = _words(
    "a abbr b blockquote br caption cite code dd del details div dl dt em figcaption figure "
    "h1 h2 h3 h4 h5 h6 hr i img li mark ol p picture pre s section small source span strong sub "
    "summary sup table tbody td tfoot th thead tr ul"
)
_ATTRIBUTES = {
    "*": {"class", "id"},
    "a": {"href", "title", "download"},
    "img": {"alt", "src", "width", "height"},
    "source": {"media", "srcset", "width", "height"},
    "td": {"colspan", "rowspan"},
    "th": {"scope", "colspan", "rowspan"},
}
_DROPPED = re.compile(r"<style\b.*?</style\s*>|<!--.*?-->", re.IGNORECASE | re.DOTALL)
_REFUSED = re.compile(
    rf"""<(?!/?(?:{"|".join(TAGS)})(?:\s(?:[^<>"']|"[^"]*"|'[^']*')*)?/?>)""", re.IGNORECASE
)
_LOCAL = re.compile(r"data:image/[a-z+.-]+;base64,[A-Za-z0-9+/=\s]*|(?!/)[\w./%-]+")
_NARROW_PAGE = "(max-width: 50rem)"
"""The pages on which a figure is shown as it is drawn for a phone."""
_TABLE_ENDINGS = {"csv": "CSV", "md": "Markdown"}
_FIGURE_ENDINGS = {"svg": "SVG", "png": "PNG", "csv": "Values as CSV"}
# Of the forms of an output, the first of these is shown.
_PREFERRED = (
    "text/html",
    "text/markdown",
    "text/latex",
    "image/png",
    "image/jpeg",
    "text/plain",
)

_MATHML = _words(
    "math mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow mspace msqrt "
    "mstyle msub msubsup msup mtable mtd mtext mtr munder munderover"
)
_MATHML_ATTRIBUTES = _words(
    "accent accentunder columnalign columnspan depth display displaystyle fence form height "
    "largeop linethickness lspace mathvariant maxsize minsize movablelimits rspace scriptlevel "
    "separator stretchy style symmetric width"
)
_CONVERTER = math_core.LatexToMathML()


# --- what may pass --------------------------------------------------------------------------------


def _address(_: str, name: str, value: str) -> str | None:
    """An attribute as it may stand, or None: images lie in the page or beside it."""
    if name in ("src", "srcset"):
        return value if _LOCAL.fullmatch(value) else None
    if name == "href":
        # Browsers drop white space in addresses, and read a backslash as a slash: such a link
        # could lead to a share of the local network.
        address = re.sub(r"\s", "", value).lower()
        if address.startswith(("data:", "//")) or "\\" in address:
            return None
    return value


def clean(markup: object) -> str:
    """Markup, text or bytes, with tags that are not allowed as text, and such attributes gone.

    So there are no scripts, event handlers, styles, frames, forms, and no images from other places.
    """
    if isinstance(markup, bytes):
        markup = markup.decode()
    # The sanitiser would remove a tag that is not allowed; a reader shall see that it was there.
    text = _REFUSED.sub("&lt;", _DROPPED.sub("", plain(markup)))
    return nh3.clean(
        text,
        tags=TAGS,
        attributes=_ATTRIBUTES,
        attribute_filter=_address,
        url_schemes={"http", "https", "mailto", "data"},
        link_rel=None,
    )


def formula(tex: str, *, block: bool = True) -> Markup:
    """A formula as MathML, names upright; one that cannot be converted is shown as written."""
    try:
        mathml = _CONVERTER.convert_with_local_state(_name().sub(_upright, tex), displaystyle=block)
    except math_core.LatexError:
        return Markup('<code class="tex-error">{}</code>').format(tex)
    # A formula can carry links and styles, so what it has become is cleaned as well.
    cleaned = nh3.clean(
        mathml,
        tags=_MATHML,
        attributes={"*": _MATHML_ATTRIBUTES},
        filter_style_properties={"color", "text-align", "padding-left", "padding-right"},
    )
    return Markup(cleaned)  # noqa: S704 - it is clean


def _name() -> re.Pattern[str]:
    """Matches a function or quantity in a formula as its group, and text and commands without it.

    A compendium says which short words are quantities, and which longer ones products of letters.
    """
    quantities = "".join(f"|{re.escape(name)}" for name in settings().quantities)
    products = "|".join(map(re.escape, settings().products))
    no_product = f"(?!{products})" if products else ""
    return re.compile(
        r"\\(?:text|math[a-z]+|operatorname|begin|end)\*?\{[^}]*\}|\\[A-Za-z]+|"
        rf"(?<![A-Za-z]){no_product}([A-Za-z]{{3,}}|[A-Z]{{2}}{quantities})(?![A-Za-z])"
    )


def _upright(match: re.Match[str]) -> str:
    name = match[1]
    if name:
        return rf"\mathrm{{{name}}}"
    return match[0]


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
    # The escaped formula can hold no tag, so its span ends at the next one.
    converted = re.sub(r'<span class="tex( block)?">([^<]*)</span>', _converted, marked)
    return Markup(converted)  # noqa: S704 - all of it is clean


def _converted(match: re.Match[str]) -> str:
    """The formula of a span that `_Renderer` has marked."""
    tex = html.unescape(match[2])
    if not match[1]:
        return formula(tex, block=False)
    # A long formula scrolls, so the keyboard must reach it.
    group = '<span class="formula" role="group" aria-label="Formula" tabindex="0">'
    return f"{group}{formula(tex)}</span>"


# --- notebooks ------------------------------------------------------------------------------------


def _links(report: Path, kind: str, slug: str, endings: Mapping[str, str], code: str) -> str:
    """Links to the files that a table or figure has left, and to its code."""
    if not slug:
        return ""
    links = [f'<a href="#{code}">Code</a>']
    for ending, label in endings.items():
        file = f"{kind}/{slug}.{ending}"
        if (report / file).is_file():
            links.append(f'<a href="../{quote(report.name)}/{file}" download>{label}</a>')
    return f'<p class="downloads">{" · ".join(links)}</p>'


def _size(svg: str) -> str:
    """The attributes of the size that an SVG names, in pixels."""
    size = re.search(r'<svg\b[^>]*?\bwidth="([\d.]+)pt" height="([\d.]+)pt"', svg)
    if not size:
        return ""
    # A point is 1/72 of an inch, a pixel of a page 1/96.
    width = float(size[1]) * 4 / 3
    height = float(size[2]) * 4 / 3
    return f' width="{width:.0f}" height="{height:.0f}"'


def image(source: str, svg: str, alt: str) -> str:
    """An image of a figure, with the size that its SVG names; ``alt`` is escaped."""
    return f'<img src="{source}" alt="{html.escape(alt)}"{_size(svg)}>'


def picture(source: str, file: Path, alt: str) -> str:
    """A figure that lies in a file, as it is drawn for a phone where the page is narrow."""
    wide = image(source, file.read_text(encoding="utf-8"), alt)
    narrow_file = file.with_suffix(NARROW_ENDING)
    if not narrow_file.is_file():
        return wide
    narrow_source = source.removesuffix(".svg") + NARROW_ENDING
    size = _size(narrow_file.read_text(encoding="utf-8"))
    narrow = f'<source media="{_NARROW_PAGE}" srcset="{narrow_source}"{size}>'
    return f"<picture>{narrow}{wide}</picture>"


def _figure(
    report: Path, forms: Mapping[str, str], alt: str, slug: str, anchor: str, code: str
) -> str:
    """A figure that links to its file in the report; without such a file, it holds the image."""
    svg = forms["image/svg+xml"]
    caption = forms.get("text/plain", "")
    if slug:
        source = f"../{quote(report.name)}/figures/{slug}.svg"
        file = report / "figures" / f"{slug}.svg"
        linked = f'<a href="{source}">{picture(source, file, alt or caption)}</a>'
        attributes = f' id="{anchor}"'
    else:
        encoded = base64.b64encode(svg.encode()).decode()
        linked = image(f"data:image/svg+xml;base64,{encoded}", svg, alt or caption)
        attributes = ""
    links = _links(report, "figures", slug, _FIGURE_ENDINGS, code)
    label = f"<figcaption>{html.escape(caption)}</figcaption>"
    return f"<figure{attributes}>{linked}{label}{links}</figure>"


def _table(report: Path, markup: str, slug: str, code: str) -> str:
    """A table with its place in the page and links to its files."""
    links = _links(report, "tables", slug, _TABLE_ENDINGS, code)
    return f'<section class="result" id="{slug}">{markup}{links}</section>'


def _folded(cell: Any, forms: Mapping[str, str], report: Path, tables: Mapping[str, str]) -> str:
    """Results behind a title that opens, each table with its place and its files."""
    begin, end = '<div class="equipoise-table">', "</details>"
    title, *table_markups = forms["text/html"].removesuffix(end).split(begin)
    if not table_markups:
        return forms["text/html"]  # it folds sentences alone
    # The Markdown of the output says in which order its tables stand.
    markdown = forms["text/markdown"]
    place_by_slug = {
        slug: markdown.index(text) for text, slug in tables.items() if text in markdown
    }
    slugs = sorted(place_by_slug, key=lambda slug: (place_by_slug[slug], slug))
    code = _code_anchor(cell, slugs[0])
    sections = []
    for slug, markup in zip(slugs, table_markups, strict=True):
        sections.append(_table(report, f"{begin}{markup}", slug, code))
    return "".join([title, *sections, end])


def _code_anchor(cell: Any, slug: str) -> str:
    """Anchor of the code of a cell: that of the first result that the cell shows."""
    return str(cell.metadata.setdefault("code_of", f"code-{slug}"))


def _slugs_by_text(paths: Iterable[Path]) -> dict[str, str]:
    return {path.read_text(encoding="utf-8"): path.stem for path in sorted(paths)}


def _shown(
    cell: Any,
    output: Any,
    report: Path,
    figures: Mapping[str, str],
    tables: Mapping[str, str],
) -> dict[str, str]:
    """The one form of an output that a page shows.

    ``figures`` and ``tables`` are the names of the report's files, by what these hold.
    """
    forms = output["data"]
    if "image/svg+xml" in forms:
        slug = figures.get(forms["image/svg+xml"], "")
        # Where a table and a figure have one name, the table keeps it.
        anchor = f"{slug}-figure" if slug in tables.values() else slug
        code = _code_anchor(cell, anchor)
        alt = output.get("metadata", {}).get("image/svg+xml", {}).get("alt", "")
        return {"text/html": _figure(report, forms, alt, slug, anchor, code)}
    markup = forms.get("text/html", "")
    if markup.startswith("<details>"):
        return {"text/html": _folded(cell, forms, report, tables)}
    slug = tables.get(forms.get("text/markdown", ""), "")
    if slug and "text/html" in forms:
        return {"text/html": _table(report, markup, slug, _code_anchor(cell, slug))}
    for form in _PREFERRED:
        if form in forms:
            return {form: forms[form]}
    return {"text/plain": "(not shown)"}


def _with_files(notebook: nbformat.NotebookNode, report: Path) -> nbformat.NotebookNode:
    """A notebook whose figures and tables point to their code, and to their files in the report."""
    # A file is found by its content: an output does not say which file it has become.
    drawings = (report / "figures").glob("*.svg")
    figures = _slugs_by_text(path for path in drawings if not path.name.endswith(NARROW_ENDING))
    tables = _slugs_by_text((report / "tables").glob("*.md"))
    code_cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    # The figure beside the answer is drawn further down: there is the code to read.
    draws_key_figure = None
    for cell in code_cells:
        if any(output.get("metadata") == DRAWN_HERE for output in cell.outputs):
            draws_key_figure = cell
    for cell in code_cells:
        # A page has the caption in its figure, and so not once more behind it.
        cell.outputs = [
            output for output in cell.outputs if output.get("metadata") not in (CAPTION, DRAWN_HERE)
        ]
        for output in cell.outputs:
            is_key_figure = KEY_FIGURE.items() <= output.get("metadata", {}).items()
            drawn_by = cell
            if is_key_figure and draws_key_figure is not None:
                drawn_by = draws_key_figure
            if output.get("data"):
                output["data"] = _shown(drawn_by, output, report, figures, tables)
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
    markup, _ = _exporter().from_notebook_node(_with_files(notebook, report))
    return Markup(markup.strip())  # noqa: S704 - every part has passed clean()


def headings(page: str) -> list[tuple[str, str]]:
    """Anchor, as in a link, and text of every section of a page."""
    heading = r'<h2 id="([^"]*)">(.*?)(?:<a class="anchor-link"[^>]*>.*?</a>)?</h2>'
    sections = []
    for anchor, markup in re.findall(heading, page, re.DOTALL):
        text = re.sub(r"<[^>]+>", "", markup)
        sections.append((html.unescape(anchor), html.unescape(text).strip()))
    return sections
