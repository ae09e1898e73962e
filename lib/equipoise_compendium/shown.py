"""The outputs of a notebook: tables, figures and text as escaped HTML, Markdown and text."""

from __future__ import annotations

import base64
import html
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from equipoise_compendium.printed import (
    PRINTED_FRACTION,
    Comparison,
    Difference,
    Printed,
    as_number,
    raw,
)
from equipoise_compendium.terms import QUANTIFIERS, SOURCES, css_name
from equipoise_compendium.words import number, plain

MARKS = " better than"
"""End of the name of a column of marks, such as letters, for the column named before it."""
CAPTION = {"equipoise": "caption"}
"""Metadata of the output with the caption of the figure before it."""


# --- markup ---------------------------------------------------------------------------------------


def markdown_cell(text: object) -> str:
    """Escape text for Markdown, so that it contains no markup, HTML, link or cell border."""
    escaped = html.escape(plain(" ".join(str(text).split())), quote=False)
    return re.sub(r"([\\`*_\[\]|#~$])", r"\\\1", escaped)


def markdown_list(notes: Iterable[str]) -> str:
    """Write a Markdown list; every entry is escaped."""
    return "".join(f"- {markdown_cell(note)}\n" for note in notes)


def html_list(notes: Sequence[str]) -> str:
    """Write an HTML list of escaped entries; return "" without entries."""
    if not notes:
        return ""
    return f"<ul>{''.join(f'<li>{html.escape(note)}</li>' for note in notes)}</ul>"


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    ``mark``: a superscript after it. ``printed``: the published value, if it differs. ``number``:
    aligned to the right.
    """

    text: str
    mark: str = ""
    printed: str = ""
    number: bool = False

    def as_html(self) -> str:
        """Write its HTML."""
        content = html.escape(self.text)
        if self.mark:
            content += f"<sup>{html.escape(self.mark)}</sup>"
        if self.printed:
            published = html.escape(self.printed)
            content = f"<mark>≠ {content}</mark><br><small>published {published}</small>"
        return f'<td class="number">{content}</td>' if self.number else f"<td>{content}</td>"

    def as_markdown(self) -> str:
        """Write its Markdown."""
        parts = [markdown_cell(self.text), markdown_cell(self.mark)]
        if self.printed:
            parts.append(f"(published {markdown_cell(self.printed)})")
        return " ".join(filter(None, parts))


def _cells(row: Iterable[object]) -> list[Cell]:
    return [value if isinstance(value, Cell) else Cell(str(value)) for value in row]


def html_table(title: str, header: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """Write an HTML table, with its caption if it has one; every cell is escaped."""
    caption = f"<caption>{html.escape(title)}</caption>" if title else ""
    head = ""
    for name in header:
        tag = 'th scope="col"' if str(name) else "td"
        head += f"<{tag}>{html.escape(str(name).replace('_', ' '))}</{tag[:2]}>"
    body = ""
    for row in rows:
        body += f"<tr>{''.join(cell.as_html() for cell in _cells(row))}</tr>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def markdown_table(header: Sequence[object], rows: Iterable[Iterable[object]]) -> str:
    """Write a Markdown table; every cell is escaped."""
    lines = [[markdown_cell(name) for name in header], ["---"] * len(header)]
    for row in rows:
        lines.append([cell.as_markdown() for cell in _cells(row)])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


# --- what a cell shows ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Shown:
    """An output of a notebook: its content and its metadata, by MIME type."""

    formats: Mapping[str, str]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return self.formats.get("text/plain", "")

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> tuple[Any, Any]:  # noqa: ARG002
        return dict(self.formats), dict(self.metadata)

    @classmethod
    def text(
        cls, words: str, markdown: str, page: str, metadata: Mapping[str, Any] | None = None
    ) -> Shown:
        """Display text in the three text formats, without control characters."""
        formats = {"text/plain": words, "text/markdown": markdown, "text/html": page}
        return cls({kind: plain(text) for kind, text in formats.items()}, metadata or {})

    @classmethod
    def paragraph(cls, text: str) -> Shown:
        """Display a paragraph as plain text."""
        return cls.text(text, markdown_cell(text), f"<p>{html.escape(text)}</p>")


class ShownFigure(Shown):
    """A figure, followed by its caption as a separate output."""

    @property
    def caption(self) -> dict[str, str]:
        """Return the caption by MIME type."""
        words = self.formats["text/plain"]
        return {"text/plain": words, "text/markdown": f"*{markdown_cell(words)}*"}

    def _ipython_display_(self) -> None:
        import IPython.display

        display: Any = IPython.display.display  # IPython has no types
        display(dict(self.formats), metadata=dict(self.metadata), raw=True)
        display(self.caption, metadata=CAPTION, raw=True)


def show_figure(name: str, caption: str, png: bytes, alt: str) -> ShownFigure:
    """Display a figure at 144 dots per inch; ``name`` is the name of its file."""
    width = int.from_bytes(png[16:20], "big")  # where a PNG says how wide it is
    formats = {"text/plain": caption, "image/png": base64.b64encode(png).decode()}
    sizes = {"alt": alt, "width": width * 96 // 144}  # a page has 96 pixels per inch
    return ShownFigure(formats, {"image/png": sizes, "equipoise": {"figure": name}})


def top_of_page() -> tuple[KeyFigure, Any]:
    """Display placeholders for answer, key figure and table; return figure and table.

    The notebook computes them below: it calls ``Report.answer`` with the sentences, ``show`` of the
    figure, and ``update`` of the table.
    """
    import IPython.display

    handle: Any = IPython.display.DisplayHandle  # IPython has no types
    handle("answer").display(show_answer(["It is computed below."]))
    figure = KeyFigure()
    table = handle("table of the answer")
    table.display({"text/plain": "The table is computed below."}, raw=True)
    return figure, table


class KeyFigure:
    """A placeholder at the top of a notebook for the figure of its answer, drawn later."""

    def __init__(self) -> None:
        import IPython.display

        handle: Any = IPython.display.DisplayHandle  # IPython has no types
        words = "The figure is drawn below."
        self._image = handle("key figure")
        self._image.display({"text/plain": words, "text/markdown": words}, raw=True)
        self._caption = handle("caption of the key figure")
        self._caption.display({"text/plain": ""}, metadata=CAPTION, raw=True)

    def show(self, figure: ShownFigure) -> None:
        """Display the figure at the top, and a note where the code draws it."""
        import IPython.display

        self._image.update(dict(figure.formats), metadata=dict(figure.metadata), raw=True)
        self._caption.update(figure.caption, metadata=CAPTION, raw=True)
        words = "This code draws the figure at the top, next to the answer."
        display: Any = IPython.display.display  # IPython has no types
        display({"text/plain": words}, raw=True)


# --- tables ---------------------------------------------------------------------------------------


def _decimals(printed: Iterable[str], column: pd.Series, digits: int) -> int | None:
    """Return the decimals of a column: published precision, else ``digits``; None: no floats."""
    has_floats = any(isinstance(value, float) for value in column)
    if not pd.api.types.is_float_dtype(column) and not has_floats:
        return None
    decimals = []
    for text in printed:
        if PRINTED_FRACTION.fullmatch(text.strip()):
            return digits
        parsed = Printed.parse(text)
        if parsed.decimals is not None:
            decimals.append(parsed.decimals)
    return max(decimals, default=digits)


def _is_count(column: pd.Series) -> bool:
    """Return whether a column has counts other than yes and no."""
    if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        return False
    known = column.dropna()
    return bool((known % 1 == 0).all() and (known.abs() > 1).any())


def _text(value: object, decimals: int | None, is_p_value: bool) -> str:
    """Write a value as text: yes or no, an unchanged count, or a number with some decimals."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    parsed = as_number(value)
    if parsed is None:
        return raw(value)
    if decimals is None or isinstance(value, (int, np.integer)):
        return number(parsed, 0) if parsed % 1 == 0 else raw(value).replace("-", "−")
    text = number(parsed, decimals)
    if is_p_value and decimals and not text.strip("0."):
        return f"< 0.{1:0{decimals}}"  # no p is zero
    return text


