"""Figures of ranked lists and of the bias in them, drawn on matplotlib Axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from equipoise.plots import COLOURS, MARKERS


def _style(number: int) -> dict[str, Any]:
    return {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}


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
    ax.set(xlim=(-0.1, 1.15 * len(names)), ylim=(-deepest - 1.1, 0.4))
    ax.set_axis_off()
    handles = [Patch(color=colour, label=f"{group} terms only") for group, colour in colours.items()]
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 0.9))
    return ax


def measures_over_cutoffs(axes: Sequence[Sequence[Axes]], curves: pd.DataFrame, titles: Mapping[str, str]) -> None:
    """Draw each measure over the ranking cut-off, a line for each run, a row of axes for each query set."""
    runs, measures = curves["run"].unique().tolist(), ["TExFAIR", "TExFAIR(proportional=False)", "NFaiRR"]
    for row, (label, title) in zip(axes, titles.items(), strict=True):
        for ax, measure in zip(row, measures, strict=True):
            part = curves[(curves["queries"] == label) & (curves["measure"] == measure)]
            for number, run in enumerate(runs):
                line = part[part["run"] == run].sort_values("cutoff")
                ax.plot(line["cutoff"], line["value"], label=run, markersize=4, **_style(number))
            ax.set(xlabel="Cut-off k [ranks]", ylabel=measure)
        row[-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        row[0].set_title(title, loc="left")


def fairness_by_query(
    axes: Sequence[Axes], scores: pd.DataFrame, runs: Sequence[str], titles: Mapping[str, str]
) -> None:
    """Density of NFaiRR and TExFAIR over the queries of all runs, axes for each query set, r of each run in words."""
    x, y = "NFaiRR", "TExFAIR"
    for ax, (label, title) in zip(axes, titles.items(), strict=True):
        shown = scores.loc[label].loc[list(runs), [x, y]].dropna()
        drawn = ax.hexbin(shown[x], shown[y], gridsize=24, extent=(0, 1, 0, 1), mincnt=1, bins="log", cmap="Blues")
        ax.plot([0, 1], [0, 1], color="#888888", linewidth=0.8)
        r = [f"{run}: r = {shown.loc[run].corr().loc[x, y]:.2f}" for run in runs]
        ax.text(0.03, 0.03, "\n".join(r), transform=ax.transAxes, va="bottom", fontsize=8)
        ax.figure.colorbar(drawn, ax=ax, label="lists (logarithmic)")
        ax.set(xlabel=x, ylabel=y, title=title)
