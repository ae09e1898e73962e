"""Figures of conversations: nuggets, weights, scores, users; each draws on matplotlib Axes and returns them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from equipoise.arrays import Floats, Integers
from equipoise.attributes import AttributeSet
from equipoise.measures.group_fairness import column_names
from equipoise.nuggets import NuggetTable
from equipoise_compendium.plots import COLOURS, GREY, literal, look, note

_ABOVE: Mapping[str, Any] = {"xycoords": ("data", "axes fraction"), "ha": "center", "va": "bottom"}
_BESIDE: Mapping[str, Any] = {"ha": "right", "va": "center", "fontsize": 8.5}
_WORDS = "Word position in the conversation [words]"


def _turn_bands(ax: Axes, turns: pd.DataFrame, right: float, labels: bool = True) -> None:
    for turn in turns.itertuples():
        name, colour = ("U", "#D9D9D9") if turn.speaker == "user" else ("S", "#F4F4F4")
        left, end = float(turn.start) - 0.5, (right if pd.isna(turn.end) else float(turn.end)) + 0.5
        ax.axvspan(left, end, color=colour, lw=0, zorder=0)
        if labels:
            note(ax, f"{name}{turn.turn}", ((left + end) / 2, 1.0), (0, 2), fontsize=9, **_ABOVE)


def _relevant(
    nuggets: NuggetTable, conversation: int, turns: pd.DataFrame
) -> tuple[Integers, float]:
    """Nuggets of a conversation above L0, and where it ends: with its turns, or a little behind its last nugget."""
    rows = np.flatnonzero((nuggets.conversation == conversation) & (nuggets.level > 0))
    return rows, float(
        turns["end"].max() if turns["end"].notna().all() else nuggets.end[rows].max() + 5
    )


def position_weight(ax: Axes, weights: pd.DataFrame, scores: pd.DataFrame) -> Axes:
    """Draw the weight of a nugget over its position, and the nuggets of each run on it (gfrc Figure 1).

    ``weights`` has the columns WC and pw, the ends of the slope; ``scores`` are those of
    `gfrc.nugget_scores`.
    """
    ax.plot(weights["WC"], weights["pw"], color=GREY)
    for row, align, shift in zip(
        weights.itertuples(), ("left", "right"), ((8, 2), (4, -16)), strict=True
    ):
        ax.plot(row.WC, row.pw, "|", color="black", markersize=10)
        note(ax, f"pw = {row.pw:g} at WC = {row.WC:g}", (row.WC, row.pw), shift, ha=align)
    for number, (run, part) in enumerate(scores.groupby("run", sort=False)):
        style = look(number) | {
            "markersize": 7,
            "markerfacecolor": (look(number)["color"], 0.5),
            "linestyle": "none",
        }
        ax.plot(
            part["wc"], part["pw"], label=f"{literal(run)}: {len(part)} relevant nuggets", **style
        )
    ax.set(
        xlabel="Word position WC of the nugget's last word [words]",
        ylabel="Position weight pw",
        ylim=(-0.16, 1.1),
    )
    ax.set_xlim(0, weights["WC"].max() * 1.02)
    ax.legend(loc="center right")
    return ax


def annotated_conversations(
    nuggets: NuggetTable,
    turns: pd.DataFrame,
    attributes: Mapping[str, AttributeSet],
    *,
    runs: Sequence[str] = (),
    named: bool = False,
) -> Figure:
    """Draw the nuggets of conversations, one below the other, over one axis of words.

    Above stands the level of each nugget, below it a row for each group of each attribute set, a
    bar as high as the membership; at the right the share of each group among the nuggets, and its
    target. An entity that was named before is hollow and counts for no share. ``turns`` (columns
    run, topic, turn, speaker, start, end) are those of all conversations, an empty end reaching to
    the last nugget; ``runs`` are those to draw, by default all. ``named`` writes what each nugget
    names.
    """
    chosen = [
        (place, *row)
        for place, row in enumerate(nuggets.conversations[["run", "topic"]].to_numpy().tolist())
    ]
    of = {
        place: turns[(turns["run"] == run) & (turns["topic"] == topic)]
        for place, run, topic in chosen
    }
    right = max(_relevant(nuggets, place, part)[1] for place, part in of.items())
    chosen = [row for row in chosen if not runs or row[1] in runs]
    heights = [2.2 if named else 1.1, *(0.19 * len(a.groups) for a in attributes.values())] * len(
        chosen
    )
    figure, axes = plt.subplots(
        len(heights),
        figsize=(10, sum(heights) + 0.3 * len(heights)),
        height_ratios=heights,
        sharex=True,
        squeeze=False,
    )
    for (place, run, _), (top, *below) in zip(chosen, axes.reshape(len(chosen), -1), strict=True):
        rows, end = _relevant(nuggets, place, of[place])
        counted = nuggets.relevant("nonrelevant")[rows]
        for ax in (top, *below):
            _turn_bands(ax, of[place], end, labels=ax is top)
            ax.grid(visible=False)
        width = np.maximum(nuggets.end[rows] - nuggets.start[rows] + 1, right / 240)
        colours = {
            "color": np.where(counted, COLOURS[0], "white"),
            "edgecolor": np.where(counted, "white", COLOURS[0]),
        }
        middle = nuggets.end[rows] + 0.5 - width / 2
        top.bar(middle, nuggets.level[rows], width, linewidth=0.6, **colours)
        highest = int(nuggets.level.max(initial=1))
        top.set(
            ylim=(0, highest + (3.1 if named else 0.3)), yticks=range(highest + 1), ylabel="Level"
        )
        top.set_yticklabels([f"L{level}" for level in range(highest + 1)])
        top.set_title(literal(run), loc="left", pad=16)
        if named:
            _names(top, middle, nuggets.names[rows].tolist(), highest, right)
        for ax, (name, attribute) in zip(below, attributes.items(), strict=True):
            shares = nuggets.memberships[name][rows]
            mean = (
                shares[counted].mean(axis=0) if counted.any() else np.zeros(len(attribute.groups))
            )
            for group, (share, target) in enumerate(zip(mean, attribute.target, strict=True)):
                ax.axhline(group + 0.45, color="#C8C8C8", lw=0.5, zorder=0.5)
                part = shares[:, group] > 0
                how = {name: of_all[part] for name, of_all in colours.items()}
                ax.bar(
                    middle[part],
                    -0.85 * shares[part, group],
                    width[part],
                    group + 0.45,
                    linewidth=0.6,
                    **how,
                )
                for x, value in ((1.06, share), (1.12, target)):
                    ax.text(x, group, f"{value:.0%}", transform=ax.get_yaxis_transform(), **_BESIDE)
            ax.set_ylim(len(attribute.groups) - 0.45, -0.5)
            ax.set_yticks(
                range(len(attribute.groups)), map(literal, attribute.groups), fontsize=8.5
            )
            ax.set_ylabel(literal(name), rotation=0, ha="right", va="center", labelpad=4)
            ax.tick_params(left=False)
        for x, head in ((1.06, "nuggets"), (1.12, "target")):
            below[0].text(x, -1, head, transform=below[0].get_yaxis_transform(), **_BESIDE)
    axes[-1, 0].set(xlabel=_WORDS, xlim=(0.0, right + 1))
    figure.align_ylabels(axes)
    return figure


def _names(ax: Axes, places: Floats, names: Sequence[str], height: float, right: float) -> None:
    """Write names above places, apart enough to read, with a line to each."""
    slanted = {
        "rotation": 60,
        "rotation_mode": "anchor",
        "fontsize": 8.5,
        "ha": "left",
        "va": "center",
    }
    x = -np.inf
    for place, name in zip(places, names, strict=True):
        x = max(place, x + 0.02 * right)
        if name:
            ax.plot([place, x], [height + 0.08, height + 0.4], color=GREY, lw=0.6)
            note(ax, literal(name), (x, height + 0.4), (0, 3), **slanted)


def relevance_against_fairness(ax: Axes, scores: pd.DataFrame) -> Axes:
    """Draw each run's relevance R against its group fairness GF, one marker per attribute set.

    ``scores`` are those of one topic (columns run, topic, attribute, measure, value).
    """
    across = scores[scores["measure"] == "R"].set_index("run")["value"]
    upwards = scores[(scores["measure"] == "GF") & (scores["attribute"] != "")]
    for index, (attribute, part) in enumerate(upwards.groupby("attribute", sort=False)):
        values = part.set_index("run")["value"]
        label = f"GF {attribute}"
        ax.plot(
            across.loc[values.index],
            values,
            linestyle="none",
            markersize=8,
            label=label,
            **look(index),
        )
    lowest = upwards.groupby("run", sort=False)["value"].min()
    for run, x in across.items():
        ax.axvline(x, color=GREY, lw=0.8, zorder=0)
        note(ax, literal(run), (x, lowest.loc[run]), (5, -14), fontsize=9)
    ax.set(xlabel="Relevance score R", ylabel="Group fairness score GF", ylim=(0, 1))
    ax.set_xlim(0, float(across.max()) * 1.35 or 1.0)
    ax.legend(loc="upper left")
    return ax


def user_clusters(
    axes: Sequence[Axes], clusters: pd.DataFrame, attributes: Mapping[str, AttributeSet]
) -> Sequence[Axes]:
    """Draw utility and group fairness of the user clusters, an axis for each run (gfrc2 Figures 4 and 5).

    All show as many words, so that conversations can be compared.
    """
    lines = {"utility (GNP)": "GNP"} | {
        f"fairness ({name})": column_names(a)[-1] for name, a in attributes.items()
    }
    for ax, (run, part) in zip(axes, clusters.groupby("run", sort=False), strict=True):
        for index, (label, column) in enumerate(lines.items()):
            ax.plot(part["wc"], part[column], **look(index))
            note(
                ax,
                literal(label),
                (part["wc"].iloc[-1], part[column].iloc[-1]),
                (8, -3),
                color=look(index)["color"],
            )
        ax.set(ylabel="Score", ylim=(0, 1), xlim=(0, clusters["wc"].max() * 1.3))
        ax.set_xlabel("Word position where the user cluster leaves [words]")
        ax.set_title(literal(run), loc="left", fontsize=10)
    return axes


def user_model(
    ax: Axes, clusters: pd.DataFrame, nuggets: NuggetTable, conversation: int, turns: pd.DataFrame
) -> Axes:
    """Draw the user model of GFRC2: the words of a conversation, and the clusters that leave it (gfrc2 Figure 1).

    ``clusters`` are the user clusters of the conversation, ``conversation`` its place in the table
    of nuggets.
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
    ax.annotate("relevant nuggets", (1, -0.07), fontsize=8.5, color=COLOURS[0], va="center")
    ax.set(xlabel=_WORDS, ylabel="Experience of the cluster that leaves here")
    ax.set(ylim=(-0.14, 1), yticks=np.linspace(0, 1, 6), xlim=(0, right + 1))
    return ax
