"""A figure laid out anew for a phone, from the one that was drawn for a desk.

Panels stand below each other, legends beneath, and long titles and names break. The letters keep
their size, so that they can be read on a narrow page.
"""

from __future__ import annotations

import textwrap
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.legend import Legend
from matplotlib.text import Text
from matplotlib.ticker import AutoLocator, MaxNLocator
from matplotlib.transforms import ScaledTranslation

WIDTH = 4.2
"""Inches. A phone shows them at five sixths, so ten points are as large as a page's small text."""
TITLE, LABEL, NAME = 46, 40, 18
"""Characters to a line of a title, of an axis' label, of a name at an axis."""
LINE = 0.18
"""Inches from one line of text to the next."""
_FEW_PANELS = 6
"""Panels up to which each has a row of its own."""
_MATRIX_COLUMNS = 3
"""Columns up to which panels that share the numbers at their left and below stay side by side."""
_SMALLEST = 7.0
"""Points of the smallest letters that a phone still shows legibly."""
_SHRUNK = 0.75
"""Share of its width that a panel keeps below which what is written in it becomes smaller."""


def narrow(figure: Figure) -> None:
    """Lay a figure out for a narrow page; it is changed in place."""
    width, height = figure.get_size_inches()
    if width <= WIDTH:
        return
    columns_before, columns, heightened = _stacked(figure)
    width_kept = (WIDTH / columns) / (width / columns_before)
    height *= heightened
    for ax in figure.axes:
        height += _break_names(ax, columns)
        if width_kept < _SHRUNK:
            for text in ax.texts:
                size = text.get_fontsize()
                text.set_fontsize(min(size, max(_SMALLEST, size * width_kept / _SHRUNK)))
    figure.set_size_inches(WIDTH, height + _legends_beneath(figure))
    for text in figure.texts:
        _break(text, TITLE)


def _stacked(figure: Figure) -> tuple[int, int, float]:
    """Put panels that stand side by side below each other.

    Returns the columns before and after, and how much higher the grid has become.
    """
    places = [(ax, ax.get_subplotspec()) for ax in figure.axes]
    panels = [(ax, place) for ax, place in places if place is not None]
    grids = {place.get_gridspec() for _, place in panels}
    grid = grids.pop() if len(grids) == 1 else None
    if grid is None or grid.ncols == 1:
        return 1, 1, 1.0
    first, last = panels[0][0], panels[-1][0]
    shares_numbers = not (_has_numbers(first, "bottom") or _has_numbers(last, "left"))
    if len(panels) > _FEW_PANELS and grid.ncols <= _MATRIX_COLUMNS and shares_numbers:
        # What stands in a row or a column belongs together, and is named at the edge alone.
        return grid.ncols, grid.ncols, 1.0
    longest_name = max(_longest_name(panel) for panel, _ in panels)
    columns = 1 if len(panels) <= _FEW_PANELS or longest_name > 2 * NAME // 3 else 2
    rows = -(-len(panels) // columns)
    stacked = GridSpec(rows, columns, figure=figure)
    label_by_row: dict[int, str] = {}
    for panel, place in panels:
        label_by_row.setdefault(place.rowspan.start, panel.get_ylabel())
    if columns == 1 and not all(_has_numbers(panel, "bottom") for panel, _ in panels):
        # Only the last panel of a column has the numbers of its axis, so a column stays together.
        panels.sort(key=lambda panel: (panel[1].colspan.start, panel[1].rowspan.start))
    for number, (panel, place) in enumerate(panels):
        label = label_by_row[place.rowspan.start]
        panel.set_subplotspec(stacked[number // columns, number % columns])
        if number % columns == 0:
            # Only the first panel of a row had the names and the label at its left.
            panel.tick_params(labelleft=True)
            panel.set_ylabel(panel.get_ylabel() or label)
    return grid.ncols, columns, rows / grid.nrows


def _has_numbers(ax: Axes, edge: Literal["left", "bottom"]) -> bool:
    axis = ax.xaxis if edge == "bottom" else ax.yaxis
    return bool(axis.get_tick_params().get(f"label{edge}", True))


def _longest_name(ax: Axes) -> int:
    """Characters of the longest name at the left of a panel; a formula is no name."""
    names = [text.get_text() for text in ax.get_yticklabels()]
    return max((len(name) for name in names if "$" not in name), default=0)


def _legends_beneath(figure: Figure) -> float:
    """Move legends beneath what they explain; the height that they take, in inches."""
    of_axes = []
    for ax in figure.axes:
        legend_of_axes = ax.get_legend()
        if legend_of_axes is not None:
            of_axes.append((ax, legend_of_axes))
    height = 0.0
    if len(of_axes) > 1:
        for ax, legend in of_axes:
            # Each panel has colours of its own, so the legend stays with it.
            below = ScaledTranslation(0, -3 * LINE, figure.dpi_scale_trans)
            height += _beneath(
                ax,
                legend,
                NAME // 2,  # A panel is narrower than the figure by the names at its left.
                loc="upper left",
                bbox_to_anchor=(0, 0),
                bbox_transform=ax.transAxes + below,
            )
        of_axes = []
    for legend in [*figure.legends, *(legend for _, legend in of_axes)]:
        height += _beneath(figure, legend, NAME, loc="outside lower left")
    return height


def _beneath(place: Axes | Figure, legend: Legend, side_by_side: int, **where: Any) -> float:
    """Draw a legend again at another place; the height that it takes, in inches.

    ``side_by_side``: characters of the longest label up to which two labels share a line.
    """
    labels = [text.get_text() for text in legend.get_texts()]
    handles = [handle for handle in legend.legend_handles if handle is not None]
    title = legend.get_title().get_text()
    legend.remove()
    columns = 2 if max(map(len, labels), default=0) <= side_by_side else 1
    broken = [textwrap.fill(label, TITLE) for label in labels]
    place.legend(handles, broken, title=title or None, ncols=columns, **where)
    return LINE * 1.2 * -(-len(labels) // columns)


def _break_names(ax: Axes, columns: int) -> float:
    """Break what is written around a panel into lines; the height to add for it, in inches.

    ``columns``: panels that stand side by side, and share the width.
    """
    for title in (ax.title, ax._left_title, ax._right_title):  # type: ignore[attr-defined]
        _break(title, TITLE // columns)
    _break(ax.xaxis.label, LABEL // columns)
    if isinstance(ax.xaxis.get_major_locator(), AutoLocator):
        ax.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
    names_below = [text.get_text() for text in ax.get_xticklabels()]
    if len("  ".join(names_below)) > LABEL and not any("$" in name for name in names_below):
        ax.tick_params(axis="x", rotation=90)
    if _longest_name(ax) <= NAME:
        return 0.0
    names = [text.get_text() for text in ax.get_yticklabels()]
    broken = [textwrap.fill(name, NAME) for name in names]
    ax.set_yticks(ax.get_yticks(), broken)
    lines = sum(name.count("\n") + 1 for name in broken)
    return LINE * max(0, lines - len(names))


def _break(text: Text, width: int) -> None:
    """Break a text into lines."""
    if len(text.get_text()) > width:
        text.set_text(textwrap.fill(text.get_text(), width))
