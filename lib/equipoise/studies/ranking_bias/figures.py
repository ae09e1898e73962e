"""Figures of ranked lists and of the bias in them, drawn on matplotlib Axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle
from numpy.typing import NDArray

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


def measures_over_cutoffs(axes: NDArray[Any], curves: pd.DataFrame, titles: Mapping[str, str]) -> None:
    """Draw each measure over the ranking cut-off, a line for each run, a row of axes for each query set.

    All axes of a row have one scale, so that what moves more is seen to move more; one legend stands beside them all.
    """
    runs = curves["run"].unique().tolist()
    for row, (label, title) in zip(axes, titles.items(), strict=True):
        for ax, measure in zip(row, ("TExFAIR", "TExFAIR without proportionality", "NFaiRR"), strict=True):
            part = curves[(curves["queries"] == label) & (curves["measure"] == measure)]
            for number, run in enumerate(runs):
                line = part[part["run"] == run].sort_values("cutoff")
                ax.plot(line["cutoff"], line["value"], label=run, markersize=4, **_style(number))
            moved = part.groupby("run")["value"].agg(lambda values: values.max() - values.min()).mean()
            ax.set_title(f"{measure}\nmoves by {moved:.2f}", loc="left", fontsize=10)
            ax.set_xticks(sorted(part["cutoff"].unique()))
        row[0].set_ylabel(title)
    for ax in axes[-1]:
        ax.set_xlabel("Cut-off k [ranks]")
    axes[0][-1].legend(loc="upper left", bbox_to_anchor=(1.02, 1.0))


def fairness_by_query(
    axes: Sequence[Axes], scores: pd.DataFrame, runs: Sequence[str], titles: Mapping[str, str]
) -> None:
    """Density of NFaiRR and TExFAIR over the queries of all runs, axes for each query set, r of the runs in words."""
    x, y = "NFaiRR", "TExFAIR"
    for ax, (label, title) in zip(axes, titles.items(), strict=True):
        shown = scores.loc[label].loc[list(runs), [x, y]].dropna()
        drawn = ax.hexbin(shown[x], shown[y], gridsize=24, extent=(0, 1, 0, 1), mincnt=1, bins="log", cmap="Blues")
        r = [shown.loc[run].corr().loc[x, y] for run in runs]
        ax.figure.colorbar(drawn, ax=ax, label="lists in a cell (logarithmic)")
        ax.set(xlabel=x, ylabel=y)
        ax.set_title(f"{title}, r {min(r):.2f} to {max(r):.2f} by ranker", loc="left")
