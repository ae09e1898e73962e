"""Figures of ranked lists and of the bias in them, drawn on matplotlib Axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from equipoise_compendium.plots import COLOURS, GREY

_LABELS_APART = 3
"""Ranks from one cut-off with a label to the next."""
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


def measures_over_cutoffs(
    axes: NDArray[Any], curves: pd.DataFrame, query_counts: pd.Series[int], baseline: str
) -> None:
    """Draw each measure over the ranking cut-off, a column for each query set.

    The first row holds the baseline, a line for each measure; the rows below one measure each, and
    in it the other rankers less the baseline. ``query_counts``: by query set, in drawn order.
    """
    measures = ("TExFAIR", "TExFAIR without proportionality", "NFaiRR")
    colours = dict(zip(measures, COLOURS, strict=False))
    for column, (label, n_queries) in zip(axes.T, query_counts.items(), strict=True):
        set_rows = curves[curves["queries"] == label]
        column[0].set_title(f"{label}, n = {n_queries:,}", loc="left", fontsize=9)
        for ax, measure in zip(column[1:], measures, strict=True):
            measure_rows = set_rows[set_rows["measure"] == measure]
            by_run = measure_rows.pivot_table(index="cutoff", columns="run", values="value")
            baseline_curve = by_run.pop(baseline)
            style = {"color": colours[measure], "lw": 1.8, "label": measure}
            column[0].plot(baseline_curve.index, baseline_curve, "o-", ms=3, **style)
            ax.axhline(0, color=GREY, lw=1)
            ax.plot(by_run.index, by_run.sub(baseline_curve, axis=0), color=colours[measure], lw=1)
        cutoffs = sorted(set_rows["cutoff"].unique())
        column[-1].set_xticks(cutoffs, _labels_apart(cutoffs))
        column[-1].set_xlabel("Cut-off k, ranks")
    axes[0][0].set_ylabel(baseline)
    for ax, measure in zip(axes[1:, 0], measures, strict=True):
        ax.set_ylabel(f"{measure},\nless {baseline}".replace(" without", "\nwithout"))
    handles, names = axes[0][0].get_legend_handles_labels()
    axes[0][0].figure.legend(handles, names, ncols=3, loc="outside upper center")


def _labels_apart(cutoffs: Sequence[int]) -> list[str]:
    """Labels of cut-offs, of which those too near the one before stay empty."""
    labels = []
    labelled = -_LABELS_APART
    for cutoff in cutoffs:
        is_apart = cutoff - labelled >= _LABELS_APART
        labels.append(str(cutoff) if is_apart else "")
        if is_apart:
            labelled = cutoff
    return labels


def differences_from_baseline(
    axes: Sequence[Axes], tests: pd.DataFrame, printed: pd.DataFrame, baseline: str
) -> None:
    """Draw how much fairer than the baseline each ranker is, with intervals, axes for each measure.

    ``tests`` (columns queries, run, measure, units, difference, low, high): one row for each line.
    ``printed`` (columns queries, measure, low, high): the range of the printed differences, a band
    behind the rankers of the query set.
    """
    lines = list(tests[["queries", "run"]].drop_duplicates().itertuples(index=False, name=None))
    labels = list(dict.fromkeys(label for label, _ in lines))
    # a free line above each query set, for its name
    heights = {line: -n - labels.index(line[0]) for n, line in enumerate(lines)}
    units = tests.groupby("queries")["units"].first()
    for ax, (measure, rows) in zip(axes, tests.groupby("measure", sort=False), strict=True):
        ax.axvline(0, color=GREY, linewidth=1)
        for row in rows.to_dict("records"):
            height = heights[row["queries"], row["run"]]
            colour = COLOURS[labels.index(row["queries"])]
            ax.plot([row["low"], row["high"]], [height, height], color=colour)
            ax.plot(row["difference"], height, "o", color=colour)
        for row in printed[printed["measure"] == measure].to_dict("records"):
            set_rows = [heights[line] for line in lines if line[0] == row["queries"]]
            bottom, top = min(set_rows) - 0.45, max(set_rows) + 0.45
            ax.fill_betweenx([bottom, top], row["low"], row["high"], color=GREY, alpha=0.3, lw=0)
        ax.set_xlabel(f"{measure} less that of {baseline}")
        ax.set_ylim(min(heights.values()) - 0.8, 1.6)
    names = [run for _, run in lines]
    axes[0].set_yticks(list(heights.values()), names)
    for label in labels:
        top = max(height for line, height in heights.items() if line[0] == label)
        axes[0].text(
            0.01,
            top + 0.5,
            f"{label}, {units[label]:,} queries",
            transform=axes[0].get_yaxis_transform(),
            fontweight="bold",
            va="bottom",
        )
