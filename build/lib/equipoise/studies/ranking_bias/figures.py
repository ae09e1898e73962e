"""Figures of ranked lists and of the bias in them: each function draws on matplotlib Axes and returns them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from equipoise.plots import COLOURS, MARKERS


def grouped_lists(ax: Axes, lists: pd.DataFrame, scores: pd.DataFrame) -> Axes:
    """Draw ranked lists side by side, each document in the colour of its group, scores underneath.

    ``lists`` (columns ranking, rank, group): one row for each document. ``scores``: one column for each measure.
    """
    names = lists["ranking"].unique().tolist()
    groups = sorted(lists["group"].unique())
    colours = dict(zip(groups, COLOURS, strict=False))
    for ranking, rank, group in zip(lists["ranking"], lists["rank"].astype(float), lists["group"], strict=True):
        left = names.index(ranking) * 1.15
        ax.add_patch(Rectangle((left, -rank), 1, 0.85, color=colours[group], alpha=0.85))
        ax.text(left + 0.5, -rank + 0.42, f"{rank:.0f}  {group}", ha="center", va="center", color="white")
    deepest = float(lists["rank"].max())
    for column, name in enumerate(names):
        below = "\n".join(f"{measure} {value:.4f}" for measure, value in scores.loc[name].items())
        ax.text(column * 1.15 + 0.5, -deepest - 0.25, below, ha="center", va="top")
        ax.text(column * 1.15 + 0.5, 0.0, f"{name} ranking", ha="center", va="bottom")
    ax.set_xlim(-0.1, 1.15 * len(names))
    ax.set_ylim(-deepest - 1.1, 0.4)
    ax.set_axis_off()
    handles = [Patch(color=colour, label=f"{group} terms only") for group, colour in colours.items()]
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 0.9))
    return ax


def measures_over_cutoffs(axes: Sequence[Axes], table: pd.DataFrame, measures: Sequence[str]) -> Sequence[Axes]:
    """Draw each measure over the ranking cut-off, one line for each run.

    ``axes``: one for each measure. ``measures``: names in the column measure, one for each axes.
    """
    runs = table["run"].unique().tolist()
    for ax, measure in zip(axes, measures, strict=True):
        part = table[table["measure"] == measure]
        for number, run in enumerate(runs):
            line = part[part["run"] == run].sort_values("cutoff")
            style = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
            ax.plot(line["cutoff"], line["value"], label=run, markersize=4, **style)  # type: ignore[arg-type]
        ax.set_xlabel("Cut-off k [ranks]")
        ax.set_ylabel(measure)
    axes[-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return axes


def score_pairs(ax: Axes, table: pd.DataFrame, x: str, y: str) -> Axes:
    """Scatter two measures of the same topics, one colour for each run.

    ``table`` (columns run, ``x`` and ``y``): one row for each topic of each run. ``x``, ``y``: Columns.
    """
    for number, (run, part) in enumerate(table.groupby("run", sort=False)):
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
        ax.scatter(part[x], part[y], s=14, color=colour, marker=marker, alpha=0.55, label=str(run), linewidths=0)
    low = float(np.nanmin(table[[x, y]].to_numpy()))
    ax.plot([low, 1], [low, 1], color="#888888", linewidth=0.8, zorder=0)
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax
