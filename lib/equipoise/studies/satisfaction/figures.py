"""Figures of dialogues and of satisfaction estimators."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import product

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from equipoise.plots import look
from equipoise.studies.satisfaction.data import COLLECTIONS, Collection
from equipoise.studies.satisfaction.dialogues import utterances


def curve_panels(table: pd.DataFrame, measures: Sequence[str], *, height: float, share_y: bool = False) -> Figure:
    """Draw measures over the share of dissatisfied samples, a line for each estimator, a band for its interval.

    A row for each measure and a column for each collection (thesis Figures 3.4, 3.5). ``table``: columns collection,
    run, measure, ratio, value, low, high. ``share_y``: whether the panels share the axis of the values; else they share
    that of the ratios.
    """
    figure, _ = plt.subplots(len(measures), 2, figsize=(11, height), sharex=not share_y, sharey=share_y)
    for ax, (measure, name) in zip(figure.axes, product(measures, COLLECTIONS), strict=True):
        drawn = table[(table["collection"] == name) & (table["measure"] == measure)]
        for number, (run, part) in enumerate(drawn.groupby("run", sort=False)):
            style, line = look(number), part.sort_values("ratio")
            ax.plot(line["ratio"], line["value"], **style, markersize=3.5, label=str(run))
            ax.fill_between(line["ratio"], line["low"], line["high"], color=style["color"], alpha=0.15, linewidth=0)
        ax.set(title=name, xlabel="Share of dissatisfied samples", ylabel=measure.capitalize(), ylim=(-0.02, 1.02))
    figure.axes[1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=7)
    return figure


def dialogue_panel(
    ax: Axes, lines: Sequence[tuple[str, str]], title: str = "", marked: bool = True, width: int = 52, limit: int = 160
) -> Axes:
    """Draw utterances under each other, the user's to the left and everybody else's to the right.

    ``lines``: who speaks and what; shown as it stands, nothing in it is markup. ``marked``: whether the last is set
    off. ``width``: signs in a line of the drawing. ``limit``: signs after which an utterance is cut, with a mark; 0
    cuts none.
    """
    top = 0.0
    for number, (who, text) in enumerate(lines, start=1):
        short = textwrap.shorten(text, limit, placeholder=" …") if limit else text
        shown = "\n".join(textwrap.fill(piece, width) for piece in f"{who}: {short}".split("\n"))
        left, colour = (0.02, "#e8eef7") if who == "USER" else (0.12, "#f1f1f1")
        if marked and number == len(lines):
            colour = "#fde2d8"
        box = {"boxstyle": "round,pad=0.35", "facecolor": colour, "edgecolor": "#999999", "linewidth": 0.6}
        ax.text(left, -top, shown, va="top", fontsize=8, parse_math=False, bbox=box)
        top += shown.count("\n") + 2.1
    ax.set(xlim=(0, 1), ylim=(-top, 1))
    ax.set_title(title, loc="left", parse_math=False)
    ax.set_axis_off()
    return ax


def rated_dialogue(held: Collection) -> Axes:
    """Draw the first dissatisfied test sample of three exchanges (thesis Figure 3.1)."""
    test = held.part("test")
    short = test[test["dissatisfied"] & (test["users"].map(len) == 3)].iloc[0]
    _, ax = plt.subplots(figsize=(6, 3.6))
    lines = utterances(short["users"], short["systems"])
    return dialogue_panel(ax, lines, f"rated {short['rating']}: dissatisfied", width=58)


def prompt_panel(prompt: str) -> Axes:
    """Draw a prompt as it stands (thesis Figures 3.3 and 3.6)."""
    _, ax = plt.subplots(figsize=(6.5, 3.8))
    return dialogue_panel(ax, [("Prompt", prompt)], marked=False, width=92, limit=0)


def swap_panels(swaps: pd.DataFrame) -> Figure:
    """Draw the last user utterance, the response it had and the one swapped in, side by side (thesis Figure 3.2)."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 4))
    for ax, row in zip(axes, swaps.itertuples(), strict=True):
        lines = [("USER", row.users[-1]), ("original", row.original[-1]), ("swapped in", row.systems[-1])]
        direction = "satisfied to dissatisfied" if row.dissatisfied else "dissatisfied to satisfied"
        dialogue_panel(ax, lines, direction)
    return figure


def swapped_dialogues(swaps: pd.DataFrame) -> Figure:
    """Draw the last five exchanges and the response swapped in, side by side (thesis Figure 3.7)."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 7))
    for ax, row in zip(axes, swaps.itertuples(), strict=True):
        lines = [*utterances(row.users[-5:], row.original[-5:]), ("SWAPPED IN", row.systems[-1])]
        dialogue_panel(ax, lines, limit=110)
    return figure
