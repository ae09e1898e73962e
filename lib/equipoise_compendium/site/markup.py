"""Markup of the pages: prose, formulas as MathML, and the cells of an executed notebook.

What `shown` displays is written again by its templates, which escape it. All other markup that
comes from a notebook passes one list of allowed tags and attributes. MathML comes from formulas
only, through a list of its own.
"""

from __future__ import annotations

import ast
import html
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import math_core
import nh3
from markupsafe import Markup
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pygments.lexers import PythonLexer
from pygments.token import Comment, Keyword, String

from equipoise.errors import plain
from equipoise_compendium import project
from equipoise_compendium.printed import Printed
from equipoise_compendium.rendering import LINK, claim_anchor, linked, macros, made_by
from equipoise_compendium.settings import settings
from equipoise_compendium.site.compared import Compared


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
    "div": {"role", "tabindex", "aria-label"},
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
_CELL = re.compile(r"<td\b[^>]*>(.*?)</td>", re.DOTALL)
_NUMBER = re.compile(r"[−-]?\d+(?:,\d{3})*(?:\.\d+)?%?")
_CONVERTER = math_core.LatexToMathML()
_CODE = '<abbr title="Code">&lt;/&gt;</abbr>'


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

    def table(self, text: str) -> str:
        # It scrolls, so the keyboard must reach it.
        region = '<div class="scroll" role="group" tabindex="0" aria-label="Table">'
        return f"{region}<table>{text}</table></div>"

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
    # Long lines that a command prints scroll, too.
    group = '<div class="highlight" role="group" aria-label="Code" tabindex="0">'
    converted = converted.replace('<div class="highlight">', group)
    return Markup(converted)  # noqa: S704 - all of it is clean


# --- notebooks ------------------------------------------------------------------------------------


def _links(report: Path, **names: str) -> list[tuple[str, str]]:
    """Return labels and addresses of the files of a table or figure that exist."""
    links = []
    for label, name in names.items():
        if (report / name).is_file():
            links.append((label, f"../{quote(report.name)}/{name}"))
    return links


@dataclass(frozen=True)
class Figure:
    """A figure of a report: its address on the site, its file, its caption, and what it shows.

    ``words``: those in the drawing, by which a reader finds it. ``size``: width and height, in
    pixels; ``narrow``: of the figure for a phone, or empty.
    """

    address: str
    file: str
    caption: str
    alt: str
    words: str
    size: list[int]
    narrow: list[int]

    @classmethod
    def of(cls, report: Path, output: Any) -> Figure:
        """Read the figure that an output shows."""
        slug = made_by(output)[1]
        # Where a table and a figure have one name, the table keeps it.
        is_table = (report / "tables" / f"{slug}.csv").is_file()
        anchor = f"{slug}-figure" if is_table else slug
        alt = output.metadata["image/png"]["alt"]
        drawing, phone = (
            path.read_text(encoding="utf-8") if path.is_file() else ""
            for path in (report / "figures" / f"{slug}{kind}.svg" for kind in ("", "-narrow"))
        )
        labels = html.unescape(" ".join(re.findall(r"<text[^>]*>([^<]*)</text>", drawing)))
        words = " ".join(dict.fromkeys(re.findall(r"[^\W\d]{3,}", labels)))
        return cls(
            f"{report.name}.html#{anchor}",
            f"../{quote(report.name)}/figures/{slug}.svg",
            output.data["text/plain"],
            alt,
            words,
            _size(drawing),
            _size(phone),
        )


def _size(drawing: str) -> list[int]:
    """Return width and height of an SVG in pixels, 1/96 of an inch; a point is 1/72."""
    return [round(float(points) * 4 / 3) for points in re.findall(r'"([\d.]+)pt"', drawing)[:2]]


def figures(report: Path, cells: Sequence[Any]) -> list[Figure]:
    """List the figures of a report from the cells of its notebook, in their order on its page."""
    shown = [output for output in _outputs(cells) if made_by(output)[0] == "figure"]
    return [Figure.of(report, output) for output in shown]


def tables(cells: Sequence[Any]) -> dict[str, Any]:
    """Return what the cells of a notebook show as tables or words, by its anchor."""
    made = [made_by(output) for output in _outputs(cells)]
    return {values["name"]: values for macro, values in made if macro in ("table", "words")}


