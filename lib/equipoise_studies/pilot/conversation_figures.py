"""Figures of conversations: nuggets with their groups, position weights, and user clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from equipoise.arrays import Booleans, Floats, Integers
from equipoise.attributes import AttributeSet
from equipoise.measures.group_fairness import column_names
from equipoise.nuggets import NuggetTable
from equipoise_compendium.plots import COLOURS, GREY, literal, look, note
from equipoise_studies.pilot.figures import label_ends

_ABOVE: Mapping[str, Any] = {"xycoords": ("data", "axes fraction"), "ha": "center", "va": "bottom"}
_USER, _SYSTEM = "#D9D9D9", "#F4F4F4"
_WORDS_WIDTH, _GROUP_WIDTH, _ROW_HEIGHT = 3.6, 0.42, 0.25
"""Inches of the panel of words, of the column of a group, and of the row of a nugget."""
_THINNEST = 0.05
"""Inches of a bar: a nugget of one word would be too thin to see."""
_TURN_LABEL = 0.22
"""Inches of the label of a turn."""
_WORDS = "Word position in the conversation (words)"


def _turn_bands(
    ax: Axes, turns: pd.DataFrame, right: float, bottom: float = 0.0, apart: float = 0.0
) -> None:
    """Draw turns as bands with labels at least ``apart`` words from each other.

    A turn without an end reaches to ``right``; bands begin at ``bottom``, a share of the axes.
    """
    label_at = -apart
    for turn in turns.itertuples():
        letter, colour = ("U", _USER) if turn.speaker == "user" else ("S", _SYSTEM)
        end = right if pd.isna(turn.end) else float(turn.end)
        # A word is one unit wide, with its number in the middle.
        band = (float(turn.start) - 0.5, end + 0.5)
        ax.axvspan(*band, ymin=bottom, color=colour, lw=0, zorder=0)
        label_at = max((band[0] + band[1]) / 2, label_at + apart)
        note(ax, f"{letter}{turn.turn}", (label_at, 1.0), (0, 2), fontsize=9, **_ABOVE)


def _turn_key() -> list[Patch]:
    return [
        Patch(color=_USER, label="user turn (U)"),
        Patch(color=_SYSTEM, label="system turn (S)"),
    ]


def _relevant(
    nuggets: NuggetTable, conversation: int, turns: pd.DataFrame
) -> tuple[Integers, float]:
    """Return the nuggets of a conversation above L0, and the word at which it ends.

    Where a turn has no end, this is a few words after the last nugget.
    """
    rows = np.flatnonzero((nuggets.conversation == conversation) & (nuggets.level > 0))
    if turns["end"].notna().all():
        return rows, float(turns["end"].max())
    return rows, float(nuggets.end[rows].max() + 5)


def position_weight(ax: Axes, weights: pd.DataFrame, scores: pd.DataFrame) -> Axes:
    """Draw the position weight by word position, with the nuggets of each run (gfrc Figure 1).

    ``weights`` has the columns WC and pw, the ends of the slope; ``scores`` are those of
    `gfrc.nugget_scores`.
    """
    ax.plot(weights["WC"], weights["pw"], color=GREY)
    # The label of the upper end is right of it, the label of the lower end below.
    alignments = ("left", "right")
    shifts = ((8, 2), (4, -16))
    for end, alignment, shift in zip(weights.itertuples(), alignments, shifts, strict=True):
        ax.plot(end.WC, end.pw, "|", color="black", markersize=10)
        note(ax, f"pw = {end.pw:g} at WC = {end.WC:g}", (end.WC, end.pw), shift, ha=alignment)
    for number, (run, rows) in enumerate(scores.groupby("run", sort=False)):
        style = look(number) | {"markersize": 7, "markerfacecolor": "none", "linestyle": "none"}
        ax.plot(rows["wc"], rows["pw"], **style)
        last = rows.loc[rows["wc"].idxmax()]
        label = f"{literal(run)}: n = {len(rows)} relevant nuggets"
        note(ax, label, (last["wc"], last["pw"]), (10, 1), color=style["color"])
    ax.set_xlabel("Word position WC of the nugget's last word (words)")
    ax.set(ylabel="Position weight pw", ylim=(-0.16, 1.1))
    ax.set_xlim(0, weights["WC"].max() * 1.02)
    return ax


def annotated_conversations(
    nuggets: NuggetTable,
    turns: pd.DataFrame,
    attributes: Mapping[str, AttributeSet],
    *,
    runs: Sequence[str] = (),
) -> Figure:
    """Draw one row per relevant nugget: its words, and its membership of each group.

    Below the nuggets of a conversation are the share of each group among them, and its target. A
    nugget whose entity was named before is hollow, in brackets, and counts for no share. ``turns``
    (columns run, topic, turn, speaker, start, end) are those of all conversations; ``runs`` are
    those to draw, by default all.
    """
    conversations = []
    for index, (run, topic) in enumerate(nuggets.conversations[["run", "topic"]].to_numpy()):
        own_turns = turns[(turns["run"] == run) & (turns["topic"] == topic)]
        conversations.append((run, topic, own_turns, *_relevant(nuggets, index, own_turns)))
    # The longest of all sets the axis, drawn or not: two figures of one table can be compared.
    right = max(end for *_, end in conversations)
    drawn = [conversation for conversation in conversations if not runs or conversation[0] in runs]
    heights = [_ROW_HEIGHT * (len(rows) + 2) for *_, rows, _ in drawn]
    widths = [_WORDS_WIDTH]
    widths += [_GROUP_WIDTH * len(attribute.groups) for attribute in attributes.values()]
    figure, axes = plt.subplots(
        len(drawn),
        len(widths),
        figsize=(sum(widths) + 2.2, sum(heights) + 1.3 * len(drawn) + 0.5),
        height_ratios=heights,
        width_ratios=widths,
        sharex="col",
        sharey="row",
        squeeze=False,
    )
    has_topics = len({topic for _, topic, *_ in drawn}) > 1
    words_per_inch = right / _WORDS_WIDTH
    for (run, topic, own_turns, rows, end), (ax, *group_axes) in zip(drawn, axes, strict=True):
        counted = nuggets.relevant()[rows]
        bottom = 2 / (len(rows) + 2)  # bands end above the rows of shares and targets
        _turn_bands(ax, own_turns, end, bottom, _TURN_LABEL * words_per_inch)
        _draw_words(ax, nuggets, rows, counted, _THINNEST * words_per_inch)
        empty = 0
        for group_ax, (name, attribute) in zip(group_axes, attributes.items(), strict=True):
            memberships = nuggets.memberships[name][rows]
            empty += _draw_groups(group_ax, name, attribute, memberships, counted)
        title = f"{run}, {topic}" if has_topics else run
        groups = sum(len(attribute.groups) for attribute in attributes.values())
        title += f", relevant nuggets: n = {counted.sum()}\n{empty} of {groups} groups have none"
        ax.set_title(literal(title), loc="left", pad=18, fontsize=11)
    axes[-1, 0].set(xlabel=_WORDS, xlim=(0.0, right + 1))
    key = [*_turn_key(), Patch(color=COLOURS[0], label="relevant nugget (L2, L1: level)")]
    if not nuggets.relevant()[np.concatenate([rows for *_, rows, _ in drawn])].all():
        label = "named before, not counted"
        key.append(Patch(facecolor="white", edgecolor=COLOURS[0], label=label))
    figure.legend(handles=key, loc="outside lower left", ncols=len(key))
    return figure


def _draw_words(
    ax: Axes, nuggets: NuggetTable, rows: Integers, counted: Booleans, thinnest: float
) -> None:
    """Draw a bar over the words of each nugget, and name the rows."""
    widths = np.maximum(nuggets.end[rows] - nuggets.start[rows] + 1, thinnest)
    colours: Any = {"color": np.where(counted, COLOURS[0], "white"), "edgecolor": COLOURS[0]}
    lefts = nuggets.end[rows] + 0.5 - widths
    ax.barh(np.arange(len(rows)), widths, 0.75, left=lefts, linewidth=0.8, **colours)
    labels = []
    for number, (row, is_counted) in enumerate(zip(rows, counted, strict=True), start=1):
        name = literal(nuggets.names[row]) or f"nugget {number}"
        label = f"{name}, L{nuggets.level[row]}"
        labels.append(label if is_counted else f"({label})")
    labels += ["share of the nuggets", "target"]
    ax.set_yticks(range(len(labels)), labels, fontsize=9)
    ax.set_ylim(len(labels) - 0.5, -0.5)
    ax.tick_params(left=False, labelbottom=True)
    ax.grid(visible=False)


def _draw_groups(
    ax: Axes, name: str, attribute: AttributeSet, memberships: Floats, counted: Booleans
) -> int:
    """Write memberships, shares and targets in percent; return how many groups have no nugget.

    ``memberships``: (nuggets, groups).
    """
    n, groups = memberships.shape
    shares = memberships[counted].mean(axis=0) if counted.any() else np.zeros(groups)
    edges = np.arange(groups + 1) - 0.5
    if n:
        shade = np.where(counted[:, None], memberships, 0)
        style: dict[str, Any] = {"cmap": "Blues", "vmin": 0, "vmax": 2, "edgecolors": "#E3E3E3"}
        ax.pcolormesh(edges, np.arange(n + 1) - 0.5, shade, linewidth=0.6, **style)
    for (row, group), share in np.ndenumerate(np.vstack([memberships, shares, attribute.target])):
        if row < n and share == 0:
            continue
        text = f"{100 * share:.0f}"
        if row < n and not counted[row]:
            text = f"({text})"
        ax.text(group, row, text, ha="center", va="center", fontsize=9)
    ax.axhline(n - 0.5, color="black", lw=0.8)
    ax.set_xlim(edges[0], edges[-1])
    slanted: Any = {"rotation": 45, "rotation_mode": "anchor", "ha": "left", "fontsize": 9}
    ax.set_xticks(range(groups), map(literal, attribute.groups), **slanted)
    ax.tick_params(length=0, top=False, labeltop=True, bottom=False, labelbottom=False)
    ax.set_xlabel(f"{literal(name)} (%)")
    ax.grid(visible=False)
    ax.spines[:].set_visible(False)
    return int((shares == 0).sum())


def user_clusters(
    axes: Sequence[Axes], clusters: pd.DataFrame, attributes: Mapping[str, AttributeSet]
) -> Sequence[Axes]:
    """Draw utility and group fairness of user clusters, one axes per run (gfrc2 Figures 4 and 5).

    All axes have the same words, so that conversations can be compared.
    """
    columns = {"utility (GNP)": "GNP"}
    for name, attribute_set in attributes.items():
        columns[f"fairness ({name})"] = column_names(attribute_set)[-1]
    for ax, (run, rows) in zip(axes, clusters.groupby("run", sort=False), strict=True):
        for index, (label, column) in enumerate(columns.items()):
            ax.plot(rows["wc"], rows[column], label=literal(label), **look(index))
        ax.set(ylabel="Utility or fairness (0 to 1)", ylim=(0, 1))
        ax.set_xlim(0, clusters["wc"].max() * 1.3)
        ax.set_xlabel("Word position where the user cluster leaves (words)")
        title = f"{run}: n = {len(rows)} user clusters"
        changes = rows[list(columns.values())].diff().abs()
        if len(rows) > 1:
            moving, place = changes.max().idxmax(), changes.max(axis=1).idxmax()
            label = next(label for label, column in columns.items() if column == moving)
            title += f"; the largest step is {label} at word {rows.loc[place, 'wc']}"
        ax.set_title(literal(title), loc="left", fontsize=10)
        label_ends(ax)
    return axes


def user_model(
    ax: Axes, clusters: pd.DataFrame, nuggets: NuggetTable, conversation: int, turns: pd.DataFrame
) -> Axes:
    """Draw the words of a conversation and the user clusters of GFRC2 (gfrc2 Figure 1).

    ``clusters`` are the user clusters of the conversation, ``conversation`` is its number in the
    table of nuggets.
    """
    rows, right = _relevant(nuggets, conversation, turns)
    _turn_bands(ax, turns, right)
    for start, end in zip(nuggets.start[rows], nuggets.end[rows], strict=True):
        bar = (start - 0.5, -0.12), end - start + 1, 0.1
        ax.add_patch(Rectangle(*bar, facecolor=COLOURS[0], edgecolor="white", lw=1))
    arrow = {"arrowstyle": "-|>", "color": COLOURS[1], "lw": 1.5, "shrinkA": 0, "shrinkB": 0}
    for number, cluster in enumerate(clusters.itertuples(), start=1):
        tip = (cluster.wc + 0.5, cluster.Experience)
        ax.annotate("", tip, xytext=(cluster.wc + 0.5, -0.02), arrowprops=arrow)
        note(ax, f"$uc_{{{number}}}$", tip, (0, 3), ha="center", color=COLOURS[1])
    experience = clusters["Experience"]
    title = f"n = {len(clusters)} user clusters"
    if len(clusters):
        title += f": experience {experience.iloc[0]:.2f} at the first, "
        title += f"{experience.iloc[-1]:.2f} at the last"
    ax.set_title(title, loc="left", fontsize=10, pad=16)
    ax.set(xlabel=_WORDS, ylabel="Experience of the cluster\nthat leaves here (0 to 1)")
    # Below 0 is the room of the nuggets.
    ax.set(ylim=(-0.14, 1), xlim=(0, right + 1))
    scale = np.linspace(0, 1, 6)
    ax.set_yticks([-0.07, *scale], ["nuggets", *(f"{value:.1f}" for value in scale)])
    ax.get_yticklabels()[0].set_color(COLOURS[0])
    ax.legend(handles=_turn_key(), loc="upper left", bbox_to_anchor=(0, -0.17), ncols=2)
    return ax
