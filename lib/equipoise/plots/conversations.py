"""Figures of conversations: nuggets, weights, scores, users; each draws on matplotlib Axes and returns them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from equipoise.arrays import Integers
from equipoise.attributes import AttributeSet
from equipoise.measures.group_fairness import column_names
from equipoise.nuggets import NuggetTable
from equipoise.plots import COLOURS, literal, look, note

_ABOVE: Mapping[str, Any] = {"xycoords": ("data", "axes fraction"), "ha": "center", "va": "bottom"}
_WORDS = "Word position in the conversation [words]"


def _group_colours(attribute: AttributeSet) -> list[str]:
    """Colours of the groups of an attribute set: a ramp from light to dark where they are ordered, else categories."""
    numbers = range(len(attribute.groups))
    if attribute.kind == "nominal":
        return [look(number)["color"] for number in numbers]
    return [mpl.colors.to_hex(shade) for shade in mpl.colormaps["cividis_r"](np.linspace(0.05, 1.0, len(numbers)))]


def _turn_bands(ax: Axes, turns: pd.DataFrame, right: float, labels: bool = True) -> None:
    for turn in turns.itertuples():
        name, colour = ("U", "#D9D9D9") if turn.speaker == "user" else ("S", "#F4F4F4")
        left, end = float(turn.start) - 0.5, (right if pd.isna(turn.end) else float(turn.end)) + 0.5
        ax.axvspan(left, end, color=colour, lw=0, zorder=0)
        if labels:
            note(ax, f"{name}{turn.turn}", ((left + end) / 2, 1.0), (0, 2), fontsize=9, **_ABOVE)


def _relevant(nuggets: NuggetTable, conversation: int, turns: pd.DataFrame) -> tuple[Integers, float]:
    """Nuggets of a conversation above L0, and where it ends: with its turns, or a little behind its last nugget."""
    rows = np.flatnonzero((nuggets.conversation == conversation) & (nuggets.level > 0))
    return rows, float(turns["end"].max() if turns["end"].notna().all() else nuggets.end[rows].max() + 5)


def position_weight(ax: Axes, patience: float, turns: pd.DataFrame, weights: pd.DataFrame) -> Axes:
    """Draw the weight of a nugget over its position, under the turns of a conversation (gfrc Figure 1).

    ``turns`` has the columns turn, speaker, start, end, and ``weights`` WC and pw: the positions to connect.
    """
    _turn_bands(ax, turns, patience)
    ax.plot(weights["WC"], weights["pw"], color=COLOURS[0])
    ends = zip(weights.iloc[[0, -1]].itertuples(), ("left", "right"), ((8, 2), (-4, 12)), strict=True)
    for row, align, shift in ends:
        ax.plot(row.WC, row.pw, "o", color=COLOURS[0])
        note(ax, f"pw = {row.pw:g} at WC = {row.WC:g}", (row.WC, row.pw), shift, ha=align)
    ax.set(xlabel="Word position WC of the nugget's last word [words]", ylabel="Position weight pw", ylim=(-0.12, 1.1))
    ax.set_xlim(0, weights["WC"].max() * 1.02)
    return ax


def annotated_conversation(
    axes: Sequence[Axes],
    nuggets: NuggetTable,
    conversation: int,
    turns: pd.DataFrame,
    attributes: Mapping[str, AttributeSet],
    *,
    named: bool = False,
) -> Sequence[Axes]:
    """Draw the nuggets of one conversation over word positions: level and words above, group memberships below.

    ``axes`` are one for the levels and one per attribute set, sharing their x axis, ``conversation`` the place of the
    conversation in the table, and ``turns`` its turns (columns turn, speaker, start, end); an empty end reaches to the
    last nugget. ``named`` writes what each nugget names above it.
    """
    if len(axes) != 1 + len(attributes):
        raise ValueError(f"{len(axes)} axes for {1 + len(attributes)} tracks")
    rows, right = _relevant(nuggets, conversation, turns)
    start, end = nuggets.start[rows], nuggets.end[rows]
    names = nuggets.names[rows].tolist() if named else []
    width = np.maximum(end - start + 1, (right + 1) / 150)
    for ax in axes:
        _turn_bands(ax, turns, right, labels=ax is axes[0])
        ax.grid(visible=False)
    top, highest = axes[0], int(nuggets.level.max(initial=1))
    bar = {"width": width, "edgecolor": "white", "linewidth": 0.6}
    top.bar(end + 0.5 - width / 2, nuggets.level[rows], color=COLOURS[0], **bar)
    slanted = {"rotation": 60, "rotation_mode": "anchor", "fontsize": 8, "ha": "left", "va": "center"}
    for label, x in zip(names, end, strict=False):
        note(top, literal(label), (x, highest), (-3, 3), **slanted)
    top.set(ylim=(0, highest + (2.4 if any(names) else 0.3)), yticks=range(highest + 1), ylabel="Level")
    top.set_yticklabels([f"L{level}" for level in range(highest + 1)])
    for ax, (name, attribute) in zip(axes[1:], attributes.items(), strict=True):
        base = np.zeros(len(rows))
        shares = nuggets.memberships[name][rows].T
        for group, colour, share in zip(attribute.groups, _group_colours(attribute), shares, strict=True):
            if share.any():
                ax.bar(end + 0.5 - width / 2, share, bottom=base, color=colour, label=literal(group), **bar)
            base = base + share
        ax.set(ylim=(0, 1), yticks=[0, 1], ylabel=literal(name))
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8, handlelength=1)
    axes[-1].set(xlabel=_WORDS, xlim=(0.0, right + 1))
    return axes


def relevance_against_fairness(ax: Axes, scores: pd.DataFrame) -> Axes:
    """Draw each run's relevance R against its group fairness GF, one marker per attribute set.

    ``scores`` are those of one topic (columns run, topic, attribute, measure, value).
    """
    across = scores[scores["measure"] == "R"].set_index("run")["value"]
    upwards = scores[(scores["measure"] == "GF") & (scores["attribute"] != "")]
    for index, (attribute, part) in enumerate(upwards.groupby("attribute", sort=False)):
        values = part.set_index("run")["value"]
        label = f"GF {attribute}"
        ax.plot(across.loc[values.index], values, linestyle="none", markersize=8, label=label, **look(index))
    lowest = upwards.groupby("run", sort=False)["value"].min()
    for run, x in across.items():
        ax.axvline(x, color="#BBBBBB", lw=0.8, zorder=0)
        note(ax, literal(run), (x, lowest.loc[run]), (5, -14), fontsize=9)
    ax.set(xlabel="Relevance score R", ylabel="Group fairness score GF", ylim=(0, 1))
    ax.set_xlim(0, float(across.max()) * 1.35 or 1.0)
    ax.legend(loc="upper left")
    return ax


def user_clusters(ax: Axes, clusters: pd.DataFrame, attributes: Mapping[str, AttributeSet], end: float) -> Axes:
    """Draw utility and group fairness of the user clusters of one conversation (gfrc2 Figures 4 and 5).

    ``end`` is the right end of the axis, in words, so that conversations can be held beside each other.
    """
    lines = {"GNP (utility)": "GNP"} | {f"GF {name}": column_names(a)[-1] for name, a in attributes.items()}
    for index, (label, column) in enumerate(lines.items()):
        ax.plot(clusters["wc"], clusters[column], **look(index), label=literal(label))
    ax.set(xlabel="Word position where the user cluster leaves [words]", ylabel="Score", ylim=(0, 1), xlim=(0, end))
    ax.legend(loc="upper right", ncols=len(lines))
    return ax


def user_model(ax: Axes, clusters: pd.DataFrame, nuggets: NuggetTable, conversation: int, turns: pd.DataFrame) -> Axes:
    """Draw the user model of GFRC2: the words of a conversation, and the clusters that leave it (gfrc2 Figure 1).

    ``clusters`` are the user clusters of the conversation, ``conversation`` its place in the table of nuggets.
    """
    rows, right = _relevant(nuggets, conversation, turns)
    _turn_bands(ax, turns, right)
    for start, end in zip(nuggets.start[rows], nuggets.end[rows], strict=True):
        ax.add_patch(Rectangle((start - 0.5, -0.12), end - start + 1, 0.1, color=COLOURS[0], lw=0))
    arrow = {"arrowstyle": "-|>", "color": COLOURS[1], "lw": 1.5, "shrinkA": 0, "shrinkB": 0}
    for number, cluster in enumerate(clusters.itertuples(), start=1):
        tip = (cluster.wc + 0.5, cluster.Experience)
        ax.annotate("", tip, xytext=(cluster.wc + 0.5, -0.02), arrowprops=arrow)
        note(ax, f"$uc_{{{number}}}$", tip, (0, 3), ha="center", color=COLOURS[1])
    ax.annotate("relevant nuggets", (1, -0.07), fontsize=8, color=COLOURS[0], va="center")
    ax.set(xlabel=_WORDS, ylabel="Experience of the cluster that leaves here")
    ax.set(ylim=(-0.14, 1), yticks=np.linspace(0, 1, 6), xlim=(0, right + 1))
    return ax