def _rows(
    table: pd.DataFrame, digits: int, comparison: Comparison | None = None
) -> tuple[list[str], list[list[Cell]]]:
    """Return the header and cells of a table; a mark is a superscript of its number."""
    published: Mapping[str, Iterable[str]] = {}
    differing = {}
    if comparison is not None:
        published = comparison.printed
        for difference in comparison.differences:
            differing[difference.row, difference.column] = difference.printed
    mark_columns = {f"{name}{MARKS}": name for name in table if f"{name}{MARKS}" in table}
    names = [name for name in table if name not in mark_columns]
    columns = []
    for name in names:
        column = table[name]
        decimals = None
        if name in published or not _is_count(column):
            decimals = _decimals(published.get(name, ()), column, digits)
        is_number = column.dtype != bool and (
            pd.api.types.is_numeric_dtype(column) or decimals is not None
        )
        is_p_value = name not in published and str(name).split(" ")[0] == "p"
        separates = any("," in str(cell) for cell in published.get(name, ()))
        marks = table.get(f"{name}{MARKS}", [""] * len(table))
        cells = []
        for row, value, mark in zip(table.index, column, marks, strict=True):
            text = _text(value, decimals, is_p_value)
            if separates and text.isdigit():  # thousands as in the published column
                text = f"{int(text):,}"
            cells.append(Cell(text, raw(mark), differing.get((row, name), ""), number=is_number))
        columns.append(cells)
    return [str(name).replace("_", " ") for name in names], list(map(list, zip(*columns)))  # noqa: B905


