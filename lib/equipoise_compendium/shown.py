"""What a notebook shows: tables and sentences as HTML, Markdown and plain text, all escaped."""

from __future__ import annotations

import base64
import html
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from equipoise_compendium.claim_marks import mark as interval_mark
from equipoise_compendium.claims import as_words, interval_in_words
from equipoise_compendium.looks import PAGE_RESOLUTION, PNG_RESOLUTION
from equipoise_compendium.printed import PRINTED_FRACTION, Comparison, Printed, as_number, raw
from equipoise_compendium.words import plain

MARKS = " better than"
"""End of the name of a column that marks another, whose name comes before it, by letters."""


def markdown_cell(text: object) -> str:
    """Text that Markdown shows as it stands: no markup, HTML, link or table cell ends in it."""
    escaped = html.escape(plain(" ".join(str(text).split())), quote=False)
    return re.sub(r"([\\`*_\[\]|#~$])", r"\\\1", escaped)


def markdown_row(cells: Iterable[object]) -> str:
    """A row of a Markdown table; every cell is escaped."""
    texts = []
    for cell in cells:
        texts.append(cell.as_markdown() if isinstance(cell, Cell) else markdown_cell(cell))
    return f"| {' | '.join(texts)} |\n"


def markdown_table(header: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; every cell is escaped."""
    rule = f"| {' | '.join(['---'] * len(header))} |\n"
    return markdown_row(header) + rule + "".join(map(markdown_row, rows))


def markdown_list(notes: Iterable[str]) -> str:
    """A Markdown list; every entry is escaped."""
    return "".join(f"- {markdown_cell(note)}\n" for note in notes)


@dataclass(frozen=True)
class Cell:
    """A cell of a table to look at.

    ``mark``: set small and raised behind it. ``printed``: what the paper prints instead.
    ``number``: set to the right. ``best``: set in bold type.
    """

    text: str
    mark: str = ""
    printed: str = ""
    number: bool = False
    best: bool = False

    def as_html(self) -> str:
        """Its HTML, all of it escaped."""
        content = html.escape(self.text)
        if self.best:
            content = f"<b>{content}</b>"
        if self.mark:
            content += f"<sup>{html.escape(self.mark)}</sup>"
        if self.printed:
            printed = html.escape(self.printed)
            content = f"<mark>≠ {content}</mark><br><small>printed {printed}</small>"
        if self.number:
            return f'<td class="number">{content}</td>'
        return f"<td>{content}</td>"

    def as_markdown(self) -> str:
        """Its Markdown, all of it escaped."""
        content = markdown_cell(self.text)
        if self.best:
            content = f"**{content}**"
        if self.mark:
            content += f"<sup>{markdown_cell(self.mark)}</sup>"
        return content

    def as_text(self) -> str:
        """Its words."""
        printed = f"(printed {self.printed})" if self.printed else ""
        return " ".join(filter(None, [self.text, self.mark, printed]))


def _words(name: object) -> str:
    """A column's name as words: relevant_citations is no word."""
    return str(name).replace("_", " ")


def html_table(title: str, header: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """An HTML table under a caption, if it has one; every cell is escaped."""
    head = "".join(f"<th>{html.escape(_words(name))}</th>" for name in header)
    body = ""
    for row in rows:
        body += "<tr>"
        for value in row:
            cell = value if isinstance(value, Cell) else Cell(str(value))
            body += cell.as_html()
        body += "</tr>"
    caption = f"<caption>{html.escape(title)}</caption>" if title else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_list(notes: Sequence[str]) -> str:
    """An HTML list, empty where there is nothing to list; every entry is escaped."""
    if not notes:
        return ""
    return f"<ul>{''.join(f'<li>{html.escape(note)}</li>' for note in notes)}</ul>"


def _boxed(caption: str, content: str) -> str:
    """What stands in the box of a table, under its caption in bold type."""
    return f'<div class="equipoise-table"><p><b>{html.escape(caption)}.</b></p>{content}</div>'


@dataclass(frozen=True)
class Shown:
    """Something a notebook shows: its content by MIME type, and words about one of them."""

    formats: Mapping[str, str]
    said: Mapping[str, Mapping[str, str | int]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return self.formats.get("text/plain", "")

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> tuple[Any, Any]:  # noqa: ARG002
        return dict(self.formats), {kind: dict(words) for kind, words in self.said.items()}

    @classmethod
    def text(cls, words: str, markdown: str, page: str) -> Shown:
        """Something in words, in the three formats for words; nothing hidden in them is obeyed."""
        formats = {"text/plain": words, "text/markdown": markdown, "text/html": page}
        return cls({kind: plain(text) for kind, text in formats.items()})


_WIDTH_IN_PNG = slice(16, 20)
"""Where a PNG says how many pixels wide it is."""
CAPTION = {"equipoise": "caption"}
"""Metadata of the output that holds the caption of the figure before it."""
KEY_FIGURE = {"equipoise": "key figure"}
"""Metadata of a figure that stands beside the answer, though another cell draws it."""
DRAWN_HERE = {"equipoise": "drawn here"}
"""Metadata of an output of the cell that draws the key figure."""


class ShownFigure(Shown):
    """A figure, with its caption beneath: a notebook shows of an image the image alone."""

    @property
    def caption(self) -> dict[str, str]:
        """The caption, by MIME type."""
        words = self.formats["text/plain"]
        return {"text/plain": words, "text/markdown": f"*{markdown_cell(words)}*"}

    def _ipython_display_(self) -> None:
        from IPython.display import display

        formats, said = self._repr_mimebundle_()
        # IPython has no types.
        display(formats, metadata=said, raw=True)  # type: ignore[no-untyped-call]
        display(self.caption, metadata=CAPTION, raw=True)  # type: ignore[no-untyped-call]


def show_figure(caption: str, svg: str, png: bytes, alt: str) -> ShownFigure:
    """A figure as it is drawn, and as JupyterLab shows it in a notebook of others.

    It holds an SVG for unsafe until the notebook is trusted, as no new clone is.
    """
    formats = {
        "text/plain": caption,
        "image/svg+xml": svg,
        "image/png": base64.b64encode(png).decode(),
    }
    width = int.from_bytes(png[_WIDTH_IN_PNG], "big")
    shown_width = width * PAGE_RESOLUTION // PNG_RESOLUTION
    return ShownFigure(
        formats, {"image/svg+xml": {"alt": alt}, "image/png": {"alt": alt, "width": shown_width}}
    )


class KeyFigure:
    """A place where a notebook begins, for the figure of its answer, drawn further down."""

    def __init__(self) -> None:
        words = "The figure is drawn below."
        self._image = _display_handle("key figure")
        self._image.display({"text/plain": words, "text/markdown": words}, raw=True)
        self._caption = _display_handle("caption of the key figure")
        self._caption.display({"text/plain": ""}, metadata=CAPTION, raw=True)

    def show(self, figure: ShownFigure) -> None:
        """Put the figure there, and say so where it is drawn."""
        # IPython is not loaded by who measures alone.
        from IPython.display import display

        formats, said = figure._repr_mimebundle_()
        self._image.update(formats, metadata=said | KEY_FIGURE, raw=True)
        self._caption.update(figure.caption, metadata=CAPTION, raw=True)
        words = {"text/plain": "The figure stands at the top, beside the answer."}
        # IPython has no types.
        display(words, metadata=DRAWN_HERE, raw=True)  # type: ignore[no-untyped-call]


def _display_handle(name: str) -> Any:
    """A place of an output that is filled later; IPython has no types."""
    from IPython.display import DisplayHandle

    return DisplayHandle(name)  # type: ignore[no-untyped-call]


def _decimals(printed: Iterable[str], ours: pd.Series, digits: int) -> int | None:
    """Decimals to show a column at: the printed precision, else ``digits``; None without floats."""
    has_floats = any(isinstance(value, float) for value in ours)
    if not pd.api.types.is_float_dtype(ours) and not has_floats:
        return None
    decimals = []
    for text in printed:
        if PRINTED_FRACTION.fullmatch(text.strip()):
            return digits
        parsed = Printed.parse(text)
        if parsed.decimals is not None:
            decimals.append(parsed.decimals)
    return max(decimals, default=digits)


def _whole(column: pd.Series) -> bool:
    """Whether a column counts something, beyond yes and no."""
    if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        return False
    known = column.dropna()
    return bool((known % 1 == 0).all() and (known.abs() > 1).any())


def _cell(value: object, decimals: int | None, is_p_value: bool) -> str:
    """The text of a value: yes and no, counts as they are, other numbers at some decimals."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    number = as_number(value)
    if number is None or decimals is None or isinstance(value, (int, np.integer)):
        return raw(value)
    text = f"{number + 0.0:.{decimals}f}"
    if is_p_value and decimals and not text.strip("0."):
        return f"< .{1:0{decimals}}"  # no p is nothing
    if not text.strip("-0."):
        return text.lstrip("-")  # no negative zero
    return text


def difference_lines(differences: Iterable[Mapping[str, str]]) -> list[str]:
    """Cells that differ: those of one reason in one line, each without a reason in its own."""
    cells_by_reason: dict[tuple[str, int], list[str]] = {}
    for number, difference in enumerate(differences):
        computed = difference["ours"] or "nothing"
        cell = f"{difference['row']}, {difference['column']}: "
        cell += f"printed {difference['printed']}, computed {computed}"
        reason = difference["reason"]
        line = (reason, 0) if reason else ("", number)
        cells_by_reason.setdefault(line, []).append(cell)
    lines = []
    for (reason, _), cells in cells_by_reason.items():
        count = f"{len(cells)} cells: " if len(cells) > 1 else ""
        lines.append(f"{count}{'; '.join(cells)} ({reason or 'no reason is known'})")
    return lines


def reason_lines(differences: Iterable[Mapping[str, str]]) -> list[str]:
    """Why cells differ, and how many for each reason: the cells are marked where they stand."""
    counts = Counter(difference["reason"] for difference in differences)
    lines = []
    for reason, count in counts.items():
        cells = "1 cell differs" if count == 1 else f"{count} cells differ"
        lines.append(f"{cells}: {reason or 'no reason is known'}")
    return lines


def _mark_columns(table: pd.DataFrame) -> dict[str, str]:
    """The columns of marks of a table, by the name of the column that each marks."""
    marks = {}
    for column in table.columns:
        marked = str(column).removesuffix(MARKS)
        if str(column).endswith(MARKS) and marked in table:
            marks[marked] = column
    return marks


def _cells(
    table: pd.DataFrame,
    printed: Mapping[str, Iterable[str]],
    digits: int,
    differing: Mapping[tuple[int, int], str],
) -> tuple[list[str], list[list[Cell]]]:
    """Header and cells of a table; a mark stands raised behind the number that it belongs to."""
    mark_columns = _mark_columns(table)
    names = [name for name in table.columns if name not in mark_columns.values()]
    columns = []
    for name in names:
        values = table[name]
        place = table.columns.get_loc(name)
        decimals = None
        if name in printed or not _whole(values):
            decimals = _decimals(printed.get(name, ()), values, digits)
        is_number = values.dtype != bool and (
            pd.api.types.is_numeric_dtype(values) or decimals is not None
        )
        is_p_value = name not in printed and str(name).split(" ")[0] == "p"
        marks = table[mark_columns[name]] if name in mark_columns else [""] * len(table)
        cells = []
        for row, (value, mark) in enumerate(zip(values, marks, strict=True)):
            text = _cell(value, decimals, is_p_value)
            instead = differing.get((row, place), "")
            cells.append(Cell(text, raw(mark), instead, number=is_number))
        columns.append(cells)
    rows = [list(row) for row in zip(*columns, strict=True)]
    return [_words(name) for name in names], rows


def show_table(
    caption: str, ours: pd.DataFrame, comparison: Comparison | None, digits: int
) -> Shown:
    """A table; beside a printed one, each cell that differs is marked, what is printed beneath."""
    table, title = ours, markdown_cell(caption)
    printed: Mapping[str, Iterable[str]] = {}
    differing: dict[tuple[int, int], str] = {}
    verdict, notes, reasons = "", list[str](), list[str]()
    if comparison is not None:
        table, printed = comparison.ours, comparison.printed
        for difference in comparison.differences:
            row = table.index.get_loc(difference.row)
            column = table.columns.get_loc(difference.column)
            differing[row, column] = difference.printed
        equal = comparison.cells - len(differing)
        verdict = f"{equal} of {comparison.cells} printed cells agree at the printed precision."
        title = f"{title}. {verdict}"
        differences = [asdict(difference) for difference in comparison.differences]
        notes, reasons = difference_lines(differences), reason_lines(differences)
    columns, rows = _cells(table, printed, digits, differing)

    page = (
        f'<div class="equipoise-table"><p><b>{html.escape(caption)}.</b> {verdict}</p>'
        f'<div style="overflow-x: auto">{html_table("", columns, rows)}</div>'
        f"{html_list(reasons)}</div>"
    )
    markdown = f"{title}\n\n{markdown_table(columns, _texts(rows))}"
    if notes:
        markdown += "\n" + markdown_list(notes)
    words = "\n".join([f"{caption}. {verdict}".strip(), *notes])
    return Shown.text(words, markdown, page)


def _texts(rows: Iterable[Iterable[Cell]]) -> list[list[str]]:
    """The words of the cells of a table."""
    return [[cell.as_text() for cell in row] for row in rows]


def show_variant(
    caption: str, ours: pd.DataFrame, default: pd.DataFrame | None, variant: str, digits: int
) -> Shown:
    """A table made with other parameters than the paper's, beside the one made with the paper's."""
    tables = {variant: ours}
    if default is not None:
        tables["as published"] = default
    page, markdown = "", f"{markdown_cell(caption)}\n"
    for title, table in tables.items():
        columns, rows = _cells(table, {}, digits, {})
        page += html_table(title, columns, rows)
        markdown += f"\n{markdown_cell(title)}\n\n{markdown_table(columns, _texts(rows))}"
    side_by_side = "display: flex; flex-wrap: wrap; gap: 1em 2em; overflow-x: auto"
    page = _boxed(caption, f'<div style="{side_by_side}">{page}</div>')
    return Shown.text(f"{caption}, {variant}", markdown, page)


def show_words(caption: str, said: Iterable[tuple[str, str]]) -> Shown:
    """What is said and by whom, in lines as they stand; nothing in it is markup."""
    rows, paragraphs = "", []
    for speaker, text in said:
        lines = plain(text).split("\n")
        shown_lines = "<br>".join(map(html.escape, lines))
        rows += f"<tr><td><b>{html.escape(speaker)}</b></td><td>{shown_lines}</td></tr>"
        for line in lines:
            if line.strip():
                paragraphs.append(f"{markdown_cell(speaker)}: {markdown_cell(line)}")
    page = _boxed(caption, f"<table><tbody>{rows}</tbody></table>")
    markdown = f"{markdown_cell(caption)}\n\n" + "\n\n".join(paragraphs) + "\n"
    return Shown.text(f"{caption}.", markdown, page)


# A notebook has no style sheet, so a verdict brings its colours; the site sets its own.
_VERDICT_GROUNDS = {
    "holds": "#bfe3d0",
    "contradicted": "#f6cfc4",
    "undecided": "#fbe8b5",
    "not testable": "#e6e6e6",
}


def verdict_label(verdict: str) -> str:
    """A verdict in its colour, with the ink that can be read on it in a dark theme, too."""
    look = f"background: {_VERDICT_GROUNDS[verdict]}; color: #1a1a1a; padding: 0 .4em"
    return (
        f'<span class="verdict {verdict.replace(" ", "-")}" style="{look}">'
        f"{verdict.capitalize()}</span>"
    )


def show_claim(claim: Mapping[str, Any]) -> Shown:
    """A claim as one reads it: the verdict, what is said, and what is seen; the rest folds.

    What is no finding, or cannot be tested here, is folded whole. The page of claims has the data
    too.
    """
    words, numbers = claim["statement"], as_words(claim)
    label = f"{claim['verdict'].capitalize()} ({claim['kind']})"
    quote = claim["place"]
    if claim["quote"]:
        quote = f"“{claim['quote']}” ({claim['place']})"
    title = f"{verdict_label(claim['verdict'])} <b>{html.escape(words)}</b>"
    seen = html.escape(f"{claim['said']}: {interval_in_words(claim) or claim['reason']}")
    seen = f'<p class="numbers">{interval_mark(claim)} {seen}</p>'
    basis = f"<p>{html.escape(quote)}</p><p><i>{html.escape(numbers)}</i></p>"
    if claim["kind"] == "finding" and claim["verdict"] != "not testable":
        rest = f"<details><summary>The paper’s words, and the bound</summary>{basis}</details>"
        content = f"<p>{title}</p>{seen}{rest}"
    else:
        content = f"<details><summary>{title}</summary>{seen}{basis}</details>"
    page = f'<div class="claim {claim["verdict"].replace(" ", "-")}">{content}</div>'
    quoted = f"\n\n> {markdown_cell(quote)}" if quote else ""
    markdown = f"**{label}:** {markdown_cell(words)}{quoted}\n\n*{markdown_cell(numbers)}*"
    return Shown.text(f"{label}: {words} [{quote}] ({numbers})", markdown, page)


def show_untestable(claims: Sequence[Mapping[str, str]]) -> Shown:
    """Claims that cannot be tested here, by reason: how many and why; what they say folds."""
    by_reason: dict[str, list[Mapping[str, str]]] = {}
    for claim in claims:
        by_reason.setdefault(claim["reason"], []).append(claim)
    page, markdown, texts = "", "", []
    for reason, of_reason in by_reason.items():
        count = "One claim" if len(of_reason) == 1 else f"{len(of_reason)} claims"
        title = f"{count}: {reason.rstrip('.')}."
        page += f"<p>{verdict_label('not testable')} {html.escape(title)}</p>"
        markdown += f"\n\n**Not testable.** {markdown_cell(title)}\n"
        texts.append(f"Not testable. {title}")
        entries = ""
        for claim in of_reason:
            quote = f"“{claim['quote']}” ({claim['place']})" if claim["quote"] else claim["place"]
            entries += f"<li><b>{html.escape(claim['statement'])}</b><br>{html.escape(quote)}</li>"
            markdown += f"\n- {markdown_cell(claim['statement'])} {markdown_cell(quote)}"
        page += f"<details><summary>The claims, and the paper’s words</summary><ul>{entries}</ul>"
        page += "</details>"
    page = f'<div class="claim not-testable">{page}</div>'
    return Shown.text("\n".join(texts), markdown.strip(), page)


def folded(title: str, shown: Sequence[Shown]) -> Shown:
    """Tables behind a title that opens."""
    page = "".join(table.formats["text/html"] for table in shown)
    markdown = "".join(table.formats["text/markdown"] for table in shown)
    page = f"<details><summary>{html.escape(title)}</summary>{page}</details>"
    return Shown.text(title, f"{markdown_cell(title)}\n\n{markdown}", page)


def show_answer(sentences: Sequence[str]) -> Shown:
    """What a notebook has found; from three sentences on, a list follows the first."""
    listed = list(sentences[1:]) if len(sentences) > 2 else []
    text = sentences[0] if listed else " ".join(sentences)
    page = f"<p><b>Answer.</b> {html.escape(text)}</p>{html_list(listed)}"
    markdown = f"**Answer.** {markdown_cell(text)}\n\n{markdown_list(listed)}"
    return Shown.text(
        f"Answer. {' '.join(sentences)}", markdown, f'<div class="answer">{page}</div>'
    )


def show_summary(rows: Sequence[Sequence[object]], notes: Sequence[str], used: str) -> Shown:
    """What a notebook has regenerated: a row an artefact, the differences, and the versions."""
    header = ["Artefact", "Status", "Printed cells", "Differing", "Findings"]
    table = html_table("What this notebook regenerates", header, rows) if rows else ""
    made_with = f"<p>Made with {html.escape(used)}.</p>"
    page = f'<div class="equipoise-table">{table}{html_list(notes)}{made_with}</div>'
    markdown = f"{markdown_table(header, rows)}\n" if rows else ""
    markdown += f"{markdown_list(notes)}\nMade with {markdown_cell(used)}.\n"
    return Shown.text(f"Made with {used}", markdown, page)
