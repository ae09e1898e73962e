"""Figures of what the order of a conversation does to scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from equipoise_compendium.plots import COLOURS, literal

SCRIPT_MARK: dict[str, Any] = {
    "marker": "D",
    "color": "#F0C808",
    "markeredgecolor": "black",
    "markeredgewidth": 0.8,
    "linestyle": "none",
}


def spread_of_conversations(ax: Axes, spread: pd.DataFrame, measure: str = "nDCG@3") -> Axes:
    """Draw each conversation's score over its orders: quartiles and extremes (Figure 1).

    Conversations rise by their median. A diamond stands for the order of the script.

    ``spread``: of `conversation_spread`.
    ``measure``: name of the score, for the axis.
    """
    medians = spread.groupby("topic", sort=False)["value"].median().sort_values(kind="stable")
    script = spread[spread["permutation"] == 0].set_index("topic")["value"].loc[medians.index]
    samples = [spread.loc[spread["topic"] == topic, "value"].to_numpy() for topic in script.index]
    line = {"color": COLOURS[0]}
    ax.boxplot(
        samples,
        tick_labels=list(map(literal, script.index)),
        whis=(0, 100),
        widths=0.6,
        patch_artist=True,
        boxprops={"facecolor": (COLOURS[0], 0.3), "edgecolor": COLOURS[0]},
        whiskerprops=line,
        capprops=line,
        medianprops={"color": "black"},
    )
    ax.plot(range(1, len(script) + 1), script, label="order of the script", zorder=5, **SCRIPT_MARK)
    ax.set(xlabel="Conversation", ylabel=f"Mean {measure} over systems")
    ax.legend()
    return ax


def preferences(axes: Sequence[Axes], table: pd.DataFrame, runs: Sequence[str]) -> Sequence[Axes]:
    """Draw on how many percent of the orders the row's system beats the column's.

    A panel a conversation; blue where it wins more than half, red where less. Each pair stands
    there once: what is missing from 100 are the column's orders and the ties.

    ``table``: of `equipoise.measures.orders.preference`. ``runs``: systems, in the order of the
    rows and columns.
    """
    names = list(map(literal, runs))
    style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8.5}
    for ax, (topic, of_topic) in zip(axes, table.groupby("topic", sort=False), strict=True):
        wins = of_topic.pivot_table(index="a", columns="b", values="wins")
        percentages = wins.reindex(index=runs, columns=runs).to_numpy(dtype=np.float64) * 100
        percentages[np.triu_indices(len(runs))] = np.nan
        shown = np.ma.masked_invalid(percentages[:, :-1])
        ax.imshow(shown, cmap="RdBu", vmin=0, vmax=100, aspect="auto")
        for row, column in np.argwhere(np.isfinite(percentages)):
            percentage = percentages[row, column]
            # The ends of the scale are too dark for black letters.
            colour = "white" if abs(percentage - 50) > 32 else "black"
            ax.text(column, row, f"{percentage:.0f}", color=colour, **style)
        ax.set_title(f"Conversation {literal(topic)}", fontsize=10)
        ax.set_xticks(range(len(runs) - 1), names[:-1], rotation=45, ha="right", fontsize=8.5)
        ax.set_yticks(range(1, len(runs)), names[1:], fontsize=8.5)
        ax.set_ylim(len(runs) - 0.5, 0.5)
        ax.grid(visible=False)
    return axes


def preference_panels(
    table: pd.DataFrame, runs: Sequence[str], count: int, rng: np.random.Generator
) -> Figure:
    """Draw Figure 2 for some conversations, drawn at random, four in a row."""
    topics = table["topic"].unique()
    drawn = rng.choice(len(topics), min(count, len(topics)), replace=False)
    # Drawn at random, but shown in the order of the table, which `preferences` follows.
    topics_shown = topics[np.sort(drawn)]
    n_rows = math.ceil(len(topics_shown) / 4)
    figure, axes = plt.subplots(n_rows, 4, figsize=(13, 3 * n_rows), squeeze=False)
    panels = axes.ravel()
    for ax in panels[len(topics_shown) :]:
        ax.set_axis_off()
    rows_shown = table[table["topic"].isin(topics_shown)]
    preferences(list(panels[: len(topics_shown)]), rows_shown, runs)
    return figure
