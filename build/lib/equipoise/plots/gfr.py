"""Figures of ranked lists and of harvested conversations; each draws on matplotlib Axes and returns them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from equipoise.plots import COLOURS, MARKERS

PATTERNS: Mapping[str, tuple[str, str]] = {
    "oo": ("#6BBF8A", "useful, useful"),
    "ox": ("#CDE8C5", "useful, then not"),
    "xo": ("#FBE38E", "not useful, then useful"),
    "xx": ("#F3B183", "not useful twice"),
    "x-": ("#CFCFCF", "breakdown"),
}
"""Colour and meaning of each pair of outcomes; the colours follow gfrc's Figures 2 to 4."""


def outcomes(ax: Axes, grid: pd.DataFrame) -> Axes:
    """Draw the outcomes of system turns 1 and 2, one row per topic (gfrc Figures 2 to 4)."""
    runs = list(dict.fromkeys(column.rsplit(" ", 1)[0] for column in grid.columns[1:]))
    seen = set()
    for column, run in enumerate(runs):
        for row, pair in enumerate(grid[f"{run} S1"] + grid[f"{run} S2"]):
            seen.add(pair)
            left = 2.15 * column
            colour = PATTERNS[pair][0] if pair in PATTERNS else "white"
            ax.add_patch(Rectangle((left, row), 2, 1, facecolor=colour, edgecolor="white", linewidth=2))
            for turn, mark in enumerate(pair):
                ax.text(left + 0.5 + turn, row + 0.5, mark, ha="center", va="center")
    centres = [2.15 * column + 0.5 + turn for column in range(len(runs)) for turn in (0, 1)]
    ax.set_xticks(centres, ["$S_1$", "$S_2$"] * len(runs))
    for column, run in enumerate(runs):
        ax.annotate(
            run, (2.15 * column + 1, 1.0), xycoords=("data", "axes fraction"), xytext=(0, 20),
            textcoords="offset points", ha="center", va="bottom",
        )  # fmt: skip
    ax.xaxis.tick_top()
    ax.set_yticks(np.arange(len(grid)) + 0.5, list(grid["topic"]))
    ax.set(xlim=(0, 2.15 * len(runs) - 0.15), ylim=(len(grid), 0))
    ax.tick_params(length=0)
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    handles = [Patch(color=colour, label=label) for pair, (colour, label) in PATTERNS.items() if pair in seen]
    ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0), ncols=2)
    return ax


def user_groups(ax: Axes, clusters: pd.DataFrame, utility: str, similarities: Mapping[str, str]) -> Axes:
    """Draw what users have had who leave a ranked list at the same rank, and how many they are.

    ``clusters`` (columns rank, attribute, measure, value): of one run and topic, as
    `equipoise.measures.gfr.gfr_clusters` returns it. ``utility``: the utility to draw. ``similarities``: the
    measure to draw, such as ``DistrSim-RNOD``, by attribute set; those without values are left out.
    """
    share = clusters[clusters["measure"] == "share"]
    ax.bar(share["rank"], share["value"], color="#D9D9D9", width=0.8, label="share of the users")
    if share.empty:
        ax.text(0.5, 0.5, "nothing relevant: nobody leaves", transform=ax.transAxes, ha="center", color="#666666")
    drawn = {"": utility} | dict(similarities)
    for number, (attribute, measure) in enumerate(drawn.items()):
        rows = clusters[(clusters["attribute"] == attribute) & (clusters["measure"] == measure)]
        if len(rows):
            label = f"{attribute} {measure}" if attribute else f"utility ({measure})"
            colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
            ax.plot(rows["rank"], rows["value"], label=label, color=colour, marker=marker, markersize=4)
    ax.set(ylim=(0, 1.02), xlabel="Rank at which users leave", ylabel="Share of users, or score")
    return ax
