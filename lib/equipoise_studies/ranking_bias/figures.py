"""Figures of chapter 4: each function draws one and returns it. Their titles state a result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from equipoise_compendium.plots import COLOURS, GREY, look

_RANKING_WIDTH = 1.15
"""Width of a ranking, with the gap to the next."""
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
    by_run: pd.Series[float],
    means: pd.DataFrame,
    labels: Sequence[str],
    measures: Sequence[str],
    title: str,
) -> Figure:
    """Draw each measure over the ranking cut-off, one panel per query set.

    ``by_run``: mean over queries, indexed by queries, measure, cutoff and run. ``means`` (columns
    mean, half): mean over rankers, too, with half of its interval, by queries, measure and cutoff.
    """
    figure, axes = plt.subplots(1, len(labels), figsize=(8, 3.8), sharex=True, sharey=True)
    for ax, label in zip(axes, labels, strict=True):
        for number, measure in enumerate(measures):
            for _, curve in by_run.loc[label, measure].groupby("run"):
                ax.plot(curve.droplevel("run"), color=COLOURS[number], lw=0.5, alpha=0.5)
            of_measure = means.loc[label, measure]
            size = of_measure["size"].iloc[0]
            style: dict[str, Any] = {"capsize": 2, "lw": 1.2, "ms": 4.5, **look(number)}
            ax.errorbar(
                of_measure.index, of_measure["mean"], of_measure["half"], label=measure, **style
            )
        ax.set_title(f"{label}, n = {size:,} queries", fontsize=10)
        ax.set_xticks([k for k in of_measure.index if k == 1 or k % 5 == 0])
        ax.set_xlabel("Cut-off k (ranks)")
    axes[0].set_ylabel("Fairness")
    handles, names = axes[0].get_legend_handles_labels()
    handles.append(Line2D([], [], color=GREY, lw=0.5))
    names.append("single rankers")
    figure.legend(handles, names, ncols=4, loc="outside lower center")
    figure.suptitle(title, fontsize=11)
    return figure


def crbo_by_counterfactual(table: pd.DataFrame, title: str) -> Figure:
    """Draw CRBO with its interval: one row per counterfactual, one mark per ranker.

    ``table``: columns counterfactual, run, CRBO, low, high.
    """
    counterfactuals, runs = table["counterfactual"].unique(), table["run"].unique()
    figure, ax = plt.subplots(figsize=(8, 4.6))
    for number, run in enumerate(runs):
        rows = table[table["run"] == run]
        heights = -np.arange(len(counterfactuals)) - 0.15 * (number - (len(runs) - 1) / 2)
        reach = [rows["CRBO"] - rows["low"], rows["high"] - rows["CRBO"]]
        ax.errorbar(rows["CRBO"], heights, xerr=reach, ls="", lw=1.2, label=run, **look(number))
    ax.set_yticks(-np.arange(len(counterfactuals)), counterfactuals)
    ax.grid(visible=False, axis="y")
    ax.set_xlabel("CRBO (1: no ranking changes)")
    ax.legend(ncols=len(runs), loc="upper center", bbox_to_anchor=(0.4, -0.14))
    ax.set_title(title, fontsize=11)
    return figure


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
    for ax in axes:  # on a phone, every panel has the names
        for tick, height in zip(ax.yaxis.get_major_ticks(), ticks, strict=True):
            if height not in heights.values():
                tick.label1.set_fontweight("bold")
    handles = [
        Line2D([], [], color=_DARK, marker="o", label="mean over queries, 95% CI"),
        Patch(**_BAND, label="range of the published differences"),
    ]
    figure.legend(handles=handles[: 1 + (not published.empty)], loc="outside lower center", ncols=2)
    figure.suptitle(title, fontsize=11)
    return figure
