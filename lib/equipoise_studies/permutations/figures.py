"""Figures of the permutation study: each function draws on matplotlib Axes and returns them.

The style is that of `equipoise_compendium.plots`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from equipoise.orders.class_structures import ClassStructure
from equipoise.orders.conversations import Conversation
from equipoise_compendium.plots import COLOURS, GREY, look
from equipoise_studies.plots.orders import SCRIPT_MARK

_CLASS_COLOURS = {"SE": "#A6D0EE", "FT": "#F5CE7A", "PT": "#8FD6BC"}  # light, for black letters
_CLASS_NAMES = {"SE": "self-explanatory", "FT": "on the first topic", "PT": "on a previous topic"}
_ALL_ORDERS: dict[str, Any] = {"color": "#9CC9E8", "lw": 14}
_SAMPLED_ORDERS: dict[str, Any] = {"color": "#3C444C", "lw": 3}


def utterance_blocks(table: pd.DataFrame, scripts: Sequence[Conversation]) -> pd.DataFrame:
    """Block of every utterance of conversations with a class structure: what the figure draws.

    ``table``: what the conversations were made from. Returns columns topic, turn, class, block, the
    utterances in the order of their blocks; block 0 opens the conversation.
    """
    rows = []
    for script in scripts:
        structure = script.structure
        if not isinstance(structure, ClassStructure):
            kind = type(structure).__name__
            raise TypeError(f"topic {script.topic} has a {kind}, which has no blocks")
        for number, block in enumerate(structure.blocks):
            for utterance in block:
                rows.append((script.topic, script.queries[utterance], number))
    blocks = pd.DataFrame(rows, columns=["topic", "query", "block"])
    blocks = blocks.merge(table[["query", "turn", "class"]], on="query")
    return blocks[["topic", "turn", "class", "block"]]


def conversation_structures(
    ax: Axes, utterances: pd.DataFrame, counts: pd.Series, *, classes: bool = True
) -> Axes:
    """Draw the blocks of conversations: a row each, a tile an utterance, and their valid orders.

    ``utterances``: of `utterance_blocks`. ``counts``: number of valid orders by topic. ``classes``:
    whether tiles name them, where there is room; their colours do in any case.
    """
    rows, topics = pd.factorize(utterances["topic"])
    # a gap before each block
    lefts = utterances.groupby("topic").cumcount() + 0.45 * utterances["block"]
    tiles = zip(rows, lefts, utterances["turn"], utterances["class"], strict=True)
    for row, left, turn, utterance_class in tiles:
        colour = _CLASS_COLOURS[utterance_class]
        ax.add_patch(Rectangle((left, row - 0.4), 1, 0.8, facecolor=colour, edgecolor="white"))
        label = f"{turn} {utterance_class}" if classes else turn
        ax.text(left + 0.5, row, label, ha="center", va="center", fontsize=9)
    right = lefts.max() + 1.45
    for row, topic in enumerate(topics):
        ax.text(right + 1.8, row, f"{counts[topic]:,}", ha="right", va="center", fontsize=9)
    ax.text(right + 1.8, -0.9, "orders", ha="right", va="center", fontsize=9)
    ax.set(xlim=(-0.3, right + 2), ylim=(len(topics) - 0.4, -1.4), xticks=[], ylabel="Conversation")
    ax.set_yticks(range(len(topics)), topics)
    ax.grid(visible=False)
    ax.spines[["bottom", "left"]].set_visible(False)
    handles = []
    for name, colour in _CLASS_COLOURS.items():
        handles.append(Patch(color=colour, label=f"{name}: {_CLASS_NAMES[name]}"))
    columns = len(handles) if classes else 1
    ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.45, 0), ncols=columns)
    return ax


def exact_ranges(ax: Axes, table: pd.DataFrame, script: pd.Series, measure: str = "nDCG@3") -> Axes:
    """Draw what sampling sees of each system beside what is exactly so over all valid orders.

    ``table``: of `sampling_error`. ``script``: score in the order of the script, by system.
    """
    place = np.arange(len(table))[::-1]
    ax.hlines(place, table["minimum"], table["maximum"], **_ALL_ORDERS)
    ax.hlines(place, table["sampled minimum"], table["sampled maximum"], **_SAMPLED_ORDERS)
    ax.plot(table["mean"], place, "|", color="black", markersize=17, markeredgewidth=1.6)
    ax.plot(script[table["run"]], place, zorder=5, markersize=6, **SCRIPT_MARK)
    ax.set_yticks(place, table["run"])
    ax.set(xlabel=f"Mean {measure} over conversations", ylim=(-0.7, len(table) - 0.3))
    handles = [
        Line2D([], [], label="all orders, lowest to highest", **_ALL_ORDERS),
        Line2D([], [], label="sampled orders, lowest to highest", **_SAMPLED_ORDERS),
        Line2D(
            [], [], color="black", marker="|", markersize=11, linestyle="none", label="exact mean"
        ),
        Line2D([], [], label="order of the script", **SCRIPT_MARK),
    ]
    ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)
    return ax


def sample_size(
    axes: Sequence[Axes], stability: pd.DataFrame, errors: pd.DataFrame
) -> Sequence[Axes]:
    """Draw how many permutations a ranking needs: agreement with the exact one, standard errors.

    ``stability``: of `equipoise.measures.orders.ranking_stability`. ``errors``: of
    `standard_errors`.
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
    return axes


def dependence(ax: Axes, correlations: pd.DataFrame, first: str, second: str) -> Axes:
    """Draw how two measures go together: a dot a conversation, a row a system, a stroke the median.

    ``correlations``: columns run, correlation. ``first``, ``second``: names of the two measures,
    for the axis.
    """
    runs = list(dict.fromkeys(correlations["run"]))[::-1]
    for row, run in enumerate(runs):
        of_run = correlations.loc[correlations["run"] == run, "correlation"]
        values = np.sort(of_run.dropna().to_numpy())
        # up and down by turns, so that equal values do not hide one another
        offsets = np.resize([0.0, 0.14, -0.14, 0.07, -0.07], len(values))
        ax.plot(
            values,
            row + offsets,
            "o",
            color=COLOURS[0],
            markerfacecolor=(COLOURS[0], 0.4),
            markersize=5,
        )
        ax.plot(np.median(values), row, "|", color="black", markersize=22, markeredgewidth=1.6)
    ax.axvline(0, color=GREY, lw=0.8)
    ax.set_yticks(range(len(runs)), runs)
    ax.set(
        xlim=(-1.03, 1.03),
        xlabel=f"Rank correlation of {first} and {second} over the orders of a conversation",
    )
    return ax
