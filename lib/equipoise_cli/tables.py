"""Tables and figures as a command gives them: text to read, CSV, LaTeX or Markdown; SVG or PNG."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

FIGURES = (".svg", ".png", ".pdf")

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
}
_TO_LATEX = str.maketrans(_LATEX)


def _cell(value: Any, column: str) -> str:
    """A value as it is shown: numbers at four digits, NaN as nothing."""
    if not isinstance(value, float):
        return str(value)
    if math.isnan(value):
        return ""
    # A p that is not 0 is not shown as 0.
    if column.startswith("p") and 0 <= value < 0.00005:
        return "< 0.0001"
    return f"{value:.4f}"


def _rows(table: Any) -> list[list[str]]:
    """The cells of each row, as they are shown."""
    rows = []
    for values in table.itertuples(index=False):
        cells = zip(values, table.columns, strict=True)
        rows.append([_cell(value, column) for value, column in cells])
    return rows


def _is_number(table: Any) -> list[bool]:
    """Whether each column holds numbers."""
    return [getattr(dtype, "kind", "") in "if" for dtype in table.dtypes]


def as_text(table: Any) -> str:
    """Columns side by side, numbers to the right."""
    from equipoise.problems import plain

    columns = []
    rows = [list(map(str, table.columns)), *_rows(table)]
    for texts, is_number in zip(zip(*rows, strict=True), _is_number(table), strict=True):
        # Escaped before they are measured, or a control character would shift its line.
        cells = [plain(text) for text in texts]
        width = max(map(len, cells))
        adjust = str.rjust if is_number else str.ljust
        columns.append([adjust(cell, width) for cell in cells])
    lines = ["  ".join(cells).rstrip() for cells in zip(*columns, strict=True)]
    return "\n".join(lines) + "\n"


def as_latex(table: Any) -> str:
    """A LaTeX tabular with the rules of booktabs; every cell is escaped."""
    lines = []
    for cells in [list(map(str, table.columns)), *_rows(table)]:
        escaped = [cell.translate(_TO_LATEX) for cell in cells]
        lines.append(" & ".join(escaped) + r" \\")
    alignment = ""
    for is_number in _is_number(table):
        alignment += "r" if is_number else "l"
    header, *body = lines
    lines = [
        f"\\begin{{tabular}}{{{alignment}}}",
        "\\toprule",
        header,
        "\\midrule",
        *body,
        "\\bottomrule",
        "\\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def as_markdown(table: Any) -> str:
    """A Markdown table; every cell is escaped."""
    from equipoise_compendium.shown import markdown_table

    return markdown_table(list(table.columns), _rows(table))


def as_csv(table: Any) -> str:
    """CSV at 12 digits."""
    from equipoise_compendium.writing import write_csv

    text = io.StringIO()
    write_csv(table, text)
    return text.getvalue()


FORMATS = {"table": as_text, "csv": as_csv, "latex": as_latex, "markdown": as_markdown}


def together(tables: Mapping[str, Any], form: str) -> str:
    """Tables one below the other under their titles."""
    if form == "csv" and len(tables) > 1:
        titles = ", ".join(tables)
        raise ValueError(f"a CSV file holds one table: choose one of {titles} with --show")
    heading = {"table": "{}\n\n", "markdown": "**{}**\n\n", "latex": "% {}\n", "csv": ""}[form]
    texts = []
    for title, table in tables.items():
        texts.append(heading.format(title) + FORMATS[form](table))
    return "\n".join(texts)


def check_figure(path: Path | None) -> None:
    """Refuse a figure of another kind than can be drawn, and any where matplotlib is missing."""
    if path is None:
        return
    if path.suffix.lower() not in FIGURES:
        raise click.BadParameter(f"a figure is a file {', '.join(FIGURES)}; found {path}")
    need_matplotlib()


def need_matplotlib() -> None:
    """Raise a ModuleNotFoundError where figures cannot be drawn, before anything is computed."""
    import matplotlib as mpl

    mpl.use("Agg")


def axes(*grid: int, **options: Any) -> Any:
    """A figure and its axes, in the style of all figures, off screen."""
    need_matplotlib()
    from matplotlib import pyplot as plt

    from equipoise_compendium.plots import use_style

    use_style()
    return plt.subplots(*grid, **options)


def drawn(ax: Any, path: Path, title: str) -> bytes:
    """The figure of some axes as the bytes of a file, of the kind that its ending says.

    They are the same at every run.
    """
    from equipoise_compendium.plots import rendered

    return rendered(ax.get_figure(root=True), path.suffix.lower().lstrip("."), title)
