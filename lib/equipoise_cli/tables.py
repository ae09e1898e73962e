"""Tables and figures as a command gives them: text, CSV, LaTeX, Markdown or HTML; SVG or PNG."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from equipoise_compendium.shown import Cell

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


@dataclass(frozen=True)
class Table:
    """A table of a command: what its title says, and its rows.

    ``rows``: a DataFrame, whose cells may be `Cell`. ``tidy``: the same as numbers, for CSV, where
    they are. ``label``: by which LaTeX refers to it.
    """

    title: str
    rows: Any
    label: str
    tidy: Any = None


def _cell(value: Any, column: str) -> Cell:
    """A value as it is shown: numbers at four digits, NaN as nothing."""
    from equipoise_compendium.shown import Cell

    if isinstance(value, Cell):
        return value
    if not isinstance(value, float):
        return Cell(str(value))
    if math.isnan(value):
        return Cell("", number=True)
    # A p that is not 0 is not shown as 0.
    if column.startswith("p") and 0 <= value < 0.00005:
        return Cell("< 0.0001", number=True)
    return Cell(f"{value:.4f}", number=True)


def _rows(table: Any) -> list[list[Cell]]:
    """The cells of each row, as they are shown."""
    rows = []
    for values in table.itertuples(index=False):
        cells = zip(values, table.columns, strict=True)
        rows.append([_cell(value, column) for value, column in cells])
    return rows


def _is_number(table: Any) -> list[bool]:
    """Whether each column holds numbers."""
    are_numbers = []
    for name, dtype in table.dtypes.items():
        values = table[name]
        # Marked numbers are objects, of which each says that it is a number.
        is_marked = len(values) > 0 and getattr(values.iloc[0], "number", False)
        are_numbers.append(is_marked or getattr(dtype, "kind", "") in "if")
    return are_numbers


def _column_as_text(cells: list[Cell], header: str, is_number: bool) -> list[str]:
    """The lines of a column: numbers to the right, marks in a column of their own behind them."""
    from equipoise.problems import plain

    # Escaped before they are measured, or a control character would shift its line.
    texts = [plain(cell.text) + ("*" if cell.best else "") for cell in cells]
    if any(cell.best for cell in cells):
        texts = [text if cell.best else f"{text} " for text, cell in zip(texts, cells, strict=True)]
    width = max(map(len, texts), default=0)
    adjust = str.rjust if is_number else str.ljust
    lines = []
    mark_width = max((len(cell.mark) for cell in cells), default=0)
    for text, cell in zip(texts, cells, strict=True):
        line = adjust(text, width)
        if mark_width:
            line += f" {cell.mark:<{mark_width}}"
        lines.append(line)
    lines = [plain(header), *lines]
    width = max(map(len, lines))
    return [adjust(line, width) for line in lines]


def as_text(table: Table) -> str:
    """Columns side by side, numbers to the right; * is the best."""
    columns = []
    names = list(map(str, table.rows.columns))
    are_numbers = _is_number(table.rows)
    cells_of_columns = list(zip(*_rows(table.rows), strict=True)) or [()] * len(names)
    for cells, name, is_number in zip(cells_of_columns, names, are_numbers, strict=True):
        columns.append(_column_as_text(list(cells), name, is_number))
    lines = ["  ".join(cells).rstrip() for cells in zip(*columns, strict=True)]
    return f"{table.title}\n\n" + "\n".join(lines) + "\n"


def _latex_cell(cell: Cell) -> str:
    text = cell.text.translate(_TO_LATEX)
    if cell.best:
        text = f"\\textbf{{{text}}}"
    return f"{text}$^{{{cell.mark.translate(_TO_LATEX)}}}$" if cell.mark else text


def as_latex(table: Table) -> str:
    """A LaTeX table with the rules of booktabs, a caption and a label; every cell is escaped."""
    import jinja2  # noqa: F401 - pandas says less plainly that it is missing
    import pandas as pd

    texts = []
    for cells in _rows(table.rows):
        texts.append([_latex_cell(cell) for cell in cells])
    columns = [str(name).translate(_TO_LATEX) for name in table.rows.columns]
    styler = pd.DataFrame(texts, columns=columns).style.hide(axis="index")
    alignment = "".join("r" if is_number else "l" for is_number in _is_number(table.rows))
    text = styler.to_latex(
        column_format=alignment,
        hrules=True,
        caption=table.title.translate(_TO_LATEX),
        label=table.label,
        position="t",
    )
    # The title stands before it as it is, for who looks for it.
    return f"% {' '.join(table.title.split())}\n{text}"


def as_markdown(table: Table) -> str:
    """A Markdown table under its title; every cell is escaped."""
    from equipoise_compendium.shown import markdown_cell, markdown_table

    header = f"**{markdown_cell(table.title)}**\n\n"
    return header + markdown_table(list(table.rows.columns), _rows(table.rows))


def as_html(table: Table) -> str:
    """An HTML table with its title as the caption; every cell is escaped."""
    from equipoise_compendium.shown import html_table

    return html_table(table.title, list(table.rows.columns), _rows(table.rows)) + "\n"


def as_csv(table: Table) -> str:
    """CSV at 12 digits."""
    from equipoise_compendium.writing import write_csv

    text = io.StringIO()
    write_csv(table.rows if table.tidy is None else table.tidy, text)
    return text.getvalue()


FORMATS = {
    "table": as_text,
    "csv": as_csv,
    "latex": as_latex,
    "markdown": as_markdown,
    "html": as_html,
}


def together(tables: Sequence[Table], form: str) -> str:
    """Tables one below the other under their titles."""
    if form == "csv" and len(tables) > 1:
        titles = ", ".join(table.title for table in tables)
        raise ValueError(f"a CSV file holds one table: choose one of {titles} with --show")
    return "\n".join(FORMATS[form](table) for table in tables)


def check_figure(path: Path | None, *, alone: bool = True) -> None:
    """Refuse a figure of another kind than can be drawn, and any where matplotlib is missing.

    ``alone``: what is computed is lost without the figure; else it is shown, and the figure is
    missed at the end.
    """
    if path is None:
        return
    if path.suffix.lower() not in FIGURES:
        raise click.BadParameter(f"a figure is a file {', '.join(FIGURES)}; found {path}")
    if alone:
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
