"""Figures of the permutation study: each function draws on matplotlib Axes and returns them.

The style is that of `equipoise.plots`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from equipoise.plots import COLOURS

CLASS_COLOURS: Mapping[str, str] = {"SE": COLOURS[0], "FT": COLOURS[4], "PT": COLOURS[2]}
"""Colour of each utterance class."""

_ORIGINAL: dict[str, Any] = {
    "marker": "D",
    "color": "#F0C808",
    "markeredgecolor": "black",
    "markeredgewidth": 0.8,
    "linestyle": "none",
}


def conversation_structures(ax: Axes, utterances: pd.DataFrame, counts: pd.Series) -> Axes:
    """Draw the block structure of conversations: one row each, one tile an utterance, and the number of valid orders.

    ``utterances`` (columns topic, turn, class, block): Utterances of each topic in the order of their blocks; a
    block is a number, 0 for the one that opens. ``counts``: number of valid orders by topic.
    """
    topics = list(dict.fromkeys(utterances["topic"]))
    right = 0.0
    for row, topic in enumerate(topics):
        left = 0.0
        for _, block in utterances[utterances["topic"] == topic].groupby("block", sort=True):
            for turn, name in zip(block["turn"], block["class"], strict=True):
                ax.add_patch(Rectangle((left, row - 0.4), 1, 0.8, facecolor=CLASS_COLOURS[name], edgecolor="white"))
                ax.text(left + 0.5, row, str(turn), ha="center", va="center", fontsize=7, color="white")
                left += 1
            left += 0.45
        right = max(right, left)
    for row, topic in enumerate(topics):
        ax.text(right + 1.8, row, f"{counts[topic]:,}", ha="right", va="center", fontsize=9)
    ax.text(right + 1.8, -0.9, "orders", ha="right", va="center", fontsize=9)
    ax.set(xlim=(-0.3, right + 2), ylim=(len(topics) - 0.4, -1.4), xticks=[])
    ax.set_yticks(range(len(topics)), topics)
    ax.set_ylabel("Conversation")
    ax.grid(visible=False)
    ax.spines[["bottom", "left"]].set_visible(False)
    names = {"SE": "self-explanatory", "FT": "on the first topic", "PT": "on a previous topic"}
    handles = [Patch(color=colour, label=f"{name}: {names[name]}") for name, colour in CLASS_COLOURS.items()]
    ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.45, 0), ncols=3)
    return ax


def spread_of_conversations(ax: Axes, spread: pd.DataFrame, measure: str = "nDCG@3") -> Axes:
    """Draw the distribution of each conversation's score over its orders, with a diamond for the script's order.

    ``spread`` (columns topic, permutation, value): of `conversation_spread`. ``measure``:
    name of the score, for the axis. Returns: Boxes from quartile to quartile, whiskers from the lowest to the
    highest (permutations, Figure 1).
    """
    topics = list(dict.fromkeys(spread["topic"]))
    samples = [spread.loc[spread["topic"] == topic, "value"].to_numpy() for topic in topics]
    ax.boxplot(
        samples,
        whis=(0, 100),
        widths=0.6,
        patch_artist=True,
        boxprops={"facecolor": COLOURS[5], "edgecolor": COLOURS[0]},
        medianprops={"color": "black"},
        whiskerprops={"color": COLOURS[0]},
        capprops={"color": COLOURS[0]},
    )
    script = spread[spread["permutation"] == 0].set_index("topic")["value"]
    ax.plot(range(1, len(topics) + 1), script[topics], label="order of the script", zorder=5, **_ORIGINAL)
    ax.set_xticks(range(1, len(topics) + 1), topics)
    ax.set(xlabel="Conversation", ylabel=f"Mean {measure} over systems")
    ax.legend()
    return ax


def preferences(axes: Sequence[Axes], table: pd.DataFrame, runs: Sequence[str]) -> Sequence[Axes]:
    """Draw how often one system beats another, one panel a conversation (permutations, Figure 2).

    ``axes``: one per topic of the table. ``table`` (columns topic, a, b, wins): of
    `equipoise.measures.orders.preference`. ``runs``: Systems, in the order of the rows and columns. Returns: Each
    cell is the percentage of the orders on which the row's system beats the column's.
    """
    topics = list(dict.fromkeys(table["topic"]))
    for ax, topic in zip(axes, topics, strict=True):
        part = table[table["topic"] == topic]
        wins = part.pivot_table(index="a", columns="b", values="wins").reindex(index=runs, columns=runs)
        values = wins.to_numpy(dtype=np.float64) * 100
        ax.imshow(np.ma.masked_invalid(values), cmap="cividis", vmin=0, vmax=100, aspect="auto")
        for (row, column), value in np.ndenumerate(values):
            if np.isfinite(value):
                shade = "white" if value < 55 else "black"
                ax.text(column, row, f"{value:.0f}", ha="center", va="center", fontsize=8, color=shade)
        ax.set_title(f"Conversation {topic}", fontsize=10)
        ax.set_xticks(range(len(runs)), runs, rotation=45, ha="right", fontsize=8)
        ax.set_yticks(range(len(runs)), runs, fontsize=8)
        ax.grid(visible=False)
    return axes


def preference_panels(table: pd.DataFrame, runs: Sequence[str], count: int, rng: np.random.Generator) -> Figure:
    """Draw Figure 2 for some conversations, drawn at random, four in a row."""
    topics = table["topic"].unique()
    chosen = topics[np.sort(rng.choice(len(topics), min(count, len(topics)), replace=False))]
    rows = -(-len(chosen) // 4)
    figure, axes = plt.subplots(rows, 4, figsize=(13, 3 * rows), squeeze=False)
    for ax in axes.ravel()[len(chosen) :]:
        ax.set_axis_off()
    preferences(list(axes.ravel()[: len(chosen)]), table[table["topic"].isin(chosen)], runs)
    return figure


def exact_ranges(ax: Axes, table: pd.DataFrame, script: pd.Series, measure: str = "nDCG@3") -> Axes:
    """Draw what sampling sees of each system beside what is exactly so over all valid orders.

    ``table``: of `sampling_error`. ``script``: Score in the order of the script, by
    system. ``measure``: name of the score, for the axis. Returns: A thin line spans all orders, a thick one the
    sampled orders; a stroke marks the exact mean.
    """
    place = np.arange(len(table))[::-1]
    ax.hlines(place, table["minimum"], table["maximum"], color=COLOURS[0], lw=1.2)
    ax.hlines(place, table["sampled minimum"], table["sampled maximum"], color=COLOURS[5], lw=7, alpha=0.7)
    ax.plot(table["mean"], place, "|", color="black", markersize=13, markeredgewidth=1.6)
    ax.plot(script[table["run"]], place, zorder=5, markersize=6, **_ORIGINAL)
    ax.set_yticks(place, table["run"])
    ax.set(xlabel=f"Mean {measure} over conversations", ylim=(-0.7, len(table) - 0.3))
    handles = [
        Line2D([], [], color=COLOURS[0], lw=1.2, label="all orders, lowest to highest"),
        Line2D([], [], color=COLOURS[5], lw=7, alpha=0.7, label="sampled orders, lowest to highest"),
        Line2D([], [], color="black", marker="|", markersize=11, linestyle="none", label="exact mean"),
        Line2D([], [], label="order of the script", **_ORIGINAL),
    ]
    ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)
    return ax


def sample_size(axes: Sequence[Axes], stability: pd.DataFrame, errors: pd.DataFrame) -> Sequence[Axes]:
    """Draw how many permutations a ranking of systems needs.

    ``stability`` (columns permutations, tau, low, same, best): of `equipoise.measures.orders.ranking_stability`.
    ``errors`` (columns run, permutations, standard error): Standard error of each system's mean by number of
    permutations. Returns: Left: agreement with the exact ranking. Right: standard error of the means.
    """
    left, right = axes
    left.plot(stability["permutations"], stability["tau"], marker="o", label="mean Kendall tau", color=COLOURS[0])
    left.fill_between(
        stability["permutations"], stability["low"], stability["tau"], alpha=0.2, color=COLOURS[0], lw=0,
        label="down to the 5th percentile",
    )  # fmt: skip
    left.plot(
        stability["permutations"], stability["same"], marker="s", color=COLOURS[1], label="share with the same ranking"
    )
    left.plot(
        stability["permutations"], stability["best"], marker="^", color=COLOURS[2], label="share with the same best"
    )
    left.set(xscale="log", xlabel="Permutations of each conversation", ylabel="Agreement with the exact ranking")
    left.legend(loc="lower right")
    for number, (run, part) in enumerate(errors.groupby("run", sort=False)):
        right.plot(part["permutations"], part["standard error"], label=run, color=COLOURS[number % len(COLOURS)])
    right.set(
        xscale="log", yscale="log", xlabel="Permutations of each conversation", ylabel="Standard error of the mean"
    )
    right.legend()
    return axes


def dependence(ax: Axes, correlations: pd.DataFrame, first: str, second: str) -> Axes:
    """Draw how two measures go together over the orders of each conversation.

    ``correlations`` (columns run, topic, correlation): of `order_correlation`. ``first``,
    ``second``: names of the two measures, for the axis. Returns: One dot a conversation, one row a system; a stroke
    marks the median.
    """
    runs = list(dict.fromkeys(correlations["run"]))
    for row, run in enumerate(reversed(runs)):
        values = correlations.loc[correlations["run"] == run, "correlation"].dropna().sort_values().to_numpy()
        offsets = np.resize([0.0, 0.14, -0.14, 0.07, -0.07], len(values))
        ax.plot(values, row + offsets, "o", color=COLOURS[0], alpha=0.6, markersize=5)
        ax.plot(np.median(values), row, "|", color="black", markersize=22, markeredgewidth=1.6)
    ax.axvline(0, color="#888888", lw=0.8)
    ax.set_yticks(range(len(runs)), list(reversed(runs)))
    ax.set(xlim=(-1.03, 1.03), xlabel=f"Rank correlation of {first} and {second} over the orders of a conversation")
    return ax
