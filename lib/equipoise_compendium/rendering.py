"""The outputs of a notebook: tables, figures and text, as escaped HTML and as plain text.

The macros of ``rendering.html`` write the HTML, in a notebook and on the pages of the site. The
metadata of an output says which macro wrote it, by `made_by`, so that a page can call it again.
"""

from __future__ import annotations

import base64
import html
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from equipoise.errors import plain
from equipoise_compendium.formatting import decimals_of, number
from equipoise_compendium.printed import (
    PRINTED_FRACTION,
    Comparison,
    Difference,
    Printed,
    as_number,
    raw,
)
from equipoise_compendium.terms import QUANTIFIERS, SOURCES, css_name

if TYPE_CHECKING:
    import jinja2

TEMPLATES = Path(__file__).parent / "site" / "templates"
MARKS = " better than"
"""End of the name of a column of marks, such as letters, for the column named before it."""
CAPTION = {"equipoise": "caption"}
"""Metadata of the output with the caption of the figure before it."""
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])+)\]\(#([\w.-]+)\)")
"""A link in a sentence, such as ``[0.75 [0.72, 0.77]](#own_table)``: its words and its anchor."""


# --- markup ---------------------------------------------------------------------------------------


def markdown_cell(text: object) -> str:
    """Escape text for Markdown, so that it contains no markup, HTML, link or cell border."""
    escaped = html.escape(plain(" ".join(str(text).split())), quote=False)
    return re.sub(r"([\\`*_\[\]|#~$])", r"\\\1", escaped)


def markdown_table(header: Sequence[object], rows: Iterable[Iterable[object]]) -> str:
    """Write a Markdown table; every cell is escaped."""
    lines = [[markdown_cell(name) for name in header], ["---"] * len(header)]
    lines += [list(map(markdown_cell, row)) for row in rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def linked(sentence: str, places: Mapping[tuple[str, ...], str] | None = None) -> Markup:
    """Write a sentence as HTML; each `LINK` leads to its anchor, or to the place of the link."""
    first, *parts = LINK.split(plain(sentence))
    written = escape(first)
    for link, text in zip(zip(parts[::3], parts[1::3], strict=True), parts[2::3], strict=True):
        place = (places or {}).get(link, link[1])
        written += Markup('<a href="#{}">{}</a>{}').format(place, link[0], text)
    return written


def environment(*folders: Path, in_notebook: bool) -> jinja2.Environment:
    """Return the environment of the templates, and of those in other folders."""
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader([TEMPLATES, *folders]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    # Control characters in text of data and models are escaped; markup was clean before.
    made.finalize = lambda value: plain(value) if type(value) is str else value
    made.filters |= {"css": css_name, "linked": linked}
    made.globals |= {
        "in_notebook": in_notebook,
        "claim_anchor": claim_anchor,
        "claim_answers": claim_answers,
        "claim_details": claim_details,
        "claim_table": claim_table,
    }
    return made


@cache
def macros(*, in_notebook: bool) -> Any:
    """Return the macros of ``rendering.html``, for a notebook or for a page of the site."""
    return environment(in_notebook=in_notebook).get_template("rendering.html").module


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
    def text(cls, words: str, macro: str, values: Mapping[str, Any], named: object = None) -> Shown:
        """Display text, without control characters; ``macro`` writes the HTML.

        The metadata keeps the values, or ``named`` where a page looks the values up by it.
        """
        page = getattr(macros(in_notebook=True), macro)(**values)
        texts = {"text/plain": plain(words), "text/html": plain(page)}
        kept = values if named is None else named
        return cls(texts, {"equipoise": {macro: kept}})

    @classmethod
    def paragraph(cls, text: str) -> Shown:
        """Display a paragraph as plain text."""
        return cls.text(text, "paragraph", {"text": text})


def made_by(output: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the macro that wrote an output of a notebook, and its values; else "" and None."""
    about = output.get("metadata", {}).get("equipoise", "")
    return next(iter(about.items())) if isinstance(about, dict) else (about, None)


class ShownFigure(Shown):
    """A figure, followed by its caption as a separate output."""

    @property
    def caption(self) -> dict[str, str]:
        """Return the caption by MIME type."""
        words = self.formats["text/plain"]
        return {"text/plain": words, "text/html": f"<em>{html.escape(plain(words))}</em>"}

    def _ipython_display_(self) -> None:
        import IPython.display

        display: Any = IPython.display.display  # IPython has no types
        display(dict(self.formats), metadata=dict(self.metadata), raw=True)
        display(self.caption, metadata=CAPTION, raw=True)


def show_figure(name: str, caption: str, png: bytes, alt: str) -> ShownFigure:
    """Display a figure at 120 dots per inch; ``name`` is the name of its file."""
    width = int.from_bytes(png[16:20], "big")  # where a PNG says how wide it is
    formats = {"text/plain": caption, "image/png": base64.b64encode(png).decode()}
    sizes = {"alt": alt, "width": width * 96 // 120}  # a page has 96 pixels per inch
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
        self._image.display({"text/plain": words}, raw=True)
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


def _grid(
    table: pd.DataFrame, digits: int, comparison: Comparison | None = None
) -> dict[str, list[Any]]:
    """Return the header and rows of a table as text, and which columns are numbers.

    A cell with a mark, a superscript, or with another published value is a mapping.
    """
    published: Mapping[str, Iterable[str]] = {}
    differing = {}
    if comparison is not None:
        published = comparison.printed
        for difference in comparison.differences:
            differing[difference.row, difference.column] = difference.printed
    mark_columns = {f"{name}{MARKS}": name for name in table if f"{name}{MARKS}" in table}
    names = [name for name in table if name not in mark_columns]
    columns, numbers = [], []
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
            about = {"text": text, "mark": raw(mark), "printed": differing.get((row, name), "")}
            cells.append(about if about["mark"] or about["printed"] else text)
        columns.append(cells)
        numbers.append(bool(is_number))
    header = [str(name).replace("_", " ") for name in names]
    rows = list(map(list, zip(*columns, strict=True)))
    return {"header": header, "numbers": numbers, "rows": rows}


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


def show_table(
    name: str,
    caption: str,
    ours: pd.DataFrame,
    comparison: Comparison | None,
    digits: int,
    verdict: str = "",
) -> Shown:
    """Display a table; mark and list each cell that differs from a published table.

    ``verdict`` is the sentence after the caption if there is no comparison.
    """
    table, notes = ours, list[str]()
    if comparison is not None:
        table = comparison.ours
        equal = comparison.cells - len(comparison.differences)
        verdict = f"{equal} of {comparison.cells} published cells agree at the published precision."
        notes = difference_lines(comparison.differences)
    values = {"name": name, "caption": caption, "verdict": verdict, "notes": notes}
    words = [f"{caption}. {verdict}".strip(), *notes]
    return Shown.text("\n".join(words), "table", {**values, **_grid(table, digits, comparison)})


def show_variant(
    caption: str, ours: pd.DataFrame, default: pd.DataFrame | None, variant: str, digits: int
) -> Shown:
    """Display a table made with other parameters, next to the committed table."""
    tables = {variant: ours}
    if default is not None:
        tables["default parameters"] = default
    grids = {title: _grid(table, digits) for title, table in tables.items()}
    values = {"caption": caption, "tables": grids}
    return Shown.text(f"{caption}, {variant}", "variant", values)


def show_words(name: str, caption: str, said: Iterable[tuple[str, str]]) -> Shown:
    """Display utterances by speaker, line by line, as plain text."""
    by_line = [[speaker, plain(text).split("\n")] for speaker, text in said]
    words = [f"{speaker}: {line}" for speaker, lines in by_line for line in lines if line.strip()]
    values = {"name": name, "caption": caption, "said": by_line}
    return Shown.text("\n".join([f"{caption}.", *words]), "words", values)


# --- claims, answer, summary ----------------------------------------------------------------------

CLAIM_COLUMNS = [
    "Data",
    "Basis",
    "Parts that meet it",
    "Part",
    "Estimate",
    "95% CI",
    "n",
    "Published",
    "p",
    "Result",
]
"""Header of the evidence on a claim."""


def _quoted(claim: Mapping[str, Any]) -> str:
    """Return the quotation and its place."""
    if claim["quote"]:
        return f"“{claim['quote']}” ({claim['place']})"
    return _as_sentences(str(claim["place"]))


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
        return [*first, "", str(row["part"]), "", "", "", "", "", f"not computed: {row['reason']}"]
    decimals = decimals_of(row)
    interval, published = "", ""
    if row["low"] is not None:
        interval = f"[{number(row['low'], decimals)}, {number(row['high'], decimals)}]"
    if row["published"] is not None:
        published = number(row["published"], decimals)
    return [
        *first,
        f"{row['met']:.0f} of {row['parts']:.0f}" if row.get("parts") else "",
        str(row["part"]),
        number(row["estimate"], decimals),
        interval,
        "" if row["n"] is None else f"{row['n']:,.0f} {row['counted']}".strip(),
        published,
        _p_value(row),
        str(row.get("result") or ""),
    ]


def claim_table(
    rows: Sequence[Mapping[str, Any]],
) -> tuple[list[str], list[list[str]]]:
    """Return header and lines of the evidence on a claim, without columns that are empty."""
    lines = [claim_cells(row) for row in rows]
    used = [at for at in range(len(CLAIM_COLUMNS)) if any(line[at] for line in lines)]
    return [CLAIM_COLUMNS[at] for at in used], [[line[at] for at in used] for line in lines]


def claim_answers(claim: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return what a claim answers: the question, the answer, and the numbers or the reason.

    A finding has two answers, a consistency check one, an additional analysis and a control none.
    A notebook has no answers before all reports are built, because Holm's correction needs all.
    """
    if claim["kind"] == "finding":
        questions = {"in the paper": "in_paper", "elsewhere": "elsewhere"}
    elif claim["kind"] == "consistency check":
        questions = {"check": "in_paper"}
    else:
        questions = {}
    answers = []
    for question, column in questions.items():
        if claim.get(column):
            answers.append((question, claim[column], claim[f"{column}_reason"]))
    return answers


def claim_anchor(claim: Mapping[str, Any]) -> str:
    """Return the anchor of a claim, on the page of its notebook and among all claims."""
    return f"claim-{claim['paper']}-{claim['claim']}"


def claim_details(claim: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the protocol of a claim as terms and their values."""
    unit = "" if claim["unit"] == "1" else f" ({claim['unit']})"
    quantifier = claim["quantifier"]
    if quantifier:
        quantifier += f" ({QUANTIFIERS[quantifier]})"
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
    details.append(("Seen before the criterion", claim["seen"]))
    needed = [f"{row['n_needed']:,.0f}" for row in rows if row.get("n_needed")]
    details.append(("Required sample size (80% power)", ", ".join(needed)))
    return [(term, text) for term, text in details if text]


def _as_sentences(text: str, unit: str = "") -> str:
    """Write the parts of a cell of the protocol, separated by semicolons, as sentences."""
    first, *rest = text.replace(": ", ", ").split("; ")
    return ". ".join([first + unit, *(part[:1].upper() + part[1:] for part in rest)])


def show_claim(claim: Mapping[str, Any]) -> Shown:
    """Display a claim: answers, statement, evidence per collection, and its folded protocol.

    ``evidence`` are its rows.
    """
    statement = str(claim["statement"])
    _, lines = claim_table(claim["evidence"])
    label = str(claim["kind"]).capitalize()
    words = [f"{label}: {statement}"]
    words += [", ".join(filter(None, line)) for line in lines]
    name = f"{claim['paper']}/{claim['claim']}"
    return Shown.text("\n".join(words), "claim", {"claim": claim}, name)


def show_answer(sentences: Sequence[str]) -> Shown:
    """Display the answer of a notebook; with three or more sentences, as a list after the first.

    A number may be a `LINK` to the table or claim that has it.
    """
    values = {"sentences": list(sentences)}
    words = LINK.sub(r"\1", f"Answer. {' '.join(sentences)}")
    return Shown.text(words, "answer", values)


def show_summary(rows: Sequence[Sequence[object]]) -> Shown:
    """Display the artefacts that a notebook has regenerated, one per row."""
    if not rows:
        return Shown.paragraph("This notebook regenerates no table or figure of a paper.")
    header = ["Artefact", "Status", "Published cells", "Differing", "Claims"]
    words = f"{len(rows)} tables and figures regenerated"
    values = {"title": "What this notebook regenerates", "header": header, "rows": rows}
    return Shown.text(words, "summary", values)
