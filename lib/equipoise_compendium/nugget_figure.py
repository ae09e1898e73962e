"""The figure of annotated conversations: nuggets with their groups, within their turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from equipoise.arrays import Booleans, Floats, Integers
from equipoise.attributes import AttributeSet
from equipoise.nuggets import NuggetTable
from equipoise_compendium.plots import COLOURS, literal, note

_ABOVE: Mapping[str, Any] = {"xycoords": ("data", "axes fraction"), "ha": "center", "va": "bottom"}
_USER, _SYSTEM = "#D9D9D9", "#F4F4F4"
_WORDS_WIDTH, _GROUP_WIDTH, _ROW_HEIGHT = 3.6, 0.42, 0.25
"""Inches of the panel of words, of the column of a group, and of the row of a nugget."""
_THINNEST = 0.05
"""Inches of a bar: a nugget of one word would be too thin to see."""
_TURN_LABEL = 0.33
"""Inches of the label of a turn."""
WORD_POSITION = "Word position in the conversation (words)"


def turn_bands(
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
        note(ax, f"{letter}{turn.turn}", (label_at, 1.0), (0, 2), fontsize=8, **_ABOVE)


def turn_key() -> list[Patch]:
    """Return the entries of a legend for `turn_bands`."""
    return [
        Patch(color=_USER, label="user turn (U)"),
        Patch(color=_SYSTEM, label="system turn (S)"),
    ]


def relevant_rows(
    nuggets: NuggetTable, conversation: int, turns: pd.DataFrame
) -> tuple[Integers, float]:
    """Return the nuggets of a conversation above L0, and the word at which it ends.

    Where a turn has no end, this is a few words after the last nugget.
    """
    rows = np.flatnonzero((nuggets.conversation == conversation) & (nuggets.level > 0))
    if turns["end"].notna().all():
        return rows, float(turns["end"].max())
    return rows, float(nuggets.end[rows].max() + 5)


def annotated_conversations(
    nuggets: NuggetTable,
    turns: pd.DataFrame,
    attributes: Mapping[str, AttributeSet],
    *,
    runs: Sequence[str] = (),
    heading: Callable[[str, str], str] = "{}, topic {}".format,
) -> Figure:
    """Draw one row per relevant nugget: its words, and its membership of each group.

    Below the nuggets of a conversation are the share of each group among them, and its target. A
    nugget whose entity was named before is hollow, in brackets, and counts for no share. ``turns``
    (columns run, topic, turn, speaker, start, end) are those of all conversations; ``runs`` are
    those to draw, by default all. ``heading`` makes one of a run and a topic.
    """
    conversations = []
    for index, (run, topic) in enumerate(nuggets.conversations[["run", "topic"]].to_numpy()):
        own_turns = turns[(turns["run"] == run) & (turns["topic"] == topic)]
        conversations.append((run, topic, own_turns, *relevant_rows(nuggets, index, own_turns)))
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
    words_per_inch = right / _WORDS_WIDTH
    for (run, topic, own_turns, rows, end), (ax, *group_axes) in zip(drawn, axes, strict=True):
        counted = nuggets.relevant()[rows]
        bottom = 2 / (len(rows) + 2)  # bands end above the rows of shares and targets
        turn_bands(ax, own_turns, end, bottom, _TURN_LABEL * words_per_inch)
        _draw_words(ax, nuggets, rows, counted, _THINNEST * words_per_inch)
        empty = 0
        for group_ax, (name, attribute) in zip(group_axes, attributes.items(), strict=True):
            memberships = nuggets.memberships[name][rows]
            empty += _draw_groups(group_ax, name, attribute, memberships, counted)
        groups = sum(len(attribute.groups) for attribute in attributes.values())
        title = f"{heading(run, topic)}: n = {counted.sum()} relevant nuggets"
        title += f"\n{empty} of {groups} groups have none"
        ax.set_title(literal(title), loc="left", pad=18, fontsize=11)
    axes[-1, 0].set(xlabel=WORD_POSITION, xlim=(0.0, right + 1))
    key = [*turn_key(), Patch(color=COLOURS[0], label="relevant nugget (L2, L1: level)")]
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
