"""Figures of comparisons: runs with their intervals and topics, measures and how they agree, what tells pairs apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from equipoise.arrays import Floats
from equipoise.statistics import Comparison
from equipoise_compendium.plots import COLOURS, GREY, literal, look, note

_APART = COLOURS[0]


def _heaped(values: Floats, width: float) -> Floats:
    """Heights at which points of these values lie beside each other instead of on one another, around 0."""
    span = float(np.ptp(values)) or 1.0
    cells = np.round((values - values.min()) / span * 40).astype(np.int64)
    order = np.argsort(cells, kind="stable")
    place = np.empty(len(values))
    place[order] = np.concatenate(
        [np.arange(count) - (count - 1) / 2 for count in np.bincount(cells) if count]
    )
    return place * min(width / 8, width / max(float(np.abs(place).max()), 1e-9))


def compared_runs(axes: Sequence[Axes], found: Comparison, level: float) -> Sequence[Axes]:
    """Draw runs, the best on top: their means with intervals, and their topics against the baseline.

    ``axes`` are two that share their y axis; ``found`` is of one group (without `by`). Beside the
    differences of the topics stands their mean with the interval of the test, in colour where it is
    significant.
    """
    board, pairs = found.leaderboard, found.comparisons
    runs = board["run"].tolist()
    height = dict(zip(runs, range(len(runs), 0, -1), strict=True))
    against = found.baseline or runs[0]
    left, right = axes
    for row in board.itertuples():
        strong: Any = {"color": COLOURS[1] if row.run == against else _APART}
        left.plot(
            [row.low, row.high], [height[row.run]] * 2, lw=2, solid_capstyle="round", **strong
        )
        left.plot(row.mean, height[row.run], "o", markersize=6, **strong)
    left.set_yticks(list(height.values()), [literal(run) for run in runs])
    left.set(
        xlabel=f"Mean {literal(found.measure)} with its {level:.0%} interval",
        ylim=(0.4, len(runs) + 0.6),
    )
    left.grid(visible=False, axis="y")
    for run, part in found.topics.groupby("run", sort=False):
        values = part["difference"].to_numpy(dtype=np.float64)
        right.plot(
            values,
            height[run] - 0.12 + _heaped(values, 0.26),
            "o",
            color=GREY,
            markersize=2.6,
            lw=0,
        )
    swapped = pairs.rename(columns={"a": "b", "b": "a", "low": "high", "high": "low"})
    swapped[["difference", "low", "high"]] *= -1
    for row in pd.concat([pairs, swapped]).query("b == @against").itertuples():
        sure: Any = {"color": _APART if row.p_corrected <= 1 - level + 1e-12 else GREY}
        right.plot(
            [row.low, row.high], [height[row.a] + 0.22] * 2, lw=2, solid_capstyle="round", **sure
        )
        right.plot(row.difference, height[row.a] + 0.22, "D", markersize=5, **sure)
    right.axvline(0, color=COLOURS[1], lw=1)
    note(
        right,
        "the others are held against it",
        (0, height[against]),
        (6, 0),
        fontsize=8.5,
        color=COLOURS[1],
        va="center",
    )
    right.set(xlabel=f"Difference from {literal(against)}: topics (grey), mean with interval")
    right.set_title("blue: significant", loc="right", fontsize=9, color=_APART)
    right.tick_params(labelleft=False)
    right.grid(visible=False, axis="y")
    return axes


def correlation_matrix(ax: Axes, table: pd.DataFrame) -> Axes:
    """Draw Kendall's tau of every two measures, with its interval; ``table`` as `correlations` gives it."""
    names = list(dict.fromkeys([*table["a"], *table["b"]]))
    place = {name: number for number, name in enumerate(names)}
    shown = np.full((len(names), len(names)), np.nan)
    for row in table.itertuples():
        shown[place[row.b], place[row.a]] = row.tau
        dark = abs(row.tau) > 0.6
        text = f"{row.tau:.2f}\n[{row.low:.2f}, {row.high:.2f}]"
        at = (place[row.a], place[row.b])
        ax.text(
            *at, text, ha="center", va="center", fontsize=8.5, color="white" if dark else "black"
        )
    image = ax.imshow(shown[:, :-1], cmap="RdBu", vmin=-1, vmax=1)
    ax.set_xticks(
        range(len(names) - 1), [literal(name) for name in names[:-1]], rotation=40, ha="right"
    )
    ax.set_yticks(range(1, len(names)), [literal(name) for name in names[1:]])
    ax.set_ylim(len(names) - 0.5, 0.5)
    ax.grid(visible=False)
    ax.get_figure().colorbar(image, ax=ax, shrink=0.7, label="Kendall's tau")  # type: ignore[union-attr]
    return ax


def significance_curves(ax: Axes, curves: pd.DataFrame, level: float) -> Axes:
    """Draw the achieved significance level of all pairs of runs by each measure, and the level that is asked for."""
    for number, (measure, part) in enumerate(curves.groupby("measure", sort=False)):
        style = look(number) | {"markersize": 3, "markevery": max(len(part) // 25, 1)}
        ax.plot(part["place"], part["p"], label=literal(measure), **style)
    ax.axhline(1 - level, color="black", lw=0.8, ls="--")
    pairs = int(curves["place"].max())
    note(ax, f"p = {1 - level:.2g}", (pairs, 1 - level), (0, 3), ha="right", fontsize=8.5)
    ax.set(
        xlabel="Pairs of runs, by falling p of each measure", ylabel="Achieved significance level p"
    )
    ax.set(xlim=(0, pairs + 1), ylim=(0, 1.02))
    ax.legend(loc="lower left")
    return ax


def attribution_bias(ax: Axes, rows: pd.DataFrame, favoured: str, difference: float) -> Axes:
    """Draw CAB with its intervals in points of 100, those in colour that leave 0 out; ``rows`` as of `bias_rows`.

    The band is the bias that is not worth finding.
    """
    ax.axvspan(-100 * difference, 100 * difference, color="#F0F0F0", lw=0, zorder=0)
    ax.axvline(0, color="black", lw=0.8)
    for place, row in enumerate(rows.itertuples()):
        style: Any = {"color": _APART if row.low > 0 or row.high < 0 else GREY}
        ax.plot(
            [100 * row.low, 100 * row.high], [-place, -place], lw=2, solid_capstyle="round", **style
        )
        ax.plot(100 * row.value, -place, "o", markersize=6, **style)
    ax.set_yticks(
        range(0, -len(rows), -1),
        [f"{literal(row.what)}, n = {row.count}" for row in rows.itertuples()],
    )
    ax.set(
        xlabel=f"Attribution bias [points], above 0 for {literal(favoured)}",
        ylim=(0.6 - len(rows), 0.6),
    )
    ax.grid(visible=False, axis="y")
    return ax
