"""Figures of comparisons: runs with intervals and topics, and attribution bias."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from equipoise.arrays import Floats
from equipoise.statistics import Comparison
from equipoise.statistics.pairs import significance
from equipoise_compendium.plots import COLOURS, GREY, literal, note

_APART = COLOURS[0]


def _heaped(values: Floats, width: float) -> Floats:
    """Return heights around 0 at which points with these values do not overlap."""
    span = float(np.ptp(values)) or 1.0
    # Points in one of 41 cells along the axis would cover each other.
    cells = np.round((values - values.min()) / span * 40).astype(np.int64)
    heights = np.empty(len(values))
    for cell in np.unique(cells):
        in_cell = np.flatnonzero(cells == cell)
        heights[in_cell] = np.arange(len(in_cell)) - (len(in_cell) - 1) / 2
    highest = max(float(np.abs(heights).max()), 1e-9)
    return heights * min(width / 8, width / highest)


def _interval(ax: Axes, low: float, high: float, y: float, colour: str) -> None:
    ax.plot([low, high], [y, y], lw=2, solid_capstyle="round", color=colour)


def compared_runs(axes: Sequence[Axes], comparison: Comparison, level: float) -> None:
    """Draw runs, best first: means with intervals, and differences from the baseline.

    ``axes`` are two axes that share their y axis; ``comparison`` has one group (without `by`). Runs
    that differ significantly from the baseline are coloured in both.
    """
    runs = comparison.leaderboard["run"].tolist()
    baseline = comparison.baseline or runs[0]
    # Each pair occurs once, in either direction; reversed, its difference and interval change sign.
    pairs = comparison.comparisons
    turned = pairs.rename(columns={"a": "b", "b": "a", "low": "high", "high": "low"})
    turned[["difference", "low", "high"]] *= -1
    both_ways = pd.concat([pairs, turned])
    differences = both_ways[both_ways["b"] == baseline]
    is_significant = differences["p_corrected"] <= significance(level)
    colours = dict.fromkeys(runs, GREY) | {baseline: COLOURS[1]}
    colours |= dict.fromkeys(differences.loc[is_significant, "a"], _APART)
    heights = dict(zip(runs, range(len(runs), 0, -1), strict=True))
    means_axis, differences_axis = axes
    _draw_means(means_axis, comparison, level, colours, heights)
    _draw_differences(differences_axis, comparison.topics, differences, colours, heights)
    style: Any = {"fontsize": 8.5, "color": COLOURS[1], "va": "center"}
    note(differences_axis, "baseline", (0, heights[baseline]), (6, 0), **style)
    label = f"Run − {literal(baseline)}: mean with {level:.0%} CI, and topics (small dots)"
    differences_axis.set_xlabel(label)


def _draw_means(
    ax: Axes,
    comparison: Comparison,
    level: float,
    colours: Mapping[str, str],
    heights: Mapping[str, int],
) -> None:
    for row in comparison.leaderboard.itertuples():
        _interval(ax, row.low, row.high, heights[row.run], colours[row.run])
        ax.plot(row.mean, heights[row.run], "o", markersize=6, color=colours[row.run])
    ax.set_yticks(list(heights.values()), [literal(run) for run in heights])
    ax.set_xlabel(f"Mean {literal(comparison.measure)} with {level:.0%} CI")
    ax.set_ylim(0.4, len(heights) + 0.6)
    ax.grid(visible=False, axis="y")


def _draw_differences(
    ax: Axes,
    topics: pd.DataFrame,
    differences: pd.DataFrame,
    colours: Mapping[str, str],
    heights: Mapping[str, int],
) -> None:
    for run, run_topics in topics.groupby("run", sort=False):
        values = run_topics["difference"].to_numpy(dtype=np.float64)
        point_heights = heights[str(run)] - 0.12 + _heaped(values, 0.26)
        ax.plot(values, point_heights, "o", color=GREY, markersize=2.6, lw=0)
    for row in differences.itertuples():
        y = heights[row.a] + 0.22
        _interval(ax, row.low, row.high, y, colours[row.a])
        ax.plot(row.difference, y, "D", markersize=5, color=colours[row.a])
    ax.axvline(0, color=COLOURS[1], lw=1)
    title = "blue differs significantly from the baseline, grey does not"
    ax.set_title(title, loc="right", fontsize=9)
    ax.tick_params(labelleft=False)
    ax.grid(visible=False, axis="y")


def attribution_bias(ax: Axes, rows: pd.DataFrame, favoured: str, difference: float) -> Axes:
    """Draw CAB in points with its intervals, in colour where the verdict favours an author.

    ``rows`` are the result of `bias_rows`. The band contains biases that are too small to matter.
    """
    ax.axvspan(-100 * difference, 100 * difference, color="#F0F0F0", lw=0, zorder=0)
    ax.axvline(0, color="black", lw=0.8)
    labels = []
    for number, row in enumerate(rows.itertuples()):
        excludes_zero = row.low > 0 or row.high < 0
        colour = _APART if excludes_zero else GREY
        _interval(ax, 100 * row.low, 100 * row.high, -number, colour)
        ax.plot(100 * row.value, -number, "o", markersize=6, color=colour)
        labels.append(f"{literal(row.what)}, n = {row.count}")
    ax.set_yticks(range(0, -len(rows), -1), labels)
    ax.set_xlabel(f"Attribution bias (points), above 0 for {literal(favoured)}")
    ax.set_ylim(0.6 - len(rows), 0.6)
    ax.grid(visible=False, axis="y")
    return ax
