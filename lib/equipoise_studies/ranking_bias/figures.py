"""Figures of chapter 4: each function draws one and returns it. Their titles state a result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from equipoise_compendium.plots import COLOURS, GREY, look

_LABELS_APART = 3
"""Ranks between two labelled cut-offs."""
_RANKING_WIDTH = 1.15
"""Width of a ranking, with the gap to the next."""
_LINES = {"TExFAIR": "-", "TExFAIR without proportionality": "--", "NFaiRR": ":"}
"""Line style of each measure."""
_DARK = COLOURS[-1]
_BAND: dict[str, Any] = {"color": GREY, "alpha": 0.3, "lw": 0}


def grouped_rankings(documents: pd.DataFrame, scores: pd.DataFrame, title: str) -> Figure:
    """Draw rankings side by side: one box per document, labelled by its group, and the scores.

    ``documents``: columns ranking, rank, group. ``scores``: one row per ranking, one column per
    measure.
    """
    figure, ax = plt.subplots(figsize=(5.5, 3.1))
    rankings = documents["ranking"].unique().tolist()
    colours = dict(zip(sorted(documents["group"].unique()), COLOURS, strict=False))
    for row in documents.to_dict("records"):
        x, y = rankings.index(row["ranking"]) * _RANKING_WIDTH, -row["rank"]
        ax.add_patch(Rectangle((x, y), 1, 0.85, color=colours[row["group"]]))
        text = f"Rank {row['rank']}: {row['group']} terms only"
        ax.text(x + 0.5, y + 0.42, text, ha="center", va="center", color="white")
    lowest = -documents["rank"].max()
    for number, ranking in enumerate(rankings):
        middle = number * _RANKING_WIDTH + 0.5
        lines = [f"{measure} = {value:.2f}" for measure, value in scores.loc[ranking].items()]
        ax.text(middle, lowest - 0.2, "\n".join(lines), ha="center", va="top")
        ax.text(middle, 0.0, f"{ranking.capitalize()} ranking", ha="center", va="bottom")
    ax.set(xlim=(-0.1, _RANKING_WIDTH * len(rankings)), ylim=(lowest - 1, 0.4))
    ax.set_axis_off()
    ax.set_title(title, fontsize=11)
    return figure


def measures_over_cutoffs(
    curves: pd.DataFrame, query_counts: pd.Series[int], baseline: str, title: str
) -> Figure:
    """Draw each measure over the ranking cut-off, one column per query set.

    The first row shows the baseline, one line per measure. Each further row shows one measure of
    the other rankers minus the baseline. ``query_counts``: by query set, in drawn order.
    """
    shape = (1 + len(_LINES), len(query_counts))
    figure, axes = plt.subplots(*shape, figsize=(8, 9), sharex=True, sharey="row")
    rankers = [run for run in curves["run"].unique() if run != baseline]
    for column, (label, n_queries) in zip(axes.T, query_counts.items(), strict=True):
        set_rows = curves[curves["queries"] == label]
        column[0].set_title(f"{label}, n = {n_queries:,} queries", fontsize=10)
        for ax, (measure, line) in zip(column[1:], _LINES.items(), strict=True):
            measure_rows = set_rows[set_rows["measure"] == measure]
            by_run = measure_rows.pivot_table(index="cutoff", columns="run", values="value")
            baseline_curve = by_run.pop(baseline)
            column[0].plot(baseline_curve, line, color=_DARK, label=measure)
            ax.axhline(0, color=GREY, lw=1)
            for number, run in enumerate(rankers):
                if run in by_run:
                    gaps = by_run[run] - baseline_curve
                    ax.plot(gaps, **look(number), label=run, lw=1.2, ms=4)
        cutoffs = sorted(set_rows["cutoff"].unique())
        column[-1].set_xticks(cutoffs, _labels_apart(cutoffs))
        column[-1].set_xlabel("Cut-off k (ranks)")
        handles, names = column[-1].get_legend_handles_labels()
        column[-1].legend(handles, names, loc="upper center", bbox_to_anchor=(0.5, -0.32))
    axes[0, 0].set_ylabel(f"{baseline},\nmean over queries")
    for ax, measure in zip(axes[1:, 0], _LINES, strict=True):
        name = measure.replace(" without ", "\nwithout\n")
        ax.set_ylabel(f"{name},\nranker − {baseline}")
    handles, names = axes[0, 0].get_legend_handles_labels()
    # a title of the figure would overlap with a legend outside of the axes
    figure.legend(
        handles, names, ncols=3, loc="outside upper center", title=title, title_fontsize=11
    )
    return figure


def _labels_apart(cutoffs: Sequence[int]) -> list[str]:
    """Label cut-offs; those too near to the last labelled one stay empty."""
    labels = []
    labelled = -_LABELS_APART
    for cutoff in cutoffs:
        is_apart = cutoff - labelled >= _LABELS_APART
        labels.append(str(cutoff) if is_apart else "")
        if is_apart:
            labelled = cutoff
    return labels


def differences_from_baseline(
    tests: pd.DataFrame, published: pd.DataFrame, baseline: str, title: str
) -> Figure:
    """Draw each ranker minus the baseline with its interval, one panel per measure.

    ``tests`` (columns queries, run, measure, units, difference, low, high): one row per drawn line.
    ``published`` (columns queries, measure, low, high): range of the published differences, drawn
    as a band across the rankers of the query set.
    """
    measures = tests["measure"].unique()
    figure, axes = plt.subplots(1, len(measures), figsize=(8, 5.8), sharey=True)
    units = tests.groupby("queries", sort=False)["units"].first()
    colours = dict(zip(units.index, COLOURS, strict=False))
    # one free line above each query set, for its name
    heights: dict[tuple[str, str], int] = {}
    ticks: dict[int, str] = {}
    for label, rows in tests.groupby("queries", sort=False):
        ticks[-len(ticks)] = f"{label}, n = {units[label]:,} queries"
        for run in rows["run"].unique():
            heights[label, run] = -len(ticks)
            ticks[-len(ticks)] = run
    for ax, measure in zip(axes, measures, strict=True):
        ax.axvline(0, color=GREY, linewidth=1)
        for row in tests[tests["measure"] == measure].to_dict("records"):
            height, colour = heights[row["queries"], row["run"]], colours[row["queries"]]
            ax.plot([row["low"], row["high"]], [height, height], color=colour)
            ax.plot(row["difference"], height, "o", color=colour)
        for row in published[published["measure"] == measure].to_dict("records"):
            rows_of_set = [
                height for (label, _), height in heights.items() if label == row["queries"]
            ]
            span = [min(rows_of_set) - 0.45, max(rows_of_set) + 0.45]
            ax.fill_betweenx(span, row["low"], row["high"], **_BAND)
        ax.locator_params(axis="x", nbins=5)
        ax.set_xlabel(f"{measure}, ranker − {baseline}\n(above 0: fairer than {baseline})")
    axes[0].set_yticks(list(ticks), list(ticks.values()))
    for name, height in zip(axes[0].get_yticklabels(), ticks, strict=True):
        if height not in heights.values():
            name.set_fontweight("bold")
    handles = [
        Line2D([], [], color=_DARK, marker="o", label="mean over queries, 95% CI"),
        Patch(**_BAND, label="range of the published differences"),
    ]
    figure.legend(handles=handles[: 1 + (not published.empty)], loc="outside lower center", ncols=2)
    figure.suptitle(title, fontsize=11)
    return figure
