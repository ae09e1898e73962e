"""Figures of conversations: nuggets, weights, scores and users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from equipoise.arrays import Booleans, Floats, Integers
from equipoise.attributes import AttributeSet
from equipoise.measures.group_fairness import column_names
from equipoise.nuggets import NuggetTable
from equipoise_compendium.plots import COLOURS, GREY, literal, look, note

_ABOVE: Mapping[str, Any] = {"xycoords": ("data", "axes fraction"), "ha": "center", "va": "bottom"}
_BESIDE: Mapping[str, Any] = {"ha": "right", "va": "center", "fontsize": 8.5}
_SHARE_AT, _TARGET_AT = 38, 72
"""Where the columns beside the groups end, in points from the axes."""
_BARS_HEIGHT, _LINE_HEIGHT, _LETTER = 0.7, 0.17, 0.072
"""Inches of the bars of levels, of a line of names above them, and of a letter."""
_MARGINS = 2.1
"""Inches beside the axes, for names of groups and their shares."""
_THINNEST = 0.035
"""Inches of a bar; that of a nugget of a few words would be too thin to be seen."""
_TURN_LABEL = 0.2
"""Inches of the label of a turn."""
_WORDS = "Word position in the conversation [words]"


def _turn_bands(
    ax: Axes, turns: pd.DataFrame, right: float, labels: bool = True, apart: float = 0.0
) -> None:
    """Draw turns as bands, their labels at least so many words ``apart``."""
    label_at = -apart
    for turn in turns.itertuples():
        if turn.speaker == "user":
            letter, colour = "U", "#D9D9D9"
        else:
            letter, colour = "S", "#F4F4F4"
        end = right if pd.isna(turn.end) else float(turn.end)
        # A word is one unit wide, with its number in the middle.
        band = (float(turn.start) - 0.5, end + 0.5)
        ax.axvspan(*band, color=colour, lw=0, zorder=0)
        if labels:
            label_at = max((band[0] + band[1]) / 2, label_at + apart)
            note(ax, f"{letter}{turn.turn}", (label_at, 1.0), (0, 2), fontsize=9, **_ABOVE)


def _relevant(
    nuggets: NuggetTable, conversation: int, turns: pd.DataFrame
) -> tuple[Integers, float]:
    """Nuggets of a conversation above L0, and where it ends.

    Where a turn has no end, that is a little behind the last nugget.
    """
    rows = np.flatnonzero((nuggets.conversation == conversation) & (nuggets.level > 0))
    if turns["end"].notna().all():
        return rows, float(turns["end"].max())
    return rows, float(nuggets.end[rows].max() + 5)


def position_weight(ax: Axes, weights: pd.DataFrame, scores: pd.DataFrame) -> Axes:
    """Draw the weight of a nugget over its position, and each run's nuggets (gfrc Figure 1).

    ``weights`` has the columns WC and pw, the ends of the slope; ``scores`` are those of
    `gfrc.nugget_scores`.
    """
    ax.plot(weights["WC"], weights["pw"], color=GREY)
    # The label of the upper end stands right of it, that of the lower end below.
    alignments = ("left", "right")
    shifts = ((8, 2), (4, -16))
    for end, alignment, shift in zip(weights.itertuples(), alignments, shifts, strict=True):
        ax.plot(end.WC, end.pw, "|", color="black", markersize=10)
        note(ax, f"pw = {end.pw:g} at WC = {end.WC:g}", (end.WC, end.pw), shift, ha=alignment)
    for number, (run, run_rows) in enumerate(scores.groupby("run", sort=False)):
        style = look(number)
        style |= {"markersize": 7, "markerfacecolor": (style["color"], 0.5), "linestyle": "none"}
        label = f"{literal(run)}: {len(run_rows)} relevant nuggets"
        ax.plot(run_rows["wc"], run_rows["pw"], label=label, **style)
    ax.set_xlabel("Word position WC of the nugget's last word [words]")
    ax.set(ylabel="Position weight pw", ylim=(-0.16, 1.1))
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
    width: float = 10.0,
) -> Figure:
    """Draw the nuggets of conversations, one below the other, over one axis of words.

    Above stands the level of each nugget, below it a row for each group of each attribute set, a
    bar as high as the membership; at the right the share of each group among the nuggets, and its
    target. An entity that was named before is hollow and counts for no share. ``turns`` (columns
    run, topic, turn, speaker, start, end) are those of all conversations, an empty end reaching to
    the last nugget; ``runs`` are those to draw, by default all. ``named`` writes what each nugget
    names. ``width``: of the figure, in inches.
    """
    conversations = []
    for index, (run, topic) in enumerate(nuggets.conversations[["run", "topic"]].to_numpy()):
        conversation_turns = turns[(turns["run"] == run) & (turns["topic"] == topic)]
        rows, end = _relevant(nuggets, index, conversation_turns)
        conversations.append(_Conversation(run, topic, conversation_turns, rows, end))
    # The longest of all sets the axis, drawn or not: two figures of one table can be compared.
    right = max(conversation.end for conversation in conversations)
    drawn = [conversation for conversation in conversations if not runs or conversation.run in runs]
    words_to_inch = right / (width - _MARGINS)
    thinnest = _THINNEST * words_to_inch
    bars_of_runs = [_nugget_bars(nuggets, conversation.rows, thinnest) for conversation in drawn]
    lanes_of_runs = []
    for bars in bars_of_runs:
        names = nuggets.names[bars.rows].tolist() if named else [""] * len(bars.rows)
        lanes_of_runs.append(_lanes(bars.middles, names, _LETTER * words_to_inch))
    group_heights = [0.19 * len(attribute_set.groups) for attribute_set in attributes.values()]
    heights = []
    for lanes in lanes_of_runs:
        names_height = _LINE_HEIGHT * (lanes.max(initial=0) + 1.5) if named else 0.1
        heights += [_BARS_HEIGHT + names_height, *group_heights]
    figure, axes = plt.subplots(
        len(heights),
        figsize=(width, sum(heights) + 0.3 * len(heights)),
        height_ratios=heights,
        sharex=True,
        squeeze=False,
    )
    has_topics = len({conversation.topic for conversation in drawn}) > 1
    axes_of_runs = axes.reshape(len(drawn), -1)
    panels = zip(drawn, axes_of_runs, bars_of_runs, lanes_of_runs, strict=True)
    for number, (conversation, (top, *below), bars, lanes) in enumerate(panels):
        for ax in (top, *below):
            _turn_bands(
                ax,
                conversation.turns,
                conversation.end,
                labels=ax is top,
                apart=_TURN_LABEL * words_to_inch,
            )
            ax.grid(visible=False)
        height = heights[number * len(heights) // len(drawn)]
        level_height = _draw_levels(top, nuggets, bars, height)
        title = f"{conversation.run}, {conversation.topic}" if has_topics else conversation.run
        top.set_title(literal(title), loc="left", pad=16)
        if named:
            names = nuggets.names[bars.rows].tolist()
            _write_names(top, bars.middles, names, lanes, level_height)
        for ax, (name, attribute_set) in zip(below, attributes.items(), strict=True):
            _draw_groups(ax, name, attribute_set, nuggets.memberships[name][bars.rows], bars)
        for x, heading in ((_SHARE_AT, "nuggets"), (_TARGET_AT, "target")):
            _write_beside(below[0], heading, x, -1)
    axes[-1, 0].set(xlabel=_WORDS, xlim=(0.0, right + 1))
    return figure


@dataclass(frozen=True)
class _Conversation:
    run: str
    topic: str
    turns: pd.DataFrame
    rows: Integers
    """Its relevant nuggets."""
    end: float


@dataclass(frozen=True)
class _Bars:
    """Bars of nuggets; one that is not counted, since its entity was named before, is hollow."""

    rows: Integers
    counted: Booleans
    middles: Floats
    widths: Floats
    fills: NDArray[np.str_]
    edges: NDArray[np.str_]


def _nugget_bars(nuggets: NuggetTable, rows: Integers, thinnest: float) -> _Bars:
    counted = nuggets.relevant()[rows]
    widths = np.maximum(nuggets.end[rows] - nuggets.start[rows] + 1, thinnest)
    return _Bars(
        rows=rows,
        counted=counted,
        middles=nuggets.end[rows] + 0.5 - widths / 2,
        widths=widths,
        fills=np.where(counted, COLOURS[0], "white"),
        edges=np.where(counted, "white", COLOURS[0]),
    )


def _draw_levels(ax: Axes, nuggets: NuggetTable, bars: _Bars, height: float) -> float:
    """Draw the level of each nugget, in axes of so many inches; the inches of a level.

    All conversations have one axis of levels.
    """
    levels = nuggets.level[bars.rows]
    colours: Any = {"color": bars.fills, "edgecolor": bars.edges}
    ax.bar(bars.middles, levels, bars.widths, linewidth=0.6, **colours)
    highest = int(nuggets.level.max(initial=1))
    level_height = _BARS_HEIGHT / highest
    ax.set(ylim=(0, height / level_height), yticks=range(highest + 1))
    ax.set_yticklabels([f"level {level}" for level in range(highest + 1)], fontsize=8.5)
    return level_height


def _write_beside(ax: Axes, text: str, x: float, group: float) -> None:
    """Write into a column beside the groups."""
    right_end = {"xycoords": ax.get_yaxis_transform(), "annotation_clip": False}
    note(ax, text, (1, group), (x, 0), **right_end, **_BESIDE)


def _draw_groups(
    ax: Axes, name: str, attribute_set: AttributeSet, memberships: Floats, bars: _Bars
) -> None:
    """Draw a row for each group: the nuggets in it, its share among them, and its target.

    ``memberships``: (nuggets, groups).
    """
    groups = attribute_set.groups
    shares = np.zeros(len(groups))
    if bars.counted.any():
        shares = memberships[bars.counted].mean(axis=0)
    for group, (share, target) in enumerate(zip(shares, attribute_set.target, strict=True)):
        # The axis points downwards: bars stand on the line below the middle of their row.
        bottom = group + 0.45
        ax.axhline(bottom, color="#C8C8C8", lw=0.5, zorder=0.5)
        in_group = memberships[:, group] > 0
        heights = -0.85 * memberships[in_group, group]
        colours: Any = {"color": bars.fills[in_group], "edgecolor": bars.edges[in_group]}
        places = (bars.middles[in_group], heights, bars.widths[in_group], bottom)
        ax.bar(*places, linewidth=0.6, **colours)
        for x, value in ((_SHARE_AT, share), (_TARGET_AT, target)):
            _write_beside(ax, f"{value:.0%}", x, group)
    ax.set_ylim(len(groups) - 0.45, -0.5)
    ax.set_yticks(range(len(groups)), map(literal, groups), fontsize=8.5)
    ax.set_title(literal(name), loc="left", fontsize=9, pad=3)
    ax.tick_params(left=False)


def _lanes(places: Floats, names: Sequence[str], letter: float) -> Integers:
    """Heights at which names stand level above their places, and none on another's line, from 0.

    ``letter``: width of a letter, in the unit of the places, which rise.
    """
    lanes = np.zeros(len(names), dtype=np.int64)
    for number in range(len(names) - 2, -1, -1):
        end = places[number] + letter * (len(names[number]) + 1)
        # The lines of names that begin under this one end below it.
        under = np.flatnonzero(places[number + 1 :] < end) + number + 1
        lanes[number] = lanes[under].max(initial=-1) + 1
    return lanes


def _write_names(
    ax: Axes, places: Floats, names: Sequence[str], lanes: Integers, level_height: float
) -> None:
    """Write names above places, each at the end of a line to its nugget.

    ``level_height``: inches of a level.
    """
    highest = ax.get_yticks()[-1]
    for place, name, lane in zip(places, names, lanes, strict=True):
        if name:
            top = highest + (_LINE_HEIGHT * lane + 0.1) / level_height
            ax.plot([place, place], [highest, top], color=GREY, lw=0.6)
            note(ax, literal(name), (place, top), (2, 0), fontsize=8.5, va="center")


def user_clusters(
    axes: Sequence[Axes], clusters: pd.DataFrame, attributes: Mapping[str, AttributeSet]
) -> Sequence[Axes]:
    """Draw utility and group fairness of user clusters, an axis a run (gfrc2 Figures 4 and 5).

    All show as many words, so that conversations can be compared.
    """
    columns = {"utility (GNP)": "GNP"}
    for name, attribute_set in attributes.items():
        columns[f"fairness ({name})"] = column_names(attribute_set)[-1]
    for ax, (run, run_rows) in zip(axes, clusters.groupby("run", sort=False), strict=True):
        for index, (label, column) in enumerate(columns.items()):
            style = look(index)
            ax.plot(run_rows["wc"], run_rows[column], **style)
            line_end = (run_rows["wc"].iloc[-1], run_rows[column].iloc[-1])
            note(ax, literal(label), line_end, (8, -3), color=style["color"])
        ax.set(ylabel="Score", ylim=(0, 1), xlim=(0, clusters["wc"].max() * 1.3))
        ax.set_xlabel("Word position where the user cluster leaves [words]")
        ax.set_title(literal(run), loc="left", fontsize=10)
    return axes


def user_model(
    ax: Axes, clusters: pd.DataFrame, nuggets: NuggetTable, conversation: int, turns: pd.DataFrame
) -> Axes:
    """Draw the user model of GFRC2: the words of a conversation, and who leaves (gfrc2 Figure 1).

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
    ax.set(xlabel=_WORDS, ylabel="Experience of the cluster\nthat leaves here")
    # Below 0 is the room of the nuggets.
    ax.set(ylim=(-0.14, 1), xlim=(0, right + 1))
    scale = np.linspace(0, 1, 6)
    ax.set_yticks([-0.07, *scale], ["nuggets", *(f"{value:.1f}" for value in scale)])
    ax.get_yticklabels()[0].set_color(COLOURS[0])
    return ax