def difference_lines(differences: Iterable[Difference]) -> list[str]:
    """Count the cells that differ for each reason, and name those without a reason."""
    counts = Counter(difference.reason for difference in differences)
    lines = []
    for reason, count in counts.items():
        cells = "1 cell differs" if count == 1 else f"{count} cells differ"
        if reason:
            lines.append(f"{cells}: {reason}")
    for each in differences:
        if not each.reason:
            lines.append(
                f"{each.row}, {each.column}: published {each.printed}, "
                f"computed {each.ours or 'nothing'} (no reason is known)"
            )
    return lines


def _boxed(name: str, caption: str, verdict: str, content: str, notes: Sequence[str] = ()) -> str:
    """Write the box of a table, with an id by which the site adds links to the files."""
    anchor = f' id="{html.escape(name)}"' if name else ""
    head = f"<p><b>{html.escape(caption)}.</b> {verdict}</p>"
    return f'<div class="equipoise-table"{anchor}>{head}{content}{html_list(notes)}</div>'


def show_table(
    name: str, caption: str, ours: pd.DataFrame, comparison: Comparison | None, digits: int
) -> Shown:
    """Display a table; mark each cell that differs from a published table."""
    table, verdict, notes = ours, "", list[str]()
    if comparison is not None:
        table = comparison.ours
        equal = comparison.cells - len(comparison.differences)
        verdict = f"{equal} of {comparison.cells} published cells agree at the published precision."
        notes = difference_lines(comparison.differences)
    header, rows = _rows(table, digits, comparison)
    content = f'<div style="overflow-x: auto">{html_table("", header, rows)}</div>'
    title = f"{markdown_cell(caption)}. {verdict}".strip()
    markdown = f"{title}\n\n{markdown_table(header, rows)}"
    if notes:
        markdown += f"\n{markdown_list(notes)}"
    words = "\n".join([f"{caption}. {verdict}".strip(), *notes])
    return Shown.text(words, markdown, _boxed(name, caption, verdict, content, notes))


