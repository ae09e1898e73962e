"""Markup of the pages: prose, formulas as MathML, and the cells of an executed notebook.

All markup that comes from a notebook passes one list of allowed tags and attributes. MathML comes
from formulas only, through a list of its own.
"""

from __future__ import annotations

import functools
import html
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import math_core
import nbformat
import nh3
from markupsafe import Markup
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from equipoise_compendium.settings import settings
from equipoise_compendium.shown import CAPTION
from equipoise_compendium.words import plain


def _words(text: str) -> set[str]:
    return set(text.split())


TAGS = _words(
    "a abbr b blockquote br caption cite code dd del details div dl dt em figcaption figure "
    "h1 h2 h3 h4 h5 h6 hr i img li mark ol p pre s section small span strong sub summary sup "
    "table tbody td tfoot th thead tr ul"
)
_ATTRIBUTES = {
    "*": {"class", "id"},
    "a": {"href", "title", "download"},
    "img": {"alt", "src", "width", "height"},
    "td": {"colspan", "rowspan"},
    "th": {"scope", "colspan", "rowspan"},
}
_LOCAL_IMAGE = re.compile(r"data:image/[a-z+.-]+;base64,[A-Za-z0-9+/=\s]*|(?!/)[\w./%-]+")
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
    """Return an attribute unchanged, or None: images are in the page or next to it."""
    if name == "src":
        return value if _LOCAL_IMAGE.fullmatch(value) else None
    # Browsers drop white space in addresses, and read a backslash as a slash: such a link could
    # lead to a share of the local network.
    address = re.sub(r"\s", "", value).lower()
    if name == "href" and (address.startswith(("data:", "//")) or "\\" in address):
        return None
    return value


def clean(markup: str) -> str:
    """Remove tags and attributes that are not allowed.

    So there are no scripts, event handlers, styles, frames, forms, and no images from other places.
    """
    return nh3.clean(
        plain(markup),
        tags=TAGS,
        attributes=_ATTRIBUTES,
        attribute_filter=_address,
        url_schemes={"http", "https", "mailto", "data"},
        link_rel=None,
    )


# --- prose and formulas ---------------------------------------------------------------------------


def _names() -> re.Pattern[str]:
    """Match a function or quantity in a formula as its group, and text and commands without it.

    A compendium says which short words are quantities, and which longer ones products of letters.
    """
    quantities = "".join(f"|{re.escape(name)}" for name in settings().quantities)
    products = "|".join(map(re.escape, settings().products))
    no_product = f"(?!{products})" if products else ""
    return re.compile(
        r"\\(?:text|math[a-z]+|operatorname|begin|end)\*?\{[^}]*\}|\\[A-Za-z]+|"
        rf"(?<![A-Za-z]){no_product}([A-Za-z]{{3,}}|[A-Z]{{2}}{quantities})(?![A-Za-z])"
    )


def formula(tex: str, *, block: bool = True) -> Markup:
    """Write a formula as MathML, names upright; one that cannot be converted stays LaTeX."""
    upright = _names().sub(lambda name: rf"\mathrm{{{name[1]}}}" if name[1] else name[0], tex)
    try:
        mathml = _CONVERTER.convert_with_local_state(upright, displaystyle=block)
    except math_core.LatexError:
        return Markup('<code class="tex-error">{}</code>').format(tex)
    # A formula can carry links and styles, so the result is cleaned, too.
    cleaned = nh3.clean(
        mathml,
        tags=_MATHML,
        attributes={"*": _MATHML_ATTRIBUTES},
        filter_style_properties={"color", "text-align", "padding-left", "padding-right"},
    )
    return Markup(cleaned)  # noqa: S704 - it is clean


class _Renderer(IPythonRenderer):
    """Marks formulas, for `prose` to convert when everything else is clean."""

    def inline_math(self, body: str) -> str:
        return f'<span class="tex">{html.escape(body)}</span>'

    def block_math(self, body: str) -> str:
        return f'<span class="tex block">{html.escape(body)}</span>'

    def latex_environment(self, name: str, body: str) -> str:
        return self.block_math(f"\\begin{{{name}}}{body}\\end{{{name}}}")


def _converted(match: re.Match[str]) -> str:
    """Convert the formula of a span that `_Renderer` has marked."""
    tex = html.unescape(match[2])
    if not match[1]:
        return formula(tex, block=False)
    # A long formula scrolls, so the keyboard must reach it.
    group = '<span class="formula" role="group" aria-label="Formula" tabindex="0">'
    return f"{group}{formula(tex)}</span>"


def prose(text: str) -> Markup:
    """Write Markdown as clean HTML, its formulas as MathML, its headings with links."""
    renderer = _Renderer(escape=False, anchor_link_text="#")
    marked = clean(MarkdownWithMath(renderer=renderer).render(text))
    # The escaped formula contains no tag, so its span ends at the next one.
    converted = re.sub(r'<span class="tex( block)?">([^<]*)</span>', _converted, marked)
    return Markup(converted)  # noqa: S704 - all of it is clean


