"""Figures of dialogues and of satisfaction estimators."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Literal

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from equipoise.plots import COLOURS, MARKERS
from equipoise.studies.satisfaction.data import COLLECTIONS, Collection


def curves_over_ratio(ax: Axes, table: pd.DataFrame, measure: str) -> None:
    """Draw a measure over the share of dissatisfied samples, a line for each estimator and a band for its interval.

    ``table`` (columns run, measure, ratio, value, low, high): Missing ends draw no band.
    """
    for number, (run, part) in enumerate(table[table["measure"] == measure].groupby("run", sort=False)):
        line, colour = part.sort_values("ratio"), COLOURS[number % len(COLOURS)]
        marker = MARKERS[number % len(MARKERS)]
        ax.plot(line["ratio"], line["value"], color=colour, marker=marker, markersize=3.5, label=str(run))
        if line[["low", "high"]].notna().to_numpy().all():
            ax.fill_between(line["ratio"], line["low"], line["high"], color=colour, alpha=0.15, linewidth=0)
    ax.set_xlabel("Share of dissatisfied samples")
    ax.set_ylabel(measure[:1].upper() + measure[1:])
    ax.set_ylim(-0.02, 1.02)


def curve_panels(
    table: pd.DataFrame, measures: Sequence[str], *, height: float, share: Literal["x", "y"] = "x"
) -> Figure:
    """Draw `curves_over_ratio`, a row for each measure and a column for each collection (thesis Figures 3.4, 3.5)."""
    figure, axes = plt.subplots(
        len(measures), 2, figsize=(11, height), sharex=share == "x", sharey=share == "y", squeeze=False
    )
    for line, measure in zip(axes, measures, strict=True):
        for ax, name in zip(line, COLLECTIONS, strict=True):
            curves_over_ratio(ax, table[table["collection"] == name], measure)
            ax.set_title(name)
    axes[0][1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=7)
    return figure


def dialogue_panel(
    ax: Axes,
    lines: Sequence[tuple[str, str]],
    *,
    title: str = "",
    marked: int | None = None,
    width: int = 58,
    longest: int = 160,
) -> Axes:
    """Draw utterances under each other, the user's to the left and everybody else's to the right.

    ``lines``: Who speaks and what; shown as it stands, nothing in it is markup. ``marked``: Position of a line to set
    off. ``width``: Signs in a line of the drawing. ``longest``: Signs after which an utterance is cut, with a mark; 0
    cuts none.
    """
    top = 0.0
    for number, (who, text) in enumerate(lines):
        short = textwrap.shorten(text, longest, placeholder=" …") if longest else text
        shown = "\n".join(
            part for piece in f"{who}: {short}".split("\n") for part in textwrap.wrap(piece, width) or [""]
        )
        colour = "#fde2d8" if number == marked else "#e8eef7" if who == "USER" else "#f1f1f1"
        ax.text(
            0.02 if who == "USER" else 0.12,
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


def _spoken(users: Sequence[str], systems: Sequence[str]) -> list[tuple[str, str]]:
    return [line for pair in zip(users, systems, strict=True) for line in zip(("USER", "SYSTEM"), pair, strict=True)]


def rated_dialogue(held: Collection) -> Axes:
    """Draw the first dissatisfied test sample of three exchanges (thesis Figure 3.1)."""
    test = held.part("test")
    short = test[test["dissatisfied"] & (test["users"].map(len) == 3)].iloc[0]
    _, ax = plt.subplots(figsize=(6, 3.6))
    lines = _spoken(short["users"], short["systems"])
    return dialogue_panel(ax, lines, marked=len(lines) - 1, title=f"rated {short['rating']}: dissatisfied")


def prompt_panel(prompt: str) -> Axes:
    """Draw a prompt as it stands (thesis Figures 3.3 and 3.6)."""
    _, ax = plt.subplots(figsize=(6.5, 3.8))
    return dialogue_panel(ax, [("Prompt", prompt)], width=92, longest=0)


def swap_panels(swaps: pd.DataFrame) -> Figure:
    """Draw the last user utterance, the response it had and the one swapped in, side by side (thesis Figure 3.2)."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 4))
    for ax, row in zip(axes, swaps.itertuples(), strict=True):
        lines = [("USER", row.users[-1]), ("original", row.original[-1]), ("swapped in", row.systems[-1])]
        direction = "satisfied to dissatisfied" if row.dissatisfied else "dissatisfied to satisfied"
        dialogue_panel(ax, lines, marked=2, title=direction, width=52)
    return figure


def swapped_dialogues(swaps: pd.DataFrame) -> Figure:
    """Draw the last five exchanges and the response swapped in, side by side (thesis Figure 3.7)."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 7))
    for ax, row in zip(axes, swaps.itertuples(), strict=True):
        lines = [*_spoken(row.users[-5:], row.original[-5:]), ("COUNTERFACTUAL", row.systems[-1])]
        dialogue_panel(ax, lines, marked=len(lines) - 1, width=52, longest=110)
    return figure