def _outputs(cells: Sequence[Any]) -> Iterator[Any]:
    for cell in cells:
        yield from cell.get("outputs", [])


@dataclass(frozen=True)
class Context:
    """What the outputs of a notebook need of the site.

    ``moves``: by the address of a figure, the page on which a reader changes its numbers.
    ``judged``: the claims by name. ``compared``: artefacts by their anchor. ``places``: by words
    and anchor of a link in the answer, the anchor of the cell that has its number.
    """

    code: Code
    moves: Mapping[str, str]
    judged: Mapping[str, Mapping[str, Any]]
    compared: Mapping[str, Compared]
    places: dict[tuple[str, ...], str] = field(default_factory=dict)

    def point_to(self, anchor: str, markup: str) -> str:
        """Name the cells of a table or claim to which links of the answer lead.

        Where no cell or more than one may be meant, a link leads to the table.
        """
        for number, link in enumerate(self.places):
            cell = _cell_of(markup, link[0]) if link[1] == anchor else None
            if cell:
                self.places[link] = f"{anchor}-number-{number}"
                name = f'<td id="{self.places[link]}"'
                markup = markup[: cell.start()] + name + markup[cell.start() + 3 :]
        return markup


def _cell_of(markup: str, words: str) -> re.Match[str] | None:
    """Find the only cell of a table whose number rounds to the first one of these words."""
    number = _NUMBER.search(words)
    # The table itself comes last, after that of the differences.
    cells = _CELL.finditer(markup, markup.rfind("<table"))
    found = [cell for cell in cells if number and _rounds_to(cell[1], number[0])]
    return found[0] if len(found) == 1 else None


def _rounds_to(cell: str, text: str) -> bool:
    """Return whether a cell begins with a number that rounds to this one; 28% may be 0.28."""
    found = _NUMBER.match(re.sub("<[^>]*>|≠ ", "", cell))
    if not found:
        return False
    value = Printed.parse(found[0].strip("%")).number
    if value is None:
        return False
    if not text.endswith("%"):
        return Printed.parse(text).agrees(value, "")
    # A whole number is exact, but a whole percentage is rounded.
    percent, tolerance = Printed.parse(text.strip("%")), 0.0 if "." in text else 0.5
    return any(percent.agrees(each, "", tolerance) for each in (value, 100 * value))


def _output(report: Path, output: Any, context: Context, *, in_opening: bool = False) -> str:
    """Write an output of a cell by its macro, with links; a claim, with its answers.

    In the opening, a link leads to the code that is below.
    """
    macro, values = made_by(output)
    slug = values["name"] if macro in ("table", "words") else values
    about = dict[str, Any]()
    if macro in ("table", "words", "figure"):
        about = {"compared": context.compared.get(slug), "code": ""}
        if in_opening and slug in context.code.made:
            about["code"] = f"code-{context.code.made[slug]}"
    page: Mapping[str, Any]
    match macro:
        case "caption":
            return ""  # a figure of a page has its caption within
        case "figure":
            figure = Figure.of(report, output)
            links = _links(report, SVG=f"figures/{values}.svg", CSV=f"figures/{values}.csv")
            moves = context.moves.get(figure.address, "")
            page = {"figure": figure, "links": links, "moves": moves, **about}
        case "claim":
            page = {"claim": context.judged[values]}
            slug = claim_anchor(page["claim"])
        case "table" | "words":
            links = _links(report, CSV=f"tables/{slug}.csv", Text=f"tables/{slug}.txt")
            page = {**values, "links": links, **about}
        case "answer" | "paragraph" | "summary":
            page = values
        case _:
            return _other_output(output)
    markup = str(getattr(macros(in_notebook=False), macro)(**page))
    return context.point_to(slug, markup) if isinstance(slug, str) else markup


def _other_output(output: Any) -> str:
    """Write an output that `shown` has not made in the one form that a page shows."""
    if output.output_type == "stream":
        return _text(output.text)
    if output.output_type == "error":
        return _text(output.evalue)
    if "text/html" in output.data:
        region = '<div class="scroll" role="group" tabindex="0" aria-label="Output">'
        return f"{region}{clean(output.data['text/html'])}</div>"
    if "text/markdown" in output.data:
        return prose(output.data["text/markdown"])
    if "image/png" in output.data:
        image = Markup('<img alt="" src="data:image/png;base64,{}">')
        return str(image.format(output.data["image/png"]))
    return _text(output.data.get("text/plain", ""))


