"""Write the tables of a command (text, CSV, LaTeX, Markdown, HTML) and its figures."""

from __future__ import annotations

import html
import io
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Number
from pathlib import Path
from typing import Any, NamedTuple

import click

from equipoise.errors import plain

_MOST_COLUMNS = 10  # that LaTeX sets beside each other in letters of the text
FIGURES = (".svg", ".png", ".pdf")

_LATEX: Any = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
} | {letter: f"\\{letter}" for letter in "&%$#_{}"}


class Marked(NamedTuple):
    """A number in a table, bold if it is the best, with letters for significance."""

    text: str
    mark: str = ""
    best: bool = False


@dataclass(frozen=True)
class Table:
    """A table of a command.

    ``rows``: a DataFrame, whose cells may be `Marked`. ``label``: for LaTeX. ``tidy``: the same
    content as numbers, for CSV, if it differs from the rows.
    """

    title: str
    rows: Any
    label: str
    tidy: Any = None


def _markdown(text: str) -> str:
    return re.sub(r"([\\`*_\[\]|#~$])", r"\\\1", html.escape(text, quote=False))


def _latex(text: str) -> str:
    return text.translate(str.maketrans(_LATEX)).replace(r"\textless{}=", r"$\le$")


_FORMS: dict[str, tuple[Callable[[str], str], str, str]] = {
    "table": (plain, "{}*", " {}"),
    "latex": (_latex, r"\textbf{{{}}}", "$^{{{}}}$"),
    "markdown": (_markdown, "**{}**", "<sup>{}</sup>"),
    "html": (html.escape, "<b>{}</b>", "<sup>{}</sup>"),
}
"""By form: the escape function, the mark of the best value, and the letters for significance."""
FORMATS = [*_FORMS, "csv"]


_NO_VARIATION = "no variation"
"""Text for the p-value and effect of a difference that is the same for every topic."""


def p_value(p: float) -> str:
    """Write a p-value as text, above 0 if it is not 0, with a reason if there is no test."""
    if math.isnan(p):
        return _NO_VARIATION
    return f"{p:.4f}" if p >= 0.00005 else "< 0.0001"


def _cell(value: Any, column: str, form: str) -> str:
    """Write a value as text: numbers with four digits, NaN as empty text, or no variation."""
    escape, best, mark = _FORMS[form]
    if not isinstance(value, Marked):
        if not isinstance(value, float):
            return escape(str(value))
        text = "" if math.isnan(value) else f"{value:.4f}"
        if column in ("p", "p_corrected"):
            text = p_value(value)
        if column == "effect" and math.isnan(value):
            text = _NO_VARIATION
        return escape(text)
    text = escape(value.text)
    if value.best:
        text = best.format(text)
    elif form == "table":
        text += " "  # under the star of others
    return text + (mark.format(escape(value.mark)) if value.mark else "")


def as_text(table: Table, form: str) -> str:
    """Return a table in a form, under its title; every cell is escaped."""
    import pandas as pd

    if form == "csv":
        from equipoise_compendium.writing import write_csv

        buffer = io.StringIO()
        rows = table.rows if table.tidy is None else table.tidy
        # Names of runs are those of others, and a spreadsheet would run some of them.
        write_csv(rows, buffer, for_spreadsheets=True)
        return buffer.getvalue()
    escape = _FORMS[form][0]
    title = escape(table.title)
    rows = table.rows
    if form != "table":
        rows = rows.rename(columns=lambda name: str(name).replace("_", " "))
    cells = pd.DataFrame(
        {
            place: [_cell(value, str(name), form) for value in rows.iloc[:, place]]
            for place, name in enumerate(table.rows.columns)
        },
        index=rows.index,
    ).set_axis([escape(str(name)) for name in rows.columns], axis=1)
    if form == "table":
        return f"{title}\n\n{cells.to_string(index=False)}\n"
    if form == "markdown":
        lines = [list(cells.columns), ["---"] * len(cells.columns), *cells.to_numpy().tolist()]
        return f"**{title}**\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)
    styler = cells.style.hide(axis="index").set_caption(title)
    if form == "html":
        return str(styler.to_html(uuid="scores", cell_ids=False))
    alignment = "".join(
        "r" if len(values) and isinstance(values.iloc[0], (Number, Marked)) else "l"
        for _, values in rows.items()
    )
    text = styler.to_latex(column_format=alignment, hrules=True, label=table.label, position="t")
    if len(rows.columns) > _MOST_COLUMNS:
        text = text.replace("\\begin{tabular}", "\\resizebox{\\textwidth}{!}{\\begin{tabular}")
        text = text.replace("\\end{tabular}", "\\end{tabular}}")
    return str(text)


def together(tables: Sequence[Table], form: str) -> str:
    """Return the text of several tables, one below the other."""
    if form == "csv" and len(tables) > 1:
        titles = ", ".join(table.title for table in tables)
        raise ValueError(f"a CSV file must have one table; choose one of {titles} with --show")
    return "\n".join(as_text(table, form) for table in tables)


# --- figures --------------------------------------------------------------------------------------


def check_figure(path: Path | None, *, alone: bool = True) -> None:
    """Reject a figure with another ending, and any figure if matplotlib is missing.

    ``alone``: the command has no other output, so matplotlib must be installed before it starts.
    """
    if path is None:
        return
    if path.suffix.lower() not in FIGURES:
        raise click.BadParameter(f"{path}: a figure must end in {', '.join(FIGURES)}")
    if alone:
        need_matplotlib()


def need_matplotlib() -> None:
    """Raise ModuleNotFoundError early if figures cannot be drawn."""
    import matplotlib as mpl

    mpl.use("Agg")


def axes(*grid: int, **options: Any) -> Any:
    """Return a figure and its axes, in the style of all figures, off screen."""
    need_matplotlib()
    from matplotlib import pyplot as plt

    from equipoise_compendium.plots import use_style

    use_style()
    return plt.subplots(*grid, **options)


def drawn(ax: Any, path: Path, title: str) -> bytes:
    """Return the figure of some axes as the content of a file, by its suffix."""
    from equipoise_compendium.plots import rendered

    return rendered(ax.get_figure(root=True), path.suffix.lower().lstrip("."), title)
