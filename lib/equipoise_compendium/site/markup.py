"""Markup of the pages: prose, formulas as MathML, and the cells of an executed notebook.

All markup that comes from a notebook passes one list of allowed tags and attributes. MathML comes
from formulas only, through a list of its own.
"""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import math_core
import nh3
from markupsafe import Markup
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pygments.lexers import PythonLexer
from pygments.token import Comment, Keyword, String

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
_HEADING = re.compile(
    r'<h2 id="([^"]*)">(.*?)(?:<a class="anchor-link"[^>]*>.*?</a>)?</h2>', re.DOTALL
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


@dataclass(frozen=True)
class Figure:
    """A figure of a report: its address on the site, its file, its caption, and what it shows.

    ``words``: those in the drawing, by which a reader finds it.
    """

    address: str
    file: str
    caption: str
    alt: str
    words: str

    @classmethod
    def of(cls, report: Path, output: Any) -> Figure | None:
        """Read the figure that an output shows; None for other outputs."""
        if "image/png" not in output.get("data", {}) or "equipoise" not in output.metadata:
            return None
        slug = output.metadata["equipoise"]["figure"]
        # Where a table and a figure have one name, the table keeps it.
        is_table = (report / "tables" / f"{slug}.csv").is_file()
        anchor = f"{slug}-figure" if is_table else slug
        alt = output.metadata["image/png"]["alt"]
        drawing = (report / "figures" / f"{slug}.svg").read_text(encoding="utf-8")
        labels = html.unescape(" ".join(re.findall(r"<text[^>]*>([^<]*)</text>", drawing)))
        words = " ".join(dict.fromkeys(re.findall(r"[^\W\d]{3,}", labels)))
        return cls(
            f"{report.name}.html#{anchor}",
            f"../{quote(report.name)}/figures/{slug}.svg",
            output.data["text/plain"],
            alt,
            words,
        )


def figures(report: Path, cells: Sequence[Any]) -> list[Figure]:
    """List the figures of a report from the cells of its notebook, in their order on its page."""
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return [figure for output in outputs if (figure := Figure.of(report, output))]


def _figure(report: Path, figure: Figure, more: str) -> Markup:
    """Write a figure, its caption and links to its files; ``more`` is another link."""
    anchor, slug = figure.address.partition("#")[2], Path(figure.file).stem
    drawn = image(figure.file, report / "figures" / f"{slug}.svg", figure.alt)
    files = {"SVG": f"figures/{slug}.svg", "Values": f"figures/{slug}.csv"}
    links = Markup(_links(report, **files))  # noqa: S704
    moves = Markup('<a href="{}">Change the numbers</a>').format(more) if more else ""
    caption = Markup("<figcaption>{} {} {}</figcaption>").format(figure.caption, links, moves)
    scroll = Markup('<div class="scroll" role="group" tabindex="0" aria-label="Figure">{}</div>')
    return Markup('<figure id="{}">{}{}</figure>').format(anchor, scroll.format(drawn), caption)


def _boxes(report: Path, page: str) -> str:
    """Add links to the files of each table, and anchors to its cells that differ."""
    slug, n_marks = "", 0

    def with_anchor(match: re.Match[str]) -> str:
        nonlocal slug, n_marks
        if match[0] == "<mark>":
            n_marks += 1
            return f'<mark id="{slug}-cell-{n_marks}">' if slug else match[0]
        slug, n_marks = match[1], 0
        files = {"CSV": f"tables/{slug}.csv", "Markdown": f"tables/{slug}.md"}
        head = match[0].removesuffix("</p>")
        return f"{head} {_links(report, **files)}</p>"

    # The box of a table begins with its caption.
    box = r'<div class="equipoise-table" id="([^"]+)"><p>.*?</p>|<mark>'
    return re.sub(box, with_anchor, page, flags=re.DOTALL)


def _output(report: Path, output: Any, moves: Mapping[str, str]) -> str:
    """Write an output of a cell in the one form that a page shows."""
    if output.output_type == "stream":
        return f"<pre>{html.escape(plain(output.text))}</pre>"
    if output.output_type == "error":
        return f"<pre>{html.escape(plain(output.evalue))}</pre>"
    if output.metadata == CAPTION:
        return ""  # a figure of a page has its caption within
    figure = Figure.of(report, output)
    if figure is not None:
        return _figure(report, figure, moves.get(figure.address, ""))
    if "text/html" in output.data:
        # What a notebook folds is open here; a claim is one line, which opens.
        page = re.sub("^<details>", "<details open>", clean(output.data["text/html"]))
        claim = r'<div (class="claim [\w-]+"(?: id="[^"]*")?)><p>(.*?)</p>(.*?</details>)</div>'
        folded = r"<details \1><summary>\2</summary>\3</details>"
        page = re.sub(claim, folded, page, flags=re.DOTALL)
        return framed(_boxes(report, page))
    if "text/markdown" in output.data:
        return prose(output.data["text/markdown"])
    if "image/png" in output.data:
        return f'<img alt="" src="data:image/png;base64,{html.escape(output.data["image/png"])}">'
    return f"<pre>{html.escape(plain(output.data.get('text/plain', '')))}</pre>"


def _code(source: str) -> str:
    """Write Python as HTML; only comments, keywords and strings are marked, for small pages."""

    def mark(token: tuple[Any, str]) -> str:
        kinds = {Comment: "c", Keyword: "k", String: "s"}
        return next((name for kind, name in kinds.items() if token[0] in kind), "")

    parts = []
    for name, tokens in itertools.groupby(PythonLexer().get_tokens(source), key=mark):
        text = html.escape(plain("".join(value for _, value in tokens)), quote=False)
        parts.append(f'<span class="{name}">{text}</span>' if name else text)
    return f"<pre>{''.join(parts)}</pre>"


@dataclass
class Section:
    """A section of an article: its anchor, and the markup of its heading and of its content."""

    anchor: str
    title: str
    content: str

    @property
    def summary(self) -> str:
        """What it contains, such as "2 tables, 1 figure"."""
        counts = {
            "table": self.content.count('<div class="equipoise-table" id='),
            "figure": self.content.count("<figure"),
            "claim": self.content.count('<details class="claim '),
        }
        return ", ".join(f"{n} {name}{'s' if n > 1 else ''}" for name, n in counts.items() if n)


@dataclass(frozen=True)
class Article:
    """An executed notebook as clean markup: the opening, and the sections that follow.

    ``opening``: question, answer and key figure. ``rest``: what precedes the first section.
    """

    opening: str
    rest: str
    sections: list[Section]

    def table(self, slug: str) -> str:
        """Return a table by the name of its file, without its links and anchors; or empty."""
        page = "".join([self.rest, *(section.content for section in self.sections)])
        box = rf'<div class="equipoise-table" id="{re.escape(slug)}">.*?<table>(.*?)</table>'
        match = re.search(box, page, re.DOTALL)
        return re.sub(r' id="[^"]*"', "", match[1]) if match else ""


def article(report: Path, cells: Sequence[Any], moves: Mapping[str, str]) -> Article:
    """Write the cells of the executed notebook of a report as HTML.

    ``moves``: by the address of a figure, the page on which a reader changes its numbers.
    """
    pieces = [_cell(report, cell, moves) for cell in cells]
    # The question, its answer and the figure that shows it come before how they were made.
    n_opening = 2 if pieces[1:] and '<div class="answer">' in pieces[1] else 1
    sections = [Section("", "", "")]
    for piece in pieces[n_opening:]:
        before, *parts = _HEADING.split(piece)
        sections[-1].content += before
        for anchor, title, content in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            sections.append(Section(html.unescape(anchor), title, content))
    return Article("".join(pieces[:n_opening]), sections[0].content, sections[1:])


def _cell(report: Path, cell: Any, moves: Mapping[str, str]) -> str:
    """Write a cell as HTML; headings of sections are at the top, not within an element."""
    if cell.cell_type == "markdown":
        return prose(cell.source)
    kind = "parameters" if "parameters" in cell.metadata.get("tags", []) else "code"
    outputs = "".join(_output(report, output, moves) for output in cell.outputs)
    return f'<div class="{kind}">{_code(cell.source)}</div><div class="work">{outputs}</div>'


def tables(page: str) -> list[tuple[str, str]]:
    """Return anchor and caption, as text, of every table of a notebook's page."""
    box = r'<div class="equipoise-table" id="([^"]+)"><p><b>(.*?)</b>'
    return [
        (anchor, html.unescape(re.sub(r"<[^>]+>", "", caption)))
        for anchor, caption in re.findall(box, page, re.DOTALL)
    ]


def headings(page: str) -> list[tuple[str, str]]:
    """Return anchor, as in a link, and text of every section of a page."""
    sections = []
    for anchor, markup in _HEADING.findall(page):
        text = re.sub(r"<[^>]+>", "", markup)
        sections.append((html.unescape(anchor), html.unescape(text).strip()))
    return sections
