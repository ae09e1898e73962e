"""Figures of the permutation study: each function draws one and returns it.

The titles state what the drawn values show. The style is that of `equipoise_compendium.plots`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from equipoise.permutations.scores import ORIGINAL
from equipoise_compendium.plots import COLOURS, literal, look

_CLASS_COLOURS = {"SE": "#A6D0EE", "FT": "#F5CE7A", "PT": "#8FD6BC"}  # light, for black letters
_CLASS_NAMES = {"SE": "self-explanatory", "FT": "on the first topic", "PT": "on a previous topic"}
_BOX: dict[str, Any] = {"facecolor": (COLOURS[0], 0.3), "edgecolor": COLOURS[0]}
_ALL: dict[str, Any] = {"color": "#9CC9E8", "lw": 14}
_SAMPLED: dict[str, Any] = {"color": "#3C444C", "lw": 3}
_ORIGINAL_MARK: dict[str, Any] = {
    "marker": "D",
    "color": "#F0C808",
    "markeredgecolor": "black",
    "markeredgewidth": 0.8,
    "linestyle": "none",
}
_TITLE: dict[str, Any] = {"loc": "left", "fontsize": 11}
_PREFERENCE: dict[str, Any] = {"cmap": "RdBu", "norm": Normalize(0, 100)}


def conversation_structures(utterances: pd.DataFrame, counts: pd.Series) -> Figure:
    """Draw the blocks of conversations: one row each, one tile per utterance.

    ``utterances``: columns topic, turn, class, block, in the order of the blocks. ``counts``:
    number of valid permutations by topic.
    """
    figure, ax = plt.subplots(figsize=(9.5, 6.6))
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
    ax.text(right + 1.8, -0.9, "Valid permutations", ha="right", va="center", fontsize=9)
    ax.set(xlim=(-0.3, right + 2), ylim=(len(topics) - 0.4, -1.4), xticks=[])
    ax.set_ylabel(f"Conversation (n = {len(topics)})")
    ax.set_yticks(range(len(topics)), topics)
    ax.grid(visible=False)
    ax.spines[["bottom", "left"]].set_visible(False)
    handles = []
    for name, colour in _CLASS_COLOURS.items():
        handles.append(Patch(color=colour, label=f"{name}: {_CLASS_NAMES[name]}"))
    ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.45, 0), ncols=3)
    fewest, most = counts.min(), counts.max()
    ax.set_title(f"A conversation has {fewest:,} to {most:,} valid permutations", **_TITLE)
    return figure


def spread_of_conversations(spread: pd.DataFrame, systems: int, measure: str = "nDCG@3") -> Figure:
    """Draw each conversation's score over its permutations: quartiles and extremes (Figure 1).

    Conversations are sorted by their median. A diamond marks the original order.

    ``spread``: of `conversation_spread`. ``systems``: how many the scores are means of.
    """
    figure, ax = plt.subplots(figsize=(8, 4.6))
    medians = spread.groupby("topic", sort=False)["value"].median().sort_values(kind="stable")
    original = spread[spread["permutation"] == ORIGINAL].set_index("topic").loc[medians.index]
    samples = [spread.loc[spread["topic"] == topic, "value"].to_numpy() for topic in medians.index]
    line: dict[str, Any] = {"color": COLOURS[0]}
    ax.boxplot(
        samples,
        tick_labels=list(map(literal, medians.index)),
        whis=(0, 100),
        widths=0.6,
        patch_artist=True,
        boxprops=_BOX,
        whiskerprops=line,
        capprops=line,
        medianprops={"color": "black"},
    )
    places = range(1, len(original) + 1)
    ax.plot(places, original["value"], label="original order", zorder=5, **_ORIGINAL_MARK)
    most = spread.groupby("topic").size().max()
    ax.set_xlabel(f"Conversation (n = {len(original)}, up to {most} permutations each)")
    ax.set_ylabel(f"{measure}, mean over {systems} systems")
    handles = [
        Line2D([], [], label="original order", **_ORIGINAL_MARK),
        Patch(label="quartiles", **_BOX),
        Line2D([], [], color="black", label="median"),
        Line2D([], [], label="minimum to maximum", **line),
    ]
    ax.legend(handles=handles, loc="upper left")
    beaten = (original["rank"] > 0.5).sum()
    ax.set_title(
        f"In {beaten} of {len(original)} conversations, most permutations score higher than the "
        "original order",
        **_TITLE,
    )
    return figure


def preferences(table: pd.DataFrame, runs: Sequence[str]) -> Figure:
    """Draw Figure 2: one row per conversation, one column per pair of systems.

    A cell is the percentage of the permutations on which the first system of the pair scores higher
    than the second; blue where it wins more than half, red where less.

    ``table``: of `preference`. ``runs``: systems, in the order of the pairs.
    """
    pairs = list(combinations(runs, 2))
    wins = table.pivot_table(index="topic", columns=["a", "b"], values="wins", sort=False)
    percentages = 100 * wins[pairs].to_numpy()
    figure, ax = plt.subplots(figsize=(8, 1.9 + 0.26 * len(wins)))
    ax.imshow(percentages, aspect="auto", **_PREFERENCE)
    for row, column in np.ndindex(percentages.shape):
        percentage = percentages[row, column]
        # The ends of the scale are too dark for black letters.
        colour = "white" if abs(percentage - 50) > 32 else "black"
        ax.text(column, row, f"{percentage:.0f}", color=colour, ha="center", va="center")
    names = [f"{literal(first)}\nover\n{literal(second)}" for first, second in pairs]
    ax.set_xticks(range(len(pairs)), names, fontsize=7.5)
    ax.set_yticks(range(len(wins)), list(map(literal, wins.index)))
    ax.tick_params(labeltop=True, labelbottom=False)
    ax.set_ylabel(f"Conversation (n = {len(wins)})")
    ax.grid(visible=False)
    figure.colorbar(
        ScalarMappable(**_PREFERENCE),
        ax=ax,
        orientation="horizontal",
        label="Permutations on which the first system scores higher than the second (%)",
        aspect=50,
        fraction=0.04,
        pad=0.02,
    )
    depends = ((percentages > 0) & (percentages < 100)).mean()
    ax.set_title(
        f"In {depends:.0%} of {percentages.size} comparisons, the permutation decides which system "
        "scores higher",
        **_TITLE,
    )
    return figure


def exact_ranges(
    table: pd.DataFrame, original: pd.Series, conversations: int, measure: str = "nDCG@3"
) -> Figure:
    """Draw each system's range over sampled permutations next to the range over all valid ones.

    ``table``: of `sampling_error`. ``original``: score in the original order, by system.
    ``conversations``: how many the scores are means of.
    """
    figure, ax = plt.subplots(figsize=(9, 4.3))
    place = np.arange(len(table))[::-1]
    ax.hlines(place, table["minimum"], table["maximum"], **_ALL)
    ax.hlines(place, table["sampled minimum"], table["sampled maximum"], **_SAMPLED)
    ax.plot(table["mean"], place, "|", color="black", markersize=17, markeredgewidth=1.6)
    ax.plot(original[table["run"]], place, zorder=5, markersize=6, **_ORIGINAL_MARK)
    ax.set_yticks(place, table["run"])
    ax.set_xlabel(f"{measure}, mean over n = {conversations} conversations")
    ax.set(ylabel="System", ylim=(-0.7, len(table) - 0.3))
    handles = [
        Line2D([], [], label="minimum to maximum, all valid permutations", **_ALL),
        Line2D([], [], label="minimum to maximum, sampled permutations", **_SAMPLED),
        Line2D(
            [], [], color="black", marker="|", markersize=11, linestyle="none", label="exact mean"
        ),
        Line2D([], [], label="original order", **_ORIGINAL_MARK),
    ]
    ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)
    sampled = table["sampled maximum"] - table["sampled minimum"]
    covered = sampled / (table["maximum"] - table["minimum"])
    share = f"{covered.min():.0%} to {covered.max():.0%}"
    ax.set_title(f"Sampled permutations cover {share} of a system's range", **_TITLE)
    return figure


def sample_size(
    stability: pd.DataFrame, errors: pd.DataFrame, conversations: int, measure: str = "nDCG@3"
) -> Figure:
    """Draw how many permutations a ranking needs: agreement with the exact one, standard errors.

    ``stability``: of `ranking_stability`. ``errors``: of `standard_errors`. ``conversations``: how
    many the scores are means of.
    """
    figure, (agreement_ax, error_ax) = plt.subplots(2, figsize=(8, 8))
    sizes = stability["permutations"]
    agreement_ax.plot(
        sizes, stability["tau"], marker="o", label="Kendall's tau, mean", color=COLOURS[0]
    )
    # Tau of a few systems takes a few values, so its percentile leaps: no line between sizes.
    style: dict[str, Any] = {"alpha": 0.3, "color": COLOURS[0], "lw": 5}
    label = "Kendall's tau, mean to 5th percentile"
    agreement_ax.vlines(sizes, stability["low"], stability["tau"], label=label, **style)
    label = "share of samples with the exact ranking"
    agreement_ax.plot(sizes, stability["same"], marker="s", color=COLOURS[1], label=label)
    label = "share of samples with the best system first"
    agreement_ax.plot(sizes, stability["best"], marker="^", color=COLOURS[2], label=label)
    agreement_ax.set(
        xscale="log",
        xlabel=f"Permutations of each of n = {conversations} conversations",
        ylabel="Agreement with the exact ranking",
    )
    agreement_ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
    for number, (run, part) in enumerate(errors.groupby("run", sort=False)):
        error_ax.plot(
            part["permutations"], part["standard error"], label=run, markersize=4, **look(number)
        )
    error_ax.set(
        xscale="log",
        yscale="log",
        xlabel=agreement_ax.get_xlabel(),
        ylabel=f"Standard error of mean {measure}",
    )
    error_ax.legend(title="System")
    for ax in (agreement_ax, error_ax):
        ax.xaxis.set_major_formatter("{x:g}")
    is_enough = stability["same"] >= 0.95
    enough = stability.loc[is_enough.idxmax() if is_enough.any() else stability.index[-1]]
    size = enough["permutations"]
    share = f"{enough['same']:.0%}"
    agreement_ax.set_title(
        f"{size:g} permutations give the exact ranking in {share} of samples", **_TITLE
    )
    largest = errors.loc[errors["permutations"] == size, "standard error"].max()
    error_ax.set_title(
        f"With {size:g} permutations, standard errors are at most {largest:.4f}", **_TITLE
    )
    return figure
