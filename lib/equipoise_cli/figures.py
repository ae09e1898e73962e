"""Figures of comparisons: runs with intervals and topics, and attribution bias."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from equipoise.arrays import Floats
from equipoise.statistics import Comparison
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


def compared_runs(axes: Sequence[Axes], comparison: Comparison, level: float) -> Sequence[Axes]:
    """Draw runs, best first: means with intervals, and topics minus the baseline.

    ``axes`` are two axes that share their y axis; ``comparison`` has one group (without `by`). The
    mean difference and the interval of the test are above the differences of the topics, coloured
    if significant.
    """
    runs = comparison.leaderboard["run"].tolist()
    baseline = comparison.baseline or runs[0]
    heights = dict(zip(runs, range(len(runs), 0, -1), strict=True))
    means_axis, differences_axis = axes
    _draw_means(means_axis, comparison, level, baseline, heights)
    _draw_differences(differences_axis, comparison, level, baseline, heights)
    return axes


def _draw_means(
    ax: Axes, comparison: Comparison, level: float, baseline: str, heights: Mapping[str, int]
) -> None:
    for row in comparison.leaderboard.itertuples():
        colour = COLOURS[1] if row.run == baseline else _APART
        _interval(ax, row.low, row.high, heights[row.run], colour)
        ax.plot(row.mean, heights[row.run], "o", markersize=6, color=colour)
    ax.set_yticks(list(heights.values()), [literal(run) for run in heights])
    ax.set_xlabel(f"Mean {literal(comparison.measure)} with {level:.0%} CI")
    ax.set_ylim(0.4, len(heights) + 0.6)
    ax.grid(visible=False, axis="y")


def _draw_differences(
    ax: Axes, comparison: Comparison, level: float, baseline: str, heights: Mapping[str, int]
) -> None:
    for run, run_topics in comparison.topics.groupby("run", sort=False):
        differences = run_topics["difference"].to_numpy(dtype=np.float64)
        point_heights = heights[str(run)] - 0.12 + _heaped(differences, 0.26)
        ax.plot(differences, point_heights, "o", color=GREY, markersize=2.6, lw=0)
    # Each pair occurs once, in either direction; reversed, its difference and interval change sign.
    pairs = comparison.comparisons
    turned = pairs.rename(columns={"a": "b", "b": "a", "low": "high", "high": "low"})
    turned[["difference", "low", "high"]] *= -1
    both_ways = pd.concat([pairs, turned])
    for row in both_ways[both_ways["b"] == baseline].itertuples():
        significant = row.p_corrected <= 1 - level + 1e-12  # 1 - 0.95 is not quite 0.05
        colour = _APART if significant else GREY
        y = heights[row.a] + 0.22
        _interval(ax, row.low, row.high, y, colour)
        ax.plot(row.difference, y, "D", markersize=5, color=colour)
    ax.axvline(0, color=COLOURS[1], lw=1)
    style: Any = {"fontsize": 8.5, "color": COLOURS[1], "va": "center"}
    note(ax, "baseline of the differences", (0, heights[baseline]), (6, 0), **style)
    ax.set_xlabel(f"Run − {literal(baseline)}: topics (grey), mean with {level:.0%} CI")
    ax.set_title("blue: significant", loc="right", fontsize=9, color=_APART)
    ax.tick_params(labelleft=False)
    ax.grid(visible=False, axis="y")


def attribution_bias(ax: Axes, rows: pd.DataFrame, favoured: str, difference: float) -> Axes:
    """Draw CAB in points with its intervals; intervals that exclude 0 are coloured.

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
    ax.set_xlabel(f"Attribution bias [points], above 0 for {literal(favoured)}")
    ax.set_ylim(0.6 - len(rows), 0.6)
    ax.grid(visible=False, axis="y")
    return ax