def show_variant(
    caption: str, ours: pd.DataFrame, default: pd.DataFrame | None, variant: str, digits: int
) -> Shown:
    """Display a table made with other parameters, next to the committed table."""
    tables = {variant: ours}
    if default is not None:
        tables["default parameters"] = default
    page, markdown = "", f"{markdown_cell(caption)}\n"
    for title, table in tables.items():
        header, rows = _rows(table, digits)
        page += html_table(title, header, rows)
        markdown += f"\n{markdown_cell(title)}\n\n{markdown_table(header, rows)}"
    style = "display: flex; flex-wrap: wrap; gap: 1em 2em; overflow-x: auto"
    page = _boxed("", caption, "", f'<div style="{style}">{page}</div>')
    return Shown.text(f"{caption}, {variant}", markdown, page)


def show_words(name: str, caption: str, said: Iterable[tuple[str, str]]) -> Shown:
    """Display utterances by speaker, line by line, as plain text."""
    rows, paragraphs = "", []
    for speaker, text in said:
        lines = plain(text).split("\n")
        content = "<br>".join(map(html.escape, lines))
        rows += f"<tr><td><b>{html.escape(speaker)}</b></td><td>{content}</td></tr>"
        for line in filter(str.strip, lines):
            paragraphs.append(f"{markdown_cell(speaker)}: {markdown_cell(line)}")
    page = _boxed(name, caption, "", f"<table><tbody>{rows}</tbody></table>")
    markdown = f"{markdown_cell(caption)}\n\n" + "\n\n".join(paragraphs) + "\n"
    return Shown.text(f"{caption}.", markdown, page)


# --- claims, answer, summary ----------------------------------------------------------------------

# A notebook has no style sheet, so a verdict brings its colours; the site sets its own.
_VERDICT_GROUNDS = {
    "supported": "#bfe3d0",
    "contradicted": "#f6cfc4",
    "inconclusive": "#fbe8b5",
    "not testable": "#e6e6e6",
    "evidence": "#e6e6e6",
    "positive control": "#e6e6e6",
}
CLAIM_COLUMNS = [
    "Data",
    "Basis",
    "Parts that meet it",
    "Decisive part",
    "Estimate",
    "95% CI",
    "n",
    "Published",
    "p (Holm)",
    "Result",
]
"""Header of the evidence on a claim, once all reports are built; before, p is not corrected."""
_CONTROL_RESULTS = {
    "supports": "passed",
    "imprecise": "failed (imprecise)",
    "contradicts": "failed",
}


def verdict_label(verdict: str) -> str:
    """Write a verdict in its colour, which is readable in a dark theme too."""
    look = f"background: {_VERDICT_GROUNDS[verdict]}; color: #1a1a1a; padding: 0 .4em"
    return f'<span class="verdict {css_name(verdict)}" style="{look}">{verdict.capitalize()}</span>'


def _quoted(claim: Mapping[str, Any]) -> str:
    """Return the quotation and its place."""
    if claim["quote"]:
        return f"“{claim['quote']}” ({claim['place']})"
    return _as_sentences(str(claim["place"]))


def _decimals_of(row: Mapping[str, Any]) -> int:
    """Return the decimals that show two digits of an interval, or 4 without an interval."""
    low, high, estimate = row["low"], row["high"], abs(row["estimate"])
    width = estimate / 100 if low is None else high - low
    if width == 0:
        return 0 if estimate == round(estimate) else 3
    return min(max(1 - math.floor(math.log10(width)), 0), 8)


