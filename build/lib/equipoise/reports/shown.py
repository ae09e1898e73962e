"""What a notebook shows: tables and figures as HTML, Markdown, SVG and plain text, text from data escaped."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from equipoise.reports.comparison import Comparison, Difference
from equipoise.reports.printed import PRINTED_FRACTION, Printed, as_number, is_blank, raw


VARIANT_VARIABLE = "EQUIPOISE_VARIANT"


def markdown_cell(text: object) -> str:
    """Text that Markdown shows as it stands: no markup, HTML, link or table cell ends in it."""
    escaped = html.escape(" ".join(str(text).split()), quote=False)
    return re.sub(r"([\\`*_\[\]|#~$])", r"\\\1", escaped)


def markdown_table(header: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table; every cell is escaped."""
    lines = [list(map(markdown_cell, header)), ["---"] * len(header), *(list(map(markdown_cell, row)) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


@dataclass(frozen=True)
class Shown:
    """Something a notebook shows, in as many formats as it has.

    ``formats``: Content by MIME type.
    """

    formats: Mapping[str, str]

    def __repr__(self) -> str:
        return self.formats.get("text/plain", "")

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:  # noqa: ARG002
        return dict(self.formats)


def _decimals(printed: pd.Series | None, ours: pd.Series, digits: int) -> int | None:
    """Decimals to show a column at: the printed precision, else ``digits``; None for what is no float."""
    if not pd.api.types.is_float_dtype(ours) and not any(isinstance(value, float) for value in ours):
        return None
    if printed is None:
        return digits
    shown = [parsed.decimals for text in printed if (parsed := Printed.parse(text)).decimals is not None]
    fractions = any(PRINTED_FRACTION.fullmatch(text.strip()) for text in printed)
    return digits if fractions else max(shown, default=digits)


def _cell(value: object, decimals: int | None) -> str:
    number = as_number(value)
    if is_blank(value) or number is None:
        return "" if is_blank(value) else str(value)
    if isinstance(value, (int, np.integer)) or decimals is None:
        return raw(value)
    text = f"{number + 0.0:.{decimals}f}"
    return text.lstrip("-") if not text.strip("-0.") else text


def html_table(title: str, table: pd.DataFrame, texts: list[list[str]], marked: set[tuple[int, int]]) -> str:
    head = "".join(f"<th>{html.escape(str(column))}</th>" for column in table.columns)
    body = []
    for row, cells in enumerate(texts):
        parts = []
        for column, cell in enumerate(cells):
            text = html.escape(cell)
            parts.append(f"<td><mark>≠ {text}</mark></td>" if (row, column) in marked else f"<td>{text}</td>")
        body.append(f"<tr>{''.join(parts)}</tr>")
    caption = f"<caption>{html.escape(title)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def difference_lines(differences: Sequence[Difference]) -> list[str]:
    variant = os.environ.get(VARIANT_VARIABLE)
    unknown = f"made with {variant}" if variant else "no reason is known"
    return [
        f"{d.row}, {d.column}: printed {d.printed}, computed {d.ours or 'nothing'} ({d.reason or unknown})"
        for d in differences
    ]


def show_table(caption: str, ours: pd.DataFrame, comparison: Comparison | None, digits: int) -> Shown:
    printed = comparison.printed if comparison is not None else None
    shown = comparison.ours if comparison is not None else ours
    decimals = [
        _decimals(printed[column] if printed is not None else None, shown[column], digits) for column in shown.columns
    ]
    texts = [
        [_cell(value, places) for value, places in zip(row, decimals, strict=True)]
        for row in shown.itertuples(index=False, name=None)
    ]
    marked: set[tuple[int, int]] = set()
    if comparison is None or printed is None:
        parts = [html_table("Computed", shown, texts, marked)]
        verdict, notes = "", []
        title = markdown_cell(caption)
        rows = texts
    else:
        labels = shown[list(comparison.keys)].map(raw).agg(" ".join, axis=1).tolist()
        columns = list(shown.columns)
        marked = {(labels.index(d.row), columns.index(d.column)) for d in comparison.differences}
        parts = [
            html_table("Computed", shown, texts, marked),
            html_table(f"Printed ({comparison.against})", shown, printed.to_numpy().tolist(), marked),
        ]
        equal = comparison.cells - len(comparison.differences)
        verdict = f"{equal} of {comparison.cells} printed cells agree at the printed precision."
        notes = difference_lines(comparison.differences)
        title = f"{markdown_cell(caption)}. {verdict}"
        rows = [
            [
                f"{cell} (printed {printed.iloc[row, column]})" if (row, column) in marked else cell
                for column, cell in enumerate(cells)
            ]
            for row, cells in enumerate(texts)
        ]
    listed = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
    page = (
        f'<div class="equipoise-table"><p><b>{html.escape(caption)}.</b> {verdict}</p>'
        f'<div style="display: flex; flex-wrap: wrap; gap: 1em 2em; align-items: flex-start; overflow-x: auto">'
        f"{''.join(parts)}</div>{f'<ul>{listed}</ul>' if listed else ''}</div>"
    )
    markdown = f"{title}\n\n{markdown_table(shown.columns.tolist(), rows)}"
    if notes:
        markdown += "\n" + "".join(f"- {markdown_cell(note)}\n" for note in notes)
    plain = "\n".join([f"{caption}. {verdict}".strip(), *notes])
    return Shown({"text/plain": plain, "text/markdown": markdown, "text/html": page})


def save_figure(figure: Figure, folder: Path, name: str, caption: str) -> str:
    """Save a figure as SVG and PNG, the same bytes at every run, and close it.

    ``folder``: Made if need be. ``name``: File name without ending; it also seeds the ids inside the SVG.
    ``caption``: Becomes the title inside the SVG. Returns: The SVG.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": name}):
        metadata = {"Date": None, "Creator": None, "Title": caption}
        figure.savefig(folder / f"{name}.svg", bbox_inches="tight", metadata=metadata)
        figure.savefig(folder / f"{name}.png", bbox_inches="tight", dpi=144, metadata={"Software": None})
    plt.close(figure)
    return (folder / f"{name}.svg").read_text(encoding="utf-8")
