"""Figures of dialogues and of satisfaction estimators: each function draws on matplotlib Axes and returns them."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes

from equipoise.plots import COLOURS, MARKERS


def curves_over_ratio(ax: Axes, table: pd.DataFrame, measure: str) -> Axes:
    """Draw a measure over the share of dissatisfied samples, a line for each estimator and a band for its interval.

    ``table`` (columns run, measure, ratio, value, low, high): Missing ends draw no band. ``measure``: name in the
    column measure.

    thesis Figures 3.4 and 3.5.
    """
    chosen = table[table["measure"] == measure]
    if chosen.empty:
        raise ValueError(f"no measure {measure!r}; there are {', '.join(sorted(set(table['measure'])))}")
    for number, (run, part) in enumerate(chosen.groupby("run", sort=False)):
        line, colour = part.sort_values("ratio"), COLOURS[number % len(COLOURS)]
        marker = MARKERS[number % len(MARKERS)]
        ax.plot(line["ratio"], line["value"], color=colour, marker=marker, markersize=3.5, label=str(run))
        if line[["low", "high"]].notna().to_numpy().all():
            ax.fill_between(line["ratio"], line["low"], line["high"], color=colour, alpha=0.15, linewidth=0)
    ax.set_xlabel("Share of dissatisfied samples")
    ax.set_ylabel(measure[:1].upper() + measure[1:])
    ax.set_ylim(-0.02, 1.02)
    return ax


def dialogue_panel(
    ax: Axes,
    lines: Sequence[tuple[str, str]],
    *,
    title: str = "",
    marked: Sequence[int] = (),
    width: int = 58,
    longest: int = 160,
) -> Axes:
    """Draw utterances under each other, the user's to the left and everybody else's to the right.

    ``lines``: Who speaks and what; shown as it stands, nothing in it is markup. ``marked``: positions of lines to
    set off. ``width``: Signs in a line of the drawing. ``longest``: Signs after which an utterance is cut, with a
    mark.

    thesis Figures 3.1, 3.2 and 3.7.
    """
    top = 0.0
    for number, (who, text) in enumerate(lines):
        short = textwrap.shorten(text, longest, placeholder=" …") if longest else text
        shown = "\n".join(
            part for piece in f"{who}: {short}".split("\n") for part in textwrap.wrap(piece, width) or [""]
        )
        colour = "#fde2d8" if number in marked else "#e8eef7" if who == "USER" else "#f1f1f1"
        left = who == "USER"
        ax.text(
            0.02 if left else 0.12,
            -top,
            shown,
            ha="left",
            va="top",
            fontsize=8,
            parse_math=False,
            bbox={"boxstyle": "round,pad=0.35", "facecolor": colour, "edgecolor": "#999999", "linewidth": 0.6},
        )
        top += shown.count("\n") + 2.1
    ax.set_xlim(0, 1)
    ax.set_ylim(-top, 1)
    ax.set_title(title, loc="left", parse_math=False)
    ax.set_axis_off()
    return ax