def _p_value(row: Mapping[str, Any]) -> str:
    """Write the p-value after Holm's correction, or before it where there is no other."""
    p_value = row.get("p_holm")
    if p_value is None:
        p_value = row.get("p_value")
    if p_value is None:
        return ""
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def claim_cells(row: Mapping[str, Any]) -> list[str]:
    """Write the evidence on a claim from one collection, in the columns `CLAIM_COLUMNS`."""
    first = [str(row["collection"]), str(row["basis"])]
    if row["estimate"] is None:
        return [*first, "", str(row["part"]), "", "", "", "", "", f"not testable: {row['reason']}"]
    decimals = _decimals_of(row)
    interval, published = "", ""
    if row["low"] is not None:
        interval = f"[{number(row['low'], decimals)}, {number(row['high'], decimals)}]"
    if row["published"] is not None:
        published = number(row["published"], decimals)
    result = row.get("result") or ""
    if row["kind"] == "positive control":
        result = _CONTROL_RESULTS.get(result, result)
    return [
        *first,
        f"{row['met']:.0f} of {row['parts']:.0f}",
        str(row["part"]),
        number(row["estimate"], decimals),
        interval,
        "" if row["n"] is None else f"{row['n']:,.0f} {row['counted']}".strip(),
        published,
        _p_value(row),
        result,
    ]


def claim_table(
    rows: Sequence[Mapping[str, Any]],
) -> tuple[list[str], list[list[str]]]:
    """Return header and lines of the evidence on a claim, without columns that are empty."""
    lines = [claim_cells(row) for row in rows]
    used = [at for at in range(len(CLAIM_COLUMNS)) if any(line[at] for line in lines)]
    header = [CLAIM_COLUMNS[at] for at in used]
    if not any("p_holm" in row for row in rows):
        header = [name.removesuffix(" (Holm)") for name in header]
    return header, [[line[at] for at in used] for line in lines]


def claim_label(claim: Mapping[str, Any]) -> str:
    """Return the verdict on a claim; a control has none, because each collection counts alone."""
    if claim["kind"] == "positive control":
        return "positive control"
    return claim.get("verdict") or "evidence"


def claim_anchor(claim: Mapping[str, Any]) -> str:
    """Return the anchor of a claim, on the page of its notebook and among all claims."""
    return f"claim-{claim['paper']}-{claim['claim']}"


