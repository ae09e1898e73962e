"""Figures of satisfaction estimators, and the dialogues and prompts that are shown as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from equipoise_compendium.plots import COLOURS
from equipoise_studies.satisfaction.data import Collection
from equipoise_studies.satisfaction.dialogues import utterances

_NAMES = {"Acc": "Accuracy", "F1": "Macro F1", "sensitivity": "Sensitivity"}
_DASHES = {"": "-", "x10": (0, (5, 1.5)), "x20": (0, (1.2, 1.2)), "(usual)": (0, (1.2, 1.2))}
_ROLES = {
    "BERT": 0,
    "encoder": 0,
    "ASAP": 1,
    "hawkes": 1,
    "Zephyr": 2,
    "few-shot": 2,
    "MistralIF": 3,
}
"""Colours of estimators; one that stands for another has its colour."""

_SAME = 0.01
"""Lines nowhere farther apart are drawn as one."""


def curve_panels(table: pd.DataFrame, measures: Sequence[str]) -> Figure:
    """Draw measures over the share of dissatisfied samples, with the estimators' names at the ends of their lines.

    A panel for each measure and collection (thesis Figures 3.4, 3.5), one above the other: a colour
    for each family of estimators, dashes for up-sampling, a band for the interval. Estimators that
    say the same share one line. ``table``: columns collection, run, measure, ratio, value, low,
    high.
    """
    panels = [*product(measures, table["collection"].unique())]
    figure, axes = plt.subplots(
        len(panels), 1, figsize=(6.5, 0.3 + 2.4 * len(panels)), sharex=True, squeeze=False
    )
    others = dict.fromkeys(
        family for run in table["run"] if (family := _parts(run)[0]) not in _ROLES
    )
    places = _ROLES | {family: number for number, family in enumerate(others, start=4)}
    for ax, (measure, name) in zip(axes.flat, panels, strict=True):
        drawn = table[(table["collection"] == name) & (table["measure"] == measure)]
        lines = {
            str(run): part.sort_values("ratio") for run, part in drawn.groupby("run", sort=False)
        }
        ends = []
        for runs in _alike(lines):
            line, style = lines[runs[0]], _style(runs, places)
            ax.plot(line["ratio"], line["value"], **style)
            ax.fill_between(
                line["ratio"],
                line["low"],
                line["high"],
                color=style["color"],
                alpha=0.1,
                linewidth=0,
            )
            ends.append(
                (float(line["value"].iloc[-1]), "\n= ".join(map(_short, runs)), style["color"])
            )
        _label(ax, ends)
        ax.set(ylim=(-0.02, 1.02), xlim=(0, 1), ylabel=_NAMES[measure])
        ax.set_title(name, loc="left", fontsize=10)
    axes[-1, 0].set_xlabel("Share of dissatisfied samples")
    return figure


def _parts(run: str) -> tuple[str, str]:
    """Family of an estimator, and its up-sampling or threshold."""
    family = run.partition(", ")[0].partition(" (")[0]
    return family, next((mark for mark in _DASHES if mark and mark in run), "")


def _short(run: str) -> str:
    """A name that fits at the end of a line."""
    family, _, setup = run.partition(", ")
    for told in ("w/o up-sampling", "up-sampling", "Few-shot"):
        setup = setup.replace(told, "").strip()
    return f"{family} {setup}".strip()


def _style(runs: Sequence[str], places: Mapping[str, int]) -> dict[str, Any]:
    if "constant" in runs:
        return {"color": "0.45", "linestyle": "-", "linewidth": 1.2}
    family, times = _parts(runs[0])
    return {
        "color": COLOURS[places[family] % len(COLOURS)],
        "linestyle": _DASHES[times],
        "linewidth": 1.6,
    }


def _alike(lines: dict[str, pd.DataFrame]) -> list[list[str]]:
    """Estimators whose lines are the same, together; the constant one first."""
    groups: list[list[str]] = []
    for run in sorted(lines, key=lambda run: run != "constant"):
        values = lines[run]["value"].to_numpy()
        for group in groups:
            other = lines[group[0]]["value"].to_numpy()
            if len(other) == len(values) and np.abs(other - values).max() < _SAME:
                group.append(run)
                break
        else:
            groups.append([run])
    return groups


def _label(ax: Axes, ends: Sequence[tuple[float, str, str]], gap: float = 0.085) -> None:
    """Write names to the right of the lines' ends, none over another."""
    order = sorted(ends)
    places = [value for value, _, _ in order]
    for number in range(1, len(places)):
        lines = (order[number][1].count("\n") + order[number - 1][1].count("\n")) / 2 + 1
        places[number] = max(places[number], places[number - 1] + gap * lines)
    over = max(0.0, places[-1] - 1.0) if places else 0.0
    for number in range(
        len(places) - 1, -1, -1
    ):  # what is too high goes down, and pushes those below it
        limit = 1.0 if number == len(places) - 1 else places[number + 1] - gap
        places[number] = min(places[number], limit) if over else places[number]
    for place, (value, text, colour) in zip(places, order, strict=True):
        ends_at: dict[str, Any] = {
            "xy": (1.0, value),
            "xytext": (1.04, place),
            "textcoords": "data",
            "annotation_clip": False,
        }
        line = {
            "arrowstyle": "-",
            "color": colour,
            "linewidth": 0.6,
            "shrinkA": 0,
            "shrinkB": 0,
            "relpos": (0, 0.5),
        }
        ax.annotate(text, **ends_at, va="center", fontsize=9, arrowprops=line)


# --- text -----------------------------------------------------------------------------------------


def rated_dialogue(held: Collection) -> list[tuple[str, str]]:
    """The first of the shortest dissatisfied test samples (thesis Figure 3.1): who speaks, and what."""
    test = held.part("test")
    short = (
        test[test["dissatisfied"]]
        .sort_values("users", key=lambda users: users.map(len), kind="stable")
        .iloc[0]
    )
    rated = ("rating", f"{short['rating']} of 5: dissatisfied")
    return [*utterances(short["users"], short["systems"]), rated]


def turned_utterances(turns: pd.DataFrame, last: int = 1) -> list[tuple[str, str]]:
    """Samples turned in either direction (thesis Figures 3.2 and 3.7): the last exchanges, and both responses."""
    lines = []
    for row in turns.itertuples():
        before, after = (
            ("satisfied", "dissatisfied") if row.dissatisfied else ("dissatisfied", "satisfied")
        )
        lines += [("", f"{row.collection}, from {before} to {after}")]
        lines += utterances(row.users[-last:], (*row.original[-last:-1], ""))[:-1]
        lines += [
            (f"SYSTEM, own: {before}", row.original[-1]),
            (f"SYSTEM, other: {after}", row.systems[-1]),
        ]
    return lines
