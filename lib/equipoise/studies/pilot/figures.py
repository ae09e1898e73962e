"""Figures of the pilot study: outcomes of conversations, and what users of ranked lists have had when they leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from equipoise.plots import look, note

_PATTERNS: Mapping[str, tuple[str, str]] = {
    "oo": ("#6BBF8A", "useful, useful"),
    "ox": ("#CDE8C5", "useful, then not"),
    "xo": ("#FBE38E", "not useful, then useful"),
    "xx": ("#F3B183", "not useful twice"),
    "x-": ("#CFCFCF", "breakdown"),
}
"""Colour and meaning of each pair of outcomes; the colours follow gfrc's Figures 2 to 4."""


def outcomes(ax: Axes, turns: pd.DataFrame) -> Axes:
    """Draw the outcomes of system turns 1 and 2, one row per topic, the runs side by side (gfrc Figures 2 to 4).

    ``turns`` has the columns run, topic, turn, outcome.
    """
    runs, topics = (list(dict.fromkeys(turns[column])) for column in ("run", "topic"))
    pairs = turns.sort_values("turn", kind="stable").groupby(["run", "topic"])["outcome"].agg("".join)
    for (run, topic), pair in pairs.items():
        left, row = 2.15 * runs.index(run), topics.index(topic)
        colour, _ = _PATTERNS.get(pair, ("white", ""))
        ax.add_patch(Rectangle((left, row), 2, 1, facecolor=colour, edgecolor="white", linewidth=2))
        for turn, mark in enumerate(pair):
            ax.text(left + 0.5 + turn, row + 0.5, mark, ha="center", va="center")
    centres = [2.15 * column + 0.5 + turn for column in range(len(runs)) for turn in (0, 1)]
    ax.set_xticks(centres, ["$S_1$", "$S_2$"] * len(runs))
    for column, run in enumerate(runs):
        note(ax, run, (2.15 * column + 1, 1.0), (0, 20), xycoords=("data", "axes fraction"), ha="center", va="bottom")
    ax.xaxis.tick_top()
    ax.set_yticks(np.arange(len(topics)) + 0.5, topics)
    ax.set(xlim=(0, 2.15 * len(runs) - 0.15), ylim=(len(topics), 0))
    ax.tick_params(length=0)
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    handles = [Patch(color=colour, label=label) for pair, (colour, label) in _PATTERNS.items() if pair in set(pairs)]
    ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0), ncols=2)
    return ax


def protocol(ax: Axes, turns: Sequence[tuple[str, str]], breakdown: str) -> Axes:
    """Draw the two-round protocol (gfrc Figure 1): turns from left to right, and the end behind the first answer.

    ``turns`` are names with what is said, ``breakdown`` what the end is called.
    """
    for place, (name, said) in enumerate(turns):
        colour = "#E4E4E4" if name.startswith("S") else "#CFCFCF"
        ax.add_patch(Rectangle((place, 0.45), 0.86, 0.5, facecolor=colour))
        ax.text(place + 0.43, 0.7, f"{name}\n{said}", ha="center", va="center", fontsize=8)
        if place:
            ax.annotate("", (place, 0.7), (place - 0.14, 0.7), arrowprops={"arrowstyle": "->"})
    ax.annotate(breakdown, (1.43, 0.45), (1.43, 0.02), ha="center", fontsize=8, arrowprops={"arrowstyle": "<-"})
    ax.set(xlim=(-0.05, len(turns)), ylim=(-0.1, 1))
    ax.axis("off")
    return ax


def user_groups(ax: Axes, clusters: pd.DataFrame, utility: str, similarities: Mapping[str, str]) -> Axes:
    """Draw what users have had who leave a ranked list at the same rank, and how many they are.

    ``clusters`` are those of one run and topic that `equipoise.measures.gfr.gfr_clusters` returns. ``utility`` and, by
    attribute set, ``similarities`` are the measures to draw, such as ERR and ``DistrSim-RNOD``; a set without values is
    left out.
    """
    share = clusters[clusters["measure"] == "share"]
    ax.bar(share["rank"], share["value"], color="#D9D9D9", width=0.8, label="share of the users")
    if share.empty:
        ax.text(0.5, 0.5, "nothing relevant: nobody leaves", transform=ax.transAxes, ha="center", color="#666666")
    for number, (attribute, measure) in enumerate({"": utility, **similarities}.items()):
        rows = clusters[(clusters["attribute"] == attribute) & (clusters["measure"] == measure)]
        if len(rows):
            label = f"{attribute} {measure}" if attribute else f"utility ({measure})"
            ax.plot(rows["rank"], rows["value"], label=label, markersize=4, **look(number))
    ax.set(ylim=(0, 1.02), xlabel="Rank at which users leave", ylabel="Share of users, or score")
    return ax
