"""Figures of the permutation study: each function draws on matplotlib Axes and returns them.

The style is that of `equipoise_compendium.plots`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from equipoise.permutations.scores import ORIGINAL
from equipoise_compendium.plots import COLOURS, literal, look

_CLASS_COLOURS = {"SE": "#A6D0EE", "FT": "#F5CE7A", "PT": "#8FD6BC"}  # light, for black letters
_CLASS_NAMES = {"SE": "self-explanatory", "FT": "on the first topic", "PT": "on a previous topic"}
_ALL: dict[str, Any] = {"color": "#9CC9E8", "lw": 14}
_SAMPLED: dict[str, Any] = {"color": "#3C444C", "lw": 3}
_ORIGINAL_MARK: dict[str, Any] = {
    "marker": "D",
    "color": "#F0C808",
    "markeredgecolor": "black",
    "markeredgewidth": 0.8,
    "linestyle": "none",
}


def conversation_structures(ax: Axes, utterances: pd.DataFrame, counts: pd.Series) -> Axes:
    """Draw the blocks of conversations: one row each, one tile per utterance.

    ``utterances``: columns topic, turn, class, block, in the order of the blocks. ``counts``:
    number of valid permutations by topic.
    """
    rows, topics = pd.factorize(utterances["topic"])
    # a gap before each block
    lefts = utterances.groupby("topic").cumcount() + 0.45 * utterances["block"]
    tiles = zip(rows, lefts, utterances["turn"], utterances["class"], strict=True)
    for row, left, turn, utterance_class in tiles:
        colour = _CLASS_COLOURS[utterance_class]
        ax.add_patch(Rectangle((left, row - 0.4), 1, 0.8, facecolor=colour, edgecolor="white"))
        label = f"{turn} {utterance_class}"
        ax.text(left + 0.5, row, label, ha="center", va="center", fontsize=9)
    right = lefts.max() + 1.45
    for row, topic in enumerate(topics):
        ax.text(right + 1.8, row, f"{counts[topic]:,}", ha="right", va="center", fontsize=9)
    ax.text(right + 1.8, -0.9, "permutations", ha="right", va="center", fontsize=9)
    ax.set(xlim=(-0.3, right + 2), ylim=(len(topics) - 0.4, -1.4), xticks=[], ylabel="Conversation")
    ax.set_yticks(range(len(topics)), topics)
    ax.grid(visible=False)
    ax.spines[["bottom", "left"]].set_visible(False)
    handles = []
    for name, colour in _CLASS_COLOURS.items():
        handles.append(Patch(color=colour, label=f"{name}: {_CLASS_NAMES[name]}"))
    ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.45, 0), ncols=3)
    return ax


def spread_of_conversations(ax: Axes, spread: pd.DataFrame, measure: str = "nDCG@3") -> Axes:
    """Draw each conversation's score over its permutations: quartiles and extremes (Figure 1).

    Conversations are sorted by their median. A diamond marks the original order.

    ``spread``: of `conversation_spread`.
    """
    medians = spread.groupby("topic", sort=False)["value"].median().sort_values(kind="stable")
    is_original = spread["permutation"] == ORIGINAL
    original = spread[is_original].set_index("topic")["value"].loc[medians.index]
    samples = [spread.loc[spread["topic"] == topic, "value"].to_numpy() for topic in original.index]
    line = {"color": COLOURS[0]}
    ax.boxplot(
        samples,
        tick_labels=list(map(literal, original.index)),
        whis=(0, 100),
        widths=0.6,
        patch_artist=True,
        boxprops={"facecolor": (COLOURS[0], 0.3), "edgecolor": COLOURS[0]},
        whiskerprops=line,
        capprops=line,
        medianprops={"color": "black"},
    )
    places = range(1, len(original) + 1)
    ax.plot(places, original, label="original order", zorder=5, **_ORIGINAL_MARK)
    ax.set(xlabel="Conversation", ylabel=f"Mean {measure} over systems")
    ax.legend()
    return ax


def preferences(axes: Sequence[Axes], table: pd.DataFrame, runs: Sequence[str]) -> None:
    """Draw on what percentage of the permutations the row's system beats the column's.

    One panel per conversation; blue where it wins more than half, red where less. Each pair is
    drawn once: the remainder to 100 are the column's permutations and the ties.

    ``table``: of `preference`. ``runs``: systems, in the order of the rows and columns.
    """
    names = list(map(literal, runs))
    style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8.5}
    for ax, (topic, topic_rows) in zip(axes, table.groupby("topic", sort=False), strict=True):
        wins = topic_rows.pivot_table(index="a", columns="b", values="wins")
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


def preference_panels(
    table: pd.DataFrame, runs: Sequence[str], count: int, rng: np.random.Generator
) -> Figure:
    """Draw Figure 2 for some conversations, drawn at random, four in a row."""
    topics = table["topic"].unique()
    drawn = rng.choice(len(topics), min(count, len(topics)), replace=False)
    topics_shown = topics[np.sort(drawn)]
    n_rows = math.ceil(len(topics_shown) / 4)
    figure, axes = plt.subplots(n_rows, 4, figsize=(13, 3 * n_rows), squeeze=False)
    panels = axes.ravel()
    for ax in panels[len(topics_shown) :]:
        ax.set_axis_off()
    rows_shown = table[table["topic"].isin(topics_shown)]
    preferences(list(panels[: len(topics_shown)]), rows_shown, runs)
    return figure


def exact_ranges(
    ax: Axes, table: pd.DataFrame, original: pd.Series, measure: str = "nDCG@3"
) -> Axes:
    """Draw each system's range over sampled permutations next to the range over all valid ones.

    ``table``: of `sampling_error`. ``original``: score in the original order, by system.
    """
    place = np.arange(len(table))[::-1]
    ax.hlines(place, table["minimum"], table["maximum"], **_ALL)
    ax.hlines(place, table["sampled minimum"], table["sampled maximum"], **_SAMPLED)
    ax.plot(table["mean"], place, "|", color="black", markersize=17, markeredgewidth=1.6)
    ax.plot(original[table["run"]], place, zorder=5, markersize=6, **_ORIGINAL_MARK)
    ax.set_yticks(place, table["run"])
    ax.set(xlabel=f"Mean {measure} over conversations", ylim=(-0.7, len(table) - 0.3))
    handles = [
        Line2D([], [], label="all permutations, lowest to highest", **_ALL),
        Line2D([], [], label="sampled permutations, lowest to highest", **_SAMPLED),
        Line2D(
            [], [], color="black", marker="|", markersize=11, linestyle="none", label="exact mean"
        ),
        Line2D([], [], label="original order", **_ORIGINAL_MARK),
    ]
    ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)
    return ax


def sample_size(axes: Sequence[Axes], stability: pd.DataFrame, errors: pd.DataFrame) -> None:
    """Draw how many permutations a ranking needs: agreement with the exact one, standard errors.

    ``stability``: of `ranking_stability`. ``errors``: of `standard_errors`.
    """
    agreement_ax, error_ax = axes
    sizes = stability["permutations"]
    agreement_ax.plot(
        sizes, stability["tau"], marker="o", label="mean Kendall tau", color=COLOURS[0]
    )
    # Tau of a few systems takes a few values, so its percentile leaps: no line between sizes.
    style: dict[str, Any] = {"alpha": 0.3, "color": COLOURS[0], "lw": 5}
    agreement_ax.vlines(
        sizes, stability["low"], stability["tau"], label="down to its 5th percentile", **style
    )
    agreement_ax.plot(
        sizes, stability["same"], marker="s", color=COLOURS[1], label="share with the same ranking"
    )
    agreement_ax.plot(
        sizes, stability["best"], marker="^", color=COLOURS[2], label="share with the same best"
    )
    agreement_ax.set(
        xscale="log",
        xlabel="Permutations of each conversation",
        ylabel="Agreement with the exact ranking",
    )
    agreement_ax.legend(loc="lower right")
    for number, (run, part) in enumerate(errors.groupby("run", sort=False)):
        error_ax.plot(
            part["permutations"], part["standard error"], label=run, markersize=4, **look(number)
        )
    error_ax.set(
        xscale="log",
        yscale="log",
        xlabel=agreement_ax.get_xlabel(),
        ylabel="Standard error of the mean",
    )
    error_ax.legend()
    for ax in axes:
        ax.xaxis.set_major_formatter("{x:g}")