def framed(page: str) -> str:
    """Put each table of a page in a region that scrolls, and that the keyboard reaches."""

    def frame(match: re.Match[str]) -> str:
        caption = re.search(r"<caption>(.*?)</caption>", match[0])
        label = re.sub(r"<[^>]+>", "", caption[1]) if caption else "Table"
        region = f'<div class="scroll" role="group" tabindex="0" aria-label="{label}">'
        return f"{region}{match[0]}</div>"

    return re.sub(r"<table\b.*?</table>", frame, page, flags=re.DOTALL)


# --- notebooks ------------------------------------------------------------------------------------


def image(source: str, file: Path, alt: str) -> Markup:
    """Write the image of an SVG file, with its size in pixels."""
    size = re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', file.read_text(encoding="utf-8"))
    # A point is 1/72 of an inch, a pixel of a page 1/96.
    width, height = (float(size[1]) * 4 / 3, float(size[2]) * 4 / 3) if size else (0, 0)
    return Markup('<img src="{}" alt="{}" width="{:.0f}" height="{:.0f}">').format(
        source, alt, width, height
    )


def _links(report: Path, **labels: str) -> str:
    """Write links to the files of a table or figure."""
    links = []
    for label, name in labels.items():
        if (report / name).is_file():
            links.append(f'<a href="../{quote(report.name)}/{name}" download>{label}</a>')
    return f'<span class="downloads">{" · ".join(links)}</span>'


def _figure(report: Path, output: Any, slug: str) -> Markup:
    """Write a figure: the SVG file of the report, its caption and links to its files."""
    alt = output.metadata["image/png"]["alt"]
    file = f"figures/{slug}.svg"
    drawn = image(f"../{quote(report.name)}/{file}", report / file, alt)
    links = Markup(_links(report, SVG=file, Values=f"figures/{slug}.csv"))  # noqa: S704
    # Where a table and a figure have one name, the table keeps it.
    is_table = (report / "tables" / f"{slug}.csv").is_file()
    anchor = f"{slug}-figure" if is_table else slug
    caption = Markup("<figcaption>{} {}</figcaption>").format(output.data["text/plain"], links)
    return Markup('<figure id="{}">{}{}</figure>').format(anchor, drawn, caption)


def _output(report: Path, output: Any) -> str:
    """Write an output of a cell in the one form that a page shows."""
    if output.output_type == "stream":
        return f"<pre>{html.escape(plain(output.text))}</pre>"
    if output.output_type == "error":
        return f"<pre>{html.escape(plain(output.evalue))}</pre>"
    if output.metadata == CAPTION:
        return ""  # a figure of a page has its caption within
    if "image/png" in output.data and "equipoise" in output.metadata:
        return _figure(report, output, output.metadata["equipoise"]["figure"])
    if "text/html" in output.data:

        def with_links(box: re.Match[str]) -> str:
            slug = box[2]
            files = {"CSV": f"tables/{slug}.csv", "Markdown": f"tables/{slug}.md"}
            return f"{box[1]}{box[3]} {_links(report, **files)}</p>"

        # The box of a table begins with its caption.
        box = r'(<div class="equipoise-table" id="([^"]+)">)(<p>.*?)</p>'
        cleaned = clean(output.data["text/html"])
        return framed(re.sub(box, with_links, cleaned, flags=re.DOTALL))
    if "text/markdown" in output.data:
        return prose(output.data["text/markdown"])
    if "image/png" in output.data:
        return f'<img alt="" src="data:image/png;base64,{html.escape(output.data["image/png"])}">'
    return f"<pre>{html.escape(plain(output.data.get('text/plain', '')))}</pre>"


@functools.cache
def _formatter() -> HtmlFormatter[str]:
    return HtmlFormatter()


def cells(report: Path) -> list[Markup]:
    """Write the cells of the executed notebook of a report as HTML."""
    written = []
    for cell in nbformat.read(report / f"{report.name}.ipynb", as_version=4).cells:
        if cell.cell_type == "markdown":
            written.append(f'<section class="text">{prose(cell.source)}</section>')
            continue
        is_parameters = "parameters" in cell.metadata.get("tags", [])
        code = clean(highlight(cell.source, PythonLexer(), _formatter()))
        title, state = ("Parameters", " open") if is_parameters else ("Code", "")
        folded = f'<details class="code"{state}><summary>{title}</summary>{code}</details>'
        outputs = "".join(_output(report, output) for output in cell.outputs)
        written.append(f'<section class="work">{folded}{outputs}</section>')
    return [Markup(text) for text in written]  # noqa: S704 - every part has passed clean()


def headings(page: str) -> list[tuple[str, str]]:
    """Return anchor, as in a link, and text of every section of a page."""
    heading = r'<h2 id="([^"]*)">(.*?)(?:<a class="anchor-link"[^>]*>.*?</a>)?</h2>'
    sections = []
    for anchor, markup in re.findall(heading, page, re.DOTALL):
        text = re.sub(r"<[^>]+>", "", markup)
        sections.append((html.unescape(anchor), html.unescape(text).strip()))
    return sections
