"""Figures of ranked lists and of the bias in them, drawn on matplotlib Axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from equipoise_compendium.plots import COLOURS, GREY, look

_LIST_WIDTH = 1.15
"""Of a drawn list with the gap beside it."""


def grouped_lists(ax: Axes, lists: pd.DataFrame, scores: pd.DataFrame) -> Axes:
    """Draw ranked lists side by side, each document in the colour of its group, scores underneath.

    ``lists`` (columns ranking, rank, group): one row for each document. ``scores``: one column for
    each measure.
    """
    rankings = lists["ranking"].unique().tolist()
    colours = dict(zip(sorted(lists["group"].unique()), COLOURS, strict=False))
    ranks = lists["rank"].astype(float)
    for ranking, rank, group in zip(lists["ranking"], ranks, lists["group"], strict=True):
        x = rankings.index(ranking) * _LIST_WIDTH
        text = f"{rank:.0f}  {group} terms only"
        ax.add_patch(Rectangle((x, -rank), 1, 0.85, color=colours[group]))
        ax.text(x + 0.5, -rank + 0.42, text, ha="center", va="center", color="white")
    lowest = -float(ranks.max())
    for number, ranking in enumerate(rankings):
        middle = number * _LIST_WIDTH + 0.5
        lines = [f"{measure} {value:.2f}" for measure, value in scores.loc[ranking].items()]
        ax.text(middle, lowest - 0.25, "\n".join(lines), ha="center", va="top")
        ax.text(middle, 0.0, f"{ranking} ranking", ha="center", va="bottom")
    ax.set(xlim=(-0.1, _LIST_WIDTH * len(rankings)), ylim=(lowest - 1.3, 0.4))
    ax.set_axis_off()
    return ax


def measures_over_cutoffs(axes: NDArray[Any], curves: pd.DataFrame, labels: Sequence[str]) -> None:
    """Draw each measure over the ranking cut-off: a row a measure, a column a query set.

    A line for each run. All axes have one scale, so that what moves more is seen to move more; one
    legend stands above them all.
    """
    runs = curves["run"].unique().tolist()
    measures = ("TExFAIR", "TExFAIR without proportionality", "NFaiRR")
    for row, measure in zip(axes, measures, strict=True):
        for ax, label in zip(row, labels, strict=True):
            panel = curves[(curves["queries"] == label) & (curves["measure"] == measure)]
            for number, run in enumerate(runs):
                line = panel[panel["run"] == run].sort_values("cutoff")
                ax.plot(line["cutoff"], line["value"], label=run, markersize=4, **look(number))
            by_run = panel.groupby("run")["value"]
            move = (by_run.max() - by_run.min()).mean()
            ax.set_title(f"{label}: moves by {move:.2f}", loc="left", fontsize=10)
            ax.set_xticks(sorted(panel["cutoff"].unique()))
        row[0].set_ylabel(measure.replace(" ", "\n", 1))
    for ax in axes[-1]:
        ax.set_xlabel("Cut-off k, ranks")
    handles, names = axes[0][0].get_legend_handles_labels()
    axes[0][0].figure.legend(handles, names, ncols=2, loc="outside upper center")


def fairness_by_query(
    axes: Sequence[Axes], scores: pd.DataFrame, runs: Sequence[str], labels: Sequence[str]
) -> None:
    """Density of NFaiRR and TExFAIR over the queries of all runs, axes for each query set.

    The title says how the two correlate, run by run. ``scores``: indexed by query set, run and
    query, a column for each measure.
    """
    densities = []
    for ax, label in zip(axes, labels, strict=True):
        lists = scores.loc[label].loc[list(runs), ["NFaiRR", "TExFAIR"]].dropna()
        density = ax.hexbin(
            lists["NFaiRR"],
            lists["TExFAIR"],
            gridsize=20,
            extent=(0, 1, 0, 1),
            mincnt=1,
            bins="log",
            cmap="Blues",
            edgecolors=GREY,
            linewidths=0.3,
        )
        densities.append(density)
        r = [lists.loc[run].corr().loc["NFaiRR", "TExFAIR"] for run in runs]
        ax.set_xlabel("NFaiRR")
        ax.set_title(f"{label}: r of {min(r):.2f} to {max(r):.2f}", loc="left", fontsize=10)
    axes[0].set_ylabel("TExFAIR")
    # one scale of colours for all axes
    most_lists = max(float(np.asarray(density.get_array()).max()) for density in densities)
    for density in densities:
        density.set_clim(1, most_lists)
    colour_label = "Lists in a cell, logarithmic"
    axes[0].figure.colorbar(densities[0], ax=list(axes), label=colour_label)