def _text(text: str) -> str:
    return str(Markup("<pre>{}</pre>").format(plain(text)))


def _imported(cells: Sequence[Any]) -> dict[str, str]:
    """Return the full name of what the cells of a notebook import, by its name there."""
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    names = {}
    for module, imported in re.findall(r"^(?:from (\S+) )?import (\S.*)$", code, re.MULTILINE):
        for each in imported.split(", "):
            name, _, alias = each.partition(" as ")
            names[alias or name] = f"{module}.{name}" if module else name
    return names


@cache
def _sources(module: str) -> dict[str, str]:
    """Return the sources of the functions of a module in ``lib``, by name.

    Functions of this package show and compare; what a number is, the others say.
    """
    path = project.root() / _path(module)
    if module.startswith("equipoise_compendium") or not path.is_file():
        return {}
    text = path.read_text(encoding="utf-8")
    lines, functions = text.splitlines(), {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            functions[node.name] = "\n".join(lines[node.lineno - 1 : node.end_lineno])
    return functions


def _path(module: str) -> str:
    return f"lib/{module.replace('.', '/')}.py"


@dataclass(frozen=True)
class Code:
    """The code of a notebook, whose names lead to their explanation or to their source.

    ``imported``: full names by the names in the notebook. ``places``: addresses by full names.
    ``made``: by the name of a table, figure or claim, the number of the cell that makes it.
    ``called``: the modules of functions of ``lib`` without an explanation, by the name in the
    notebook.
    """

    imported: Mapping[str, str]
    places: Mapping[str, str]
    made: Mapping[str, int]
    called: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, cells: Sequence[Any], places: Mapping[str, str]) -> Code:
        """Read imports, tables, figures and claims of the cells."""
        made = dict[str, int]()
        for index, cell in enumerate(cells):
            if cell.cell_type == "code":
                names = re.findall(r'\.(?:figure|table)\(\s*"([^"]+)"', cell.source)
                shown = map(made_by, cell.get("outputs", []))
                names += [name for macro, name in shown if macro == "claim"]
                made |= {name.replace("/", "-"): index for name in names}
        return cls(_imported(cells), places, made)

    def address(self, name: str) -> str:
        """Return the address of a name with its module, such as ``library.measure``, or ""."""
        alias, _, function = name.partition(".")
        module = self.imported.get(alias, "")
        place = self.places.get(f"{module}.{function}", "")
        if place or function not in _sources(module):
            return place
        self.called[name] = module
        return f"#function-{name}"

    def functions(self) -> Section:
        """Write the sources of the functions that the cells written so far call."""
        section = Section("functions", "Functions that the code calls", "")
        for name, module in sorted(self.called.items()):
            place = f"<code>{_path(module)}</code>"
            if settings().repository:
                place = f'<a href="{settings().repository}/blob/HEAD/{_path(module)}">{place}</a>'
            section.content += f'<h3 id="function-{name}"><code>{name}</code></h3><p>{place}</p>'
            section.content += self.written(_sources(module)[name.partition(".")[2]])
        return section

    def written(self, source: str, index: int | None = None) -> str:
        """Write a cell as HTML; only comments, keywords and strings are marked, for small pages.

        A function, which has no ``index``, has no links: its names are those of another module.
        """

        def mark(token: tuple[Any, str]) -> str:
            kinds = {Comment: "c", Keyword: "k", String: "s"}
            return next((name for kind, name in kinds.items() if token[0] in kind), "")

        def link(match: re.Match[str]) -> str:
            address = html.escape(self.address(match[0]))
            return f'<a href="{address}">{match[0]}</a>' if address else match[0]

        parts = []
        for name, tokens in itertools.groupby(PythonLexer().get_tokens(source), key=mark):
            text = html.escape(plain("".join(value for _, value in tokens)), quote=False)
            if name:
                text = f'<span class="{name}">{text}</span>'
            elif index is not None:
                text = re.sub(r"\b[A-Za-z_]\w*\.[A-Za-z_]\w*", link, text)
            parts.append(text)
        anchor = "" if index is None else f' id="code-{index}"'
        return f"<pre{anchor}>{''.join(parts)}</pre>"