def claim_details(claim: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the protocol of a claim as terms and their values."""
    unit = "" if claim["unit"] == "1" else f" ({claim['unit']})"
    quantifier = f"{claim['quantifier']} ({QUANTIFIERS[claim['quantifier']]})"
    criterion = claim["criterion"].replace("-", "−")
    if criterion:
        criterion += f" ({SOURCES[claim['bound_source']]})"
    details = [
        ("Claim", f"{claim['paper']}/{claim['claim']}"),
        ("Quotation", _quoted(claim)),
        ("Measure", _as_sentences(claim["measure"], unit)),
        ("Quantifier", quantifier),
        ("Criterion", criterion),
        ("Null distribution", _as_sentences(claim["null"])),
        ("Positive control", "" if claim["control"] == "none" else claim["control"]),
    ]
    rows = claim["evidence"]
    judged = [row for row in rows if row["estimate"] is not None]
    reasons = {row["reason"]: None for row in judged if row["reason"]}
    details.append(("No interval", ", ".join(reasons).replace(": ", ", ")))
    if claim["kind"] != "positive control":
        details.append(("Why inconclusive", claim.get("verdict_reason") or ""))
    needed = [f"{row['n_needed']:,.0f}" for row in rows if row.get("n_needed")]
    details.append(("Required sample size (80% power)", ", ".join(needed)))
    return [(term, text) for term, text in details if text]


def _as_sentences(text: str, unit: str = "") -> str:
    """Write the parts of a cell of the protocol, separated by semicolons, as sentences."""
    first, *rest = text.replace(": ", ", ").split("; ")
    return ". ".join([first + unit, *(part[:1].upper() + part[1:] for part in rest)])


def show_claim(claim: Mapping[str, Any]) -> Shown:
    """Display a claim: verdict, statement, evidence per collection, and its folded protocol.

    ``evidence`` are its rows. A claim has no verdict until all reports of the paper are built,
    because Holm's correction needs all of them.
    """
    statement, verdict = str(claim["statement"]), claim_label(claim)
    header, lines = claim_table(claim["evidence"])
    details = claim_details(claim)
    anchor = claim_anchor(claim)
    listed = "".join(
        f"<dt>{html.escape(term)}</dt><dd>{html.escape(text)}</dd>" for term, text in details
    )
    page = (
        f'<div class="claim {css_name(verdict)}" id="{html.escape(anchor)}">'
        f"<p>{verdict_label(verdict)} <b>{html.escape(statement)}</b></p>"
        f'<div style="overflow-x: auto">{html_table("", header, lines)}</div>'
        f"<details><summary>Quotation and criterion</summary><dl>{listed}</dl></details></div>"
    )
    label = f"{verdict.capitalize()} ({claim['kind']})"
    markdown = f"**{label}:** {markdown_cell(statement)}\n\n{markdown_table(header, lines)}"
    markdown += "".join(f"\n- {term}: {markdown_cell(text)}" for term, text in details)
    words = [f"{label}: {statement}"]
    words += [", ".join(filter(None, line)) for line in lines]
    name = f"{claim['paper']}/{claim['claim']}"
    return Shown.text("\n".join(words), markdown, page, {"equipoise-claim": name})


def show_untestable(claims: Sequence[Mapping[str, str]]) -> Shown:
    """Display claims that cannot be tested here, by reason, with folded statements."""
    by_reason: dict[str, list[Mapping[str, str]]] = {}
    for claim in claims:
        by_reason.setdefault(claim["reason"], []).append(claim)
    page, markdown, texts = "", "", []
    for reason, claims_of_reason in by_reason.items():
        count = "One claim" if len(claims_of_reason) == 1 else f"{len(claims_of_reason)} claims"
        title = f"{count}: {reason.rstrip('.')}."
        page += f"<p>{verdict_label('not testable')} {html.escape(title)}</p>"
        markdown += f"\n\n**Not testable.** {markdown_cell(title)}\n"
        texts.append(f"Not testable. {title}")
        entries = ""
        for claim in claims_of_reason:
            statement, quote = claim["statement"], _quoted(claim)
            entries += f"<li><b>{html.escape(statement)}</b><br>{html.escape(quote)}</li>"
            markdown += f"\n- {markdown_cell(statement)} {markdown_cell(quote)}"
        page += f"<details><summary>The claims and their quotations</summary><ul>{entries}</ul>"
        page += "</details>"
    page = f'<div class="claim not-testable">{page}</div>'
    return Shown.text("\n".join(texts), markdown.strip(), page)


def show_answer(sentences: Sequence[str]) -> Shown:
    """Display the answer of a notebook; with three or more sentences, as a list after the first."""
    listed = list(sentences[1:]) if len(sentences) > 2 else []
    text = sentences[0] if listed else " ".join(sentences)
    page = f"<p><b>Answer.</b> {html.escape(text)}</p>{html_list(listed)}"
    markdown = f"**Answer.** {markdown_cell(text)}\n\n{markdown_list(listed)}"
    return Shown.text(
        f"Answer. {' '.join(sentences)}", markdown, f'<div class="answer">{page}</div>'
    )


def show_summary(rows: Sequence[Sequence[object]]) -> Shown:
    """Display the artefacts that a notebook has regenerated, one per row."""
    if not rows:
        return Shown.paragraph("This notebook regenerates no table or figure of a paper.")
    header = ["Artefact", "Status", "Published cells", "Differing", "Claims"]
    table = html_table("What this notebook regenerates", header, rows)
    words = f"{len(rows)} tables and figures regenerated"
    page = f'<div class="equipoise-table">{table}</div>'
    return Shown.text(words, markdown_table(header, rows), page)
