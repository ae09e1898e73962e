"""Figures: each function draws on a matplotlib Axes and returns it.

One style for all: colours that stay apart for colour-blind readers (Okabe and Ito), labelled axes with units, no more
ink than needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from equipoise.attributes import AttributeSet
from equipoise.nuggets import NuggetTable

__all__ = [
    "COLOURS",
    "annotated_conversation",
    "group_colours",
    "position_weight",
    "relevance_against_fairness",
    "use_style",
    "user_clusters",
    "user_model",
]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8B6914", "#444444")
"""Categories, in the order they are used (after Okabe and Ito; yellow, which is faint on white, replaced)."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_USER_TURN, _SYSTEM_TURN = "#D9D9D9", "#F4F4F4"


def use_style() -> None:
    """Set the style of every figure that follows."""
    mpl.rcParams.update(
        {
            "axes.axisbelow": True,
            "axes.grid": True,
            "axes.prop_cycle": cycler(color=COLOURS),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "figure.constrained_layout.use": True,
            "figure.figsize": (8.0, 4.0),
            "font.size": 10,
            "grid.color": "#E3E3E3",
            "grid.linewidth": 0.6,
            "legend.frameon": False,
            "lines.linewidth": 1.8,
            "svg.fonttype": "path",
        }
    )


def group_colours(attribute: AttributeSet) -> list[str]:
    """Colours of the groups of an attribute set: a ramp from light to dark where they are ordered, else categories.

    Returns: Hexadecimal colours.
    """
    count = len(attribute.groups)
    if attribute.kind == "nominal":
        return [COLOURS[index % len(COLOURS)] for index in range(count)]
    ramp = mpl.colormaps["cividis_r"]
    return [mpl.colors.to_hex(ramp(share)) for share in np.linspace(0.05, 1.0, count)]


def _turn_bands(ax: Axes, turns: pd.DataFrame, right: float, labels: bool = True) -> None:
    for turn in turns.itertuples():
        user = turn.speaker == "user"
        left = float(turn.start) - 0.5
        end = (right if pd.isna(turn.end) else float(turn.end)) + 0.5
        ax.axvspan(left, end, color=_USER_TURN if user else _SYSTEM_TURN, lw=0, zorder=0)
        if labels:
            label = f"{'U' if user else 'S'}{turn.turn}"
            ax.annotate(
                label,
                ((left + end) / 2, 1.0),
                xycoords=("data", "axes fraction"),
                xytext=(0, 2),
                textcoords="offset points",
                ha="center",
                va="bottom",
                fontsize=9,
            )


def position_weight(ax: Axes, patience: float, turns: pd.DataFrame, weights: pd.DataFrame) -> Axes:
    """Draw the weight of a nugget over its position, under the turns of a conversation (gfrc Figure 1).

    ``patience``: L, in words. ``turns`` (columns turn, speaker, start, end): Word positions of each turn of one
    conversation. ``weights`` (columns WC, pw): the weighting function at the positions to connect.
    """
    _turn_bands(ax, turns, patience)
    ax.plot(weights["WC"], weights["pw"], color=COLOURS[0])
    for row, align, shift in zip(
        weights.iloc[[0, -1]].itertuples(), ("left", "right"), ((8, 2), (-4, 12)), strict=True
    ):
        ax.plot(row.WC, row.pw, "o", color=COLOURS[0])
        label = f"pw = {row.pw:g} at WC = {row.WC:g}"
        ax.annotate(label, (row.WC, row.pw), xytext=shift, textcoords="offset points", ha=align)
    ax.set(xlabel="Word position WC of the nugget's last word [words]", ylabel="Position weight pw", ylim=(-0.12, 1.1))
    ax.set_xlim(0, weights["WC"].max() * 1.02)
    return ax


def annotated_conversation(
    axes: Sequence[Axes],
    nuggets: NuggetTable,
    conversation: int,
    turns: pd.DataFrame,
    attributes: Mapping[str, AttributeSet],
    names: Sequence[str] = (),
) -> Sequence[Axes]:
    """Draw the nuggets of one conversation over word positions: level and words above, group memberships below.

    ``axes``: one for the levels and one per attribute set, sharing their x axis. ``conversation``: Index of the
    conversation. ``turns`` (columns turn, speaker, start, end): Word positions of its turns; an empty end reaches
    to the last nugget. ``names``: name of each nugget, in the order of the table; may be empty.
    """
    if len(axes) != 1 + len(attributes):
        raise ValueError(f"{len(axes)} axes for {1 + len(attributes)} tracks")
    rows = np.flatnonzero((nuggets.conversation == conversation) & (nuggets.level > 0))
    start, end = nuggets.start[rows], nuggets.end[rows]
    right = float(turns["end"].max()) if turns["end"].notna().all() else float(end.max()) + 5
    low, high = 0.0, right + 1
    width = np.maximum(end - start + 1, (high - low) / 150)
    for ax in axes:
        _turn_bands(ax, turns, right, labels=ax is axes[0])
        ax.grid(visible=False)
    top = axes[0]
    bar = {"width": width, "edgecolor": "white", "linewidth": 0.6}
    top.bar(end + 0.5 - width / 2, nuggets.level[rows], color=COLOURS[0], **bar)
    highest = int(nuggets.level.max(initial=1))
    room = 2.4 if any(names) else 0.3
    for label, x in zip(names, end, strict=False):
        # names are data: show a dollar sign as one, not as mathematics
        text = str(label).replace("$", r"\$")
        top.annotate(
            text,
            (x, highest),
            xytext=(-3, 3),
            textcoords="offset points",
            rotation=60,
            rotation_mode="anchor",
            fontsize=8,
            ha="left",
            va="center",
        )
    top.set(ylim=(0, highest + room), yticks=range(highest + 1), ylabel="Level")
    top.set_yticklabels([f"L{level}" for level in range(highest + 1)])
    for ax, (name, attribute) in zip(axes[1:], attributes.items(), strict=True):
        membership = nuggets.memberships[name][rows]
        base = np.zeros(len(rows))
        for group, colour, share in zip(attribute.groups, group_colours(attribute), membership.T, strict=True):
            if share.any():
                ax.bar(end + 0.5 - width / 2, share, bottom=base, color=colour, label=group.replace("$", r"\$"), **bar)
            base = base + share
        ax.set(ylim=(0, 1), yticks=[0, 1], ylabel=name.replace("$", r"\$"))
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8, handlelength=1)
    axes[-1].set(xlabel="Word position in the conversation [words]", xlim=(low, high))
    return axes


