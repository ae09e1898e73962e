"""Figures of what the order of a conversation does to scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from equipoise_compendium.plots import COLOURS, literal

SCRIPT_MARK: dict[str, Any] = {"marker": "D", "color": "#F0C808", "markeredgecolor": "black"}
SCRIPT_MARK |= {"markeredgewidth": 0.8, "linestyle": "none"}


def spread_of_conversations(ax: Axes, spread: pd.DataFrame, measure: str = "nDCG@3") -> Axes:
    """Draw each conversation's score over its orders: quartiles, extremes, a diamond for the script (Figure 1).

    ``spread``: of `conversation_spread`. ``measure``: name of the score, for the axis.
    """
    script = spread[spread["permutation"] == 0].set_index("topic")["value"]
    samples = [spread.loc[spread["topic"] == topic, "value"].to_numpy() for topic in script.index]
    line, box = {"color": COLOURS[0]}, {"facecolor": (COLOURS[0], 0.3), "edgecolor": COLOURS[0]}
    styles: dict[str, Any] = {
        "whiskerprops": line,
        "capprops": line,
        "medianprops": {"color": "black"},
    }
    names = list(map(literal, script.index))
    ax.boxplot(
        samples,
        tick_labels=names,
        whis=(0, 100),
        widths=0.6,
        patch_artist=True,
        boxprops=box,
        **styles,
    )
    ax.plot(range(1, len(script) + 1), script, label="order of the script", zorder=5, **SCRIPT_MARK)
    ax.set(xlabel="Conversation", ylabel=f"Mean {measure} over systems")
    ax.legend()
    return ax


def preferences(axes: Sequence[Axes], table: pd.DataFrame, runs: Sequence[str]) -> Sequence[Axes]:
    """Draw the percentage of the orders on which the row's system beats the column's, one panel a conversation.

    Blue where it wins more than half, red where less.

    ``table``: of `equipoise.measures.orders.preference`. ``runs``: systems, in the order of the
    rows and columns.
    """
    names = list(map(literal, runs))
    for ax, (topic, part) in zip(axes, table.groupby("topic", sort=False), strict=True):
        wins = part.pivot_table(index="a", columns="b", values="wins").reindex(
            index=runs, columns=runs
        )
        values = wins.to_numpy(dtype=np.float64) * 100
        ax.imshow(np.ma.masked_invalid(values), cmap="RdBu", vmin=0, vmax=100, aspect="auto")
        for row, column in np.argwhere(np.isfinite(values)):
            style: dict[str, Any] = {
                "color": "white" if abs(values[row, column] - 50) > 32 else "black",
                "fontsize": 8.5,
            }
            ax.text(column, row, f"{values[row, column]:.0f}", ha="center", va="center", **style)
        ax.set_title(f"Conversation {literal(topic)}", fontsize=10)
        ax.set_xticks(range(len(runs)), names, rotation=45, ha="right", fontsize=8.5)
        ax.set_yticks(range(len(runs)), names, fontsize=8.5)
        ax.grid(visible=False)
    return axes


def preference_panels(
    table: pd.DataFrame, runs: Sequence[str], count: int, rng: np.random.Generator
) -> Figure:
    """Draw Figure 2 for some conversations, drawn at random, four in a row."""
    topics = table["topic"].unique()
    chosen = topics[np.sort(rng.choice(len(topics), min(count, len(topics)), replace=False))]
    rows = -(-len(chosen) // 4)
    figure, axes = plt.subplots(rows, 4, figsize=(13, 3 * rows), squeeze=False)
    for ax in axes.ravel()[len(chosen) :]:
        ax.set_axis_off()
    preferences(list(axes.ravel()[: len(chosen)]), table[table["topic"].isin(chosen)], runs)
    return figure
