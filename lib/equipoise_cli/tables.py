"""Tables and figures as a command gives them: text to read, CSV, LaTeX or Markdown; SVG or PNG."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

FIGURES = (".svg", ".png", ".pdf")

_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_LATEX |= {letter: f"\\{letter}" for letter in "&%$#_{}"}


def _cell(value: Any, column: str) -> str:
    if not isinstance(value, float):
        return str(value)
    small = 0 <= value < 0.00005 and column.startswith("p")
    return "< 0.0001" if small else "" if value != value else f"{value:.4f}"


def _rows(table: Any) -> list[list[str]]:
    return [
        [_cell(v, c) for v, c in zip(row, table.columns, strict=True)]
        for row in table.itertuples(index=False)
    ]


def _numbers(table: Any) -> list[bool]:
    """Which columns hold numbers."""
    return [getattr(dtype, "kind", "") in "if" for dtype in table.dtypes]


def as_text(table: Any) -> str:
    """Columns side by side, numbers to the right."""
    from equipoise.problems import plain

    cells = [[str(name) for name in table.columns], *_rows(table)]
    cells = [[plain(cell) for cell in row] for row in cells]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    adjust = [str.rjust if right else str.ljust for right in _numbers(table)]
    lines = (
        "  ".join(f(c, w) for f, c, w in zip(adjust, row, widths, strict=True)).rstrip()
        for row in cells
    )
    return "\n".join(lines) + "\n"


def as_latex(table: Any) -> str:
    """A LaTeX tabular with the rules of booktabs; every cell is escaped."""
    cells = [[str(name) for name in table.columns], *_rows(table)]
    escaped = (
        [re.sub(r"[\\~^&%$#_{}]", lambda found: _LATEX[found[0]], cell) for cell in row]
        for row in cells
    )
    head, *rows = (f"{' & '.join(row)} \\\\" for row in escaped)
    columns = "".join("r" if right else "l" for right in _numbers(table))
    lines = [
        f"\\begin{{tabular}}{{{columns}}}",
        "\\toprule",
        head,
        "\\midrule",
        *rows,
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
        raise ValueError(
            f"a CSV file holds one table: choose one of {', '.join(tables)} with --show"
        )
    title = {"table": "{}\n\n", "markdown": "**{}**\n\n", "latex": "% {}\n", "csv": ""}[form]
    return "\n".join(title.format(name) + FORMATS[form](table) for name, table in tables.items())


def check_figure(path: Path | None) -> None:
    """Refuse a figure of another kind than can be drawn."""
    if path is not None and path.suffix.lower() not in FIGURES:
        raise click.BadParameter(f"a figure is a file {', '.join(FIGURES)}; found {path}")


def axes(*grid: int, **options: Any) -> Any:
    """A figure and its axes, in the style of all figures, off screen."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    from equipoise_compendium.plots import use_style

    use_style()
    return plt.subplots(*grid, **options)


def drawn(ax: Any, path: Path, title: str) -> bytes:
    """The figure of some axes as the bytes of a file, SVG, PDF or PNG by its ending, the same at every run."""
    from equipoise_compendium.plots import rendered

    return rendered(ax.get_figure(root=True), path.suffix.lower().lstrip("."), title)