def relevance_against_fairness(ax: Axes, scores: pd.DataFrame) -> Axes:
    """Draw each run's relevance R against its group fairness GF, one marker per attribute set.

    ``scores`` (columns run, topic, attribute, measure, value): Tidy scores of one topic.
    """
    across = scores[scores["measure"] == "R"].set_index("run")["value"]
    upwards = scores[(scores["measure"] == "GF") & (scores["attribute"] != "")]
    for index, (attribute, part) in enumerate(upwards.groupby("attribute", sort=False)):
        values = part.set_index("run")["value"]
        ax.plot(
            across.loc[values.index],
            values,
            MARKERS[index % len(MARKERS)],
            color=COLOURS[index % len(COLOURS)],
            markersize=8,
            label=f"GF {attribute}",
        )
    lowest = upwards.groupby("run", sort=False)["value"].min()
    for run, x in across.items():
        ax.axvline(x, color="#BBBBBB", lw=0.8, zorder=0)
        ax.annotate(
            str(run).replace("$", r"\$"), (x, lowest.loc[run]), xytext=(5, -14), textcoords="offset points", fontsize=9
        )
    ax.set(xlabel="Relevance score R", ylabel="Group fairness score GF", ylim=(0, 1))
    ax.set_xlim(0, float(across.max()) * 1.35 or 1.0)
    ax.legend(loc="upper left")
    return ax


def user_clusters(ax: Axes, clusters: pd.DataFrame, attributes: Mapping[str, AttributeSet], end: float) -> Axes:
    """Draw utility and group fairness of the user clusters of one conversation (gfrc2 Figures 4 and 5).

    ``end``: Right end of the axis, in words, so that conversations can be held beside each other.
    """
    lines = {"GNP (utility)": "GNP", **{f"GF {name}": f"DistrSim {name}" for name in attributes}}
    for index, (label, column) in enumerate(lines.items()):
        ax.plot(
            clusters["wc"],
            clusters[column],
            marker=MARKERS[index % len(MARKERS)],
            color=COLOURS[index % len(COLOURS)],
            label=label.replace("$", r"\$"),
        )
    ax.set(xlabel="Word position where the user cluster leaves [words]", ylabel="Score", ylim=(0, 1), xlim=(0, end))
    ax.legend(loc="upper right", ncols=len(lines))
    return ax


def user_model(ax: Axes, clusters: pd.DataFrame, nuggets: NuggetTable, conversation: int, turns: pd.DataFrame) -> Axes:
    """Draw the user model of GFRC2: the words of a conversation, and the clusters that leave it (gfrc2 Figure 1).

    ``clusters``: User clusters of the conversation. ``conversation``: Index of the conversation.
    """
    rows = np.flatnonzero((nuggets.conversation == conversation) & (nuggets.level > 0))
    right = float(turns["end"].max()) if turns["end"].notna().all() else float(nuggets.end[rows].max()) + 5
    _turn_bands(ax, turns, right)
    for start, end in zip(nuggets.start[rows], nuggets.end[rows], strict=True):
        ax.add_patch(Rectangle((start - 0.5, -0.12), end - start + 1, 0.1, color=COLOURS[0], lw=0))
    for number, cluster in enumerate(clusters.itertuples(), start=1):
        ax.annotate(
            "",
            (cluster.wc + 0.5, cluster.Experience),
            xytext=(cluster.wc + 0.5, -0.02),
            arrowprops={"arrowstyle": "-|>", "color": COLOURS[1], "lw": 1.5, "shrinkA": 0, "shrinkB": 0},
        )
        ax.annotate(
            f"$uc_{{{number}}}$",
            (cluster.wc + 0.5, cluster.Experience),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            color=COLOURS[1],
        )
    ax.annotate("relevant nuggets", (1, -0.07), fontsize=8, color=COLOURS[0], va="center")
    ax.set(xlabel="Word position in the conversation [words]", ylabel="Experience of the cluster that leaves here")
    ax.set(ylim=(-0.14, 1), yticks=np.linspace(0, 1, 6), xlim=(0, right + 1))
    return ax