def _folded(code: list[str]) -> str:
    """Fold the code of cells that makes what follows; empties the list."""
    text = "".join(code)
    code.clear()
    return f'<details class="code"><summary>{_CODE}</summary>{text}</details>' if text else ""


@dataclass
class Section:
    """A section of an article: its anchor, and the markup of its heading and of its content.

    ``made``: how many outputs each macro of `shown` made.
    """

    anchor: str
    title: str
    content: str
    made: Counter[str] = field(default_factory=Counter)

    @property
    def summary(self) -> str:
        """What it contains, such as "2 tables, 1 figure"."""
        counts = {
            "table": self.made["table"] + self.made["words"],
            "figure": self.made["figure"],
            "claim": self.made["claim"],
        }
        return ", ".join(f"{n} {name}{'s' if n > 1 else ''}" for name, n in counts.items() if n)


@dataclass
class Opening:
    """The opening of a notebook as clean markup; its answer by sentences."""

    question: str = ""
    answer: Sequence[str] = ()
    figure: str = ""
    rest: str = ""

    def add(self, report: Path, cell: Any, context: Context) -> None:
        """Add a cell: the title with the question, or the answer with its figure and table."""
        if cell.cell_type != "code":
            text = cell.source if cell.cell_type == "raw" else re.sub(r"^#+ .*", "", cell.source)
            self.question += _text(text) if cell.cell_type == "raw" else prose(text)
        for output in cell.get("outputs", []):
            macro, values = made_by(output)
            if macro == "answer":
                self.answer = values["sentences"]
                context.places.update(
                    {link: link[1] for link in LINK.findall(" ".join(self.answer))}
                )
            elif macro == "figure":
                self.figure += _output(report, output, context, in_opening=True)
            else:
                self.rest += _output(report, output, context, in_opening=True)


@dataclass(frozen=True)
class Article:
    """An executed notebook as clean markup: the opening, and the sections that follow.

    ``rest``: what precedes the first section.
    """

    opening: Opening
    rest: str
    sections: list[Section]


def article(report: Path, cells: Sequence[Any], context: Context) -> Article:
    """Write the cells of the executed notebook of a report as HTML.

    The code since the last output is folded above the output that it makes.
    """
    # The question, its answer and the figure that shows it come before how they were made.
    answers = [made_by(output)[0] == "answer" for output in _outputs(cells[1:2])]
    n_opening = 2 if any(answers) else 1
    opening, sections, code = Opening(), [Section("", "", "")], list[str]()
    for index, cell in enumerate(cells):
        if index < n_opening:
            opening.add(report, cell, context)
            continue
        outputs = cell.get("outputs", [])
        before, parts = "", []
        if cell.cell_type == "markdown":
            before, *parts = _HEADING.split(str(prose(cell.source)))
            if parts:
                before += _folded(code)
        elif cell.cell_type == "raw":
            before = _text(cell.source)
        else:
            code.append(context.code.written(cell.source, index))
            shown = "".join(_output(report, output, context) for output in outputs)
            if "parameters" in cell.metadata.get("tags", []):
                before = f'<div class="parameters">{code.pop()}</div>'
            elif shown:
                before = _folded(code)
            before += f'<div class="work">{shown}</div>' if shown else ""
        sections[-1].content += before
        for anchor, title, content in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            sections.append(Section(html.unescape(anchor), title, content))
        sections[-1].made.update(made_by(output)[0] for output in outputs)
    sections[-1].content += _folded(code)
    if context.code.called:
        sections.append(context.code.functions())
    opening.answer = [linked(sentence, context.places) for sentence in opening.answer]
    return Article(opening, sections[0].content, sections[1:])


def headings(page: str) -> list[tuple[str, str]]:
    """Return anchor, as in a link, and text of every section of a page."""
    sections = []
    for anchor, markup in _HEADING.findall(page):
        text = Markup(markup).striptags()  # noqa: S704 - text is left
        sections.append((html.unescape(anchor), text))
    return sections
