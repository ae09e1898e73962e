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


def grouped_lists(ax: Axes, lists: pd.DataFrame, scores: pd.DataFrame) -> Axes:
    """Draw ranked lists side by side, each document in the colour of its group, scores underneath.

    ``lists`` (columns ranking, rank, group): one row for each document. ``scores``: one column for
    each measure.
    """
    names = lists["ranking"].unique().tolist()
    colours = dict(zip(sorted(lists["group"].unique()), COLOURS, strict=False))
    for ranking, rank, group in zip(
        lists["ranking"], lists["rank"].astype(float), lists["group"], strict=True
    ):
        left = names.index(ranking) * 1.15
        ax.add_patch(Rectangle((left, -rank), 1, 0.85, color=colours[group]))
        ax.text(
            left + 0.5,
            -rank + 0.42,
            f"{rank:.0f}  {group} terms only",
            ha="center",
            va="center",
            color="white",
        )
    deepest = float(lists["rank"].max())
    for column, name in enumerate(names):
        below = "\n".join(f"{measure} {value:.2f}" for measure, value in scores.loc[name].items())
        ax.text(column * 1.15 + 0.5, -deepest - 0.25, below, ha="center", va="top")
        ax.text(column * 1.15 + 0.5, 0.0, f"{name} ranking", ha="center", va="bottom")
    ax.set(xlim=(-0.1, 1.15 * len(names)), ylim=(-deepest - 1.3, 0.4))
    ax.set_axis_off()
    return ax


def measures_over_cutoffs(axes: NDArray[Any], curves: pd.DataFrame, labels: Sequence[str]) -> None:
    """Draw each measure over the ranking cut-off, a line for each run: a row a measure, a column a query set.

    All axes have one scale, so that what moves more is seen to move more; one legend stands above
    them all.
    """
    runs = curves["run"].unique().tolist()
    for row, measure in zip(
        axes, ("TExFAIR", "TExFAIR without proportionality", "NFaiRR"), strict=True
    ):
        for ax, label in zip(row, labels, strict=True):
            part = curves[(curves["queries"] == label) & (curves["measure"] == measure)]
            for number, run in enumerate(runs):
                line = part[part["run"] == run].sort_values("cutoff")
                ax.plot(line["cutoff"], line["value"], label=run, markersize=4, **look(number))
            moved = (
                part.groupby("run")["value"].agg(lambda values: values.max() - values.min()).mean()
            )
            ax.set_title(f"{label}: moves by {moved:.2f}", loc="left", fontsize=10)
            ax.set_xticks(sorted(part["cutoff"].unique()))
        row[0].set_ylabel(measure.replace(" ", "\n", 1))
    for ax in axes[-1]:
        ax.set_xlabel("Cut-off k, ranks")
    handles, names = axes[0][0].get_legend_handles_labels()
    axes[0][0].figure.legend(handles, names, ncols=2, loc="outside upper center")


def fairness_by_query(
    axes: Sequence[Axes], scores: pd.DataFrame, runs: Sequence[str], labels: Sequence[str]
) -> None:
    """Density of NFaiRR and TExFAIR over the queries of all runs, axes for each query set, r of the runs in words."""
    x, y, drawn = "NFaiRR", "TExFAIR", []
    for ax, label in zip(axes, labels, strict=True):
        shown = scores.loc[label].loc[list(runs), [x, y]].dropna()
        how: dict[str, Any] = {
            "gridsize": 20,
            "extent": (0, 1, 0, 1),
            "mincnt": 1,
            "bins": "log",
            "cmap": "Blues",
        }
        drawn += [ax.hexbin(shown[x], shown[y], edgecolors=GREY, linewidths=0.3, **how)]
        r = [shown.loc[run].corr().loc[x, y] for run in runs]
        ax.set_xlabel(x)
        ax.set_title(f"{label}: r of {min(r):.2f} to {max(r):.2f}", loc="left", fontsize=10)
    axes[0].set_ylabel(y)
    for cells in drawn:
        cells.set_clim(1, max(float(np.asarray(one.get_array()).max()) for one in drawn))
    axes[0].figure.colorbar(drawn[0], ax=list(axes), label="Lists in a cell, logarithmic")
