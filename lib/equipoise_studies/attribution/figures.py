"""Figures of attribution: modes, sensitivity and bias."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from equipoise_compendium.plots import COLOURS, GREY, look

_RELEVANT, _OTHER = "#dbe9f6", "#f1f1f1"


def modes_panel(ax: Axes, shown: pd.DataFrame) -> Axes:
    """Draw what each mode says of the author of each document.

    ``shown`` (columns mode, document, relevant, author, label): one row for each mode and document;
    ``author`` wrote it, ``label`` is what a model is told, missing for nothing.

    thesis, Figures 5.3 and 5.4.
    """
    modes = shown["mode"].drop_duplicates().tolist()
    for line, mode in enumerate(modes):
        for place, row in enumerate(shown[shown["mode"] == mode].itertuples()):
            told = row.label is not None and not pd.isna(row.label)
            face, edge = (_RELEVANT, COLOURS[0]) if row.relevant else (_OTHER, "#888888")
            place_of_box = (place + 0.06, -line - 0.8)
            ax.add_patch(
                FancyBboxPatch(
                    place_of_box, 0.86, 0.62, boxstyle="round,pad=0.02", lw=1.2, fc=face, ec=edge
                )
            )
            style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 10}
            ax.text(
                place + 0.49, -line - 0.38, f"Document [{row.document}]\nby {row.author}", **style
            )
            tag = {"fc": "#f5c45e" if told else "white", "ec": "none", "pad": 2}
            ax.text(
                place + 0.49,
                -line - 0.7,
                f"[{row.label}]" if told else "no label",
                bbox=tag,
                **style,
            )
        ax.text(
            -0.1, -line - 0.5, mode.replace("/", "/\n"), ha="right", va="center", fontweight="bold"
        )
    ax.set_xlim(-1.1, shown.groupby("mode").size().max() + 0.05)
    ax.set_ylim(-len(modes) - 0.05, 0)
    ax.axis("off")
    return ax


def _with_intervals(ax: Axes, axis: str, places: Any, part: pd.DataFrame, number: int) -> None:
    """Draw the values of a group at their places, with intervals along one axis, in its colour."""
    reach = np.abs(part[["low", "high"]].to_numpy().T - part["value"].to_numpy())
    x, y = (part["value"], places) if axis == "x" else (places, part["value"])
    errors = {"xerr": reach} if axis == "x" else {"yerr": reach}
    told: dict[str, Any] = {
        "linestyle": "none",
        "label": str(part["group"].iloc[0]),
        **look(number),
    }
    ax.errorbar(x, y, capsize=3, **errors, **told)


def biases(ax: Axes, table: pd.DataFrame, label: str) -> Axes:
    """Draw values with their intervals under each other, and the line of zero; the printed range is shaded.

    ``table`` (columns name, value, low, high, group, printed low, printed mean, printed high): from
    top to bottom; groups have a colour and a marker each. ``label``: of the x axis.
    """
    places = -np.arange(len(table), dtype=np.float64)
    ax.axvline(0, color="#444444", lw=1)
    printed = table[["printed low", "printed mean", "printed high"]].to_numpy(dtype=np.float64)
    ax.barh(
        places,
        printed[:, 2] - printed[:, 0],
        1,
        printed[:, 0],
        color="#dddddd",
        label="range of the printed scores",
    )
    ax.scatter(
        printed[:, 1],
        places,
        marker="|",
        s=120,
        color="#444444",
        label="mean of the printed scores",
    )
    for number, group in enumerate(table["group"].drop_duplicates()):
        part = (table["group"] == group).to_numpy()
        _with_intervals(ax, "x", places[part], table[part], number)
    ax.set_yticks(places, table["name"])
    ax.set_ylim(-len(table) + 0.3, 0.7)
    ax.set_xlabel(label)
    ax.grid(visible=False, axis="y")
    return ax


def values_over(ax: Axes, table: pd.DataFrame, x: str, label: str) -> Axes:
    """Draw values with their intervals over a number, those of one number beside each other.

    ``x``: column of the x axis. ``label``: of the y axis.

    thesis, Figure 5.9.
    """
    groups = table["group"].unique()
    step = 0.5 * float(np.diff(np.sort(table[x].unique())).min(initial=1)) / max(len(groups), 2)
    for number, group in enumerate(groups):
        part = table[table["group"] == group]
        places = part[x].to_numpy(dtype=np.float64) + step * (number - (len(groups) - 1) / 2)
        _with_intervals(ax, "y", places, part, number)
    ax.axhline(0, color="#444444", lw=1)
    ax.set_xticks(sorted(table[x].unique()))
    ax.set_ylabel(label)
    return ax


def numbers_under(ax: Axes, table: pd.DataFrame, label: str) -> Axes:
    """Draw numbers as bars under each other (columns benchmark, model, source, total); printed ones are grey."""
    places = -np.arange(len(table), dtype=np.float64)
    for source in table["source"].drop_duplicates():
        part = (table["source"] == source).to_numpy()
        colour = GREY if source == "printed" else COLOURS[0]
        ax.barh(places[part], table.loc[part, "total"], 0.7, color=colour, label=source)
    ax.set_yticks(places, table["model"] + ", " + table["benchmark"])
    ax.set_xlabel(label)
    ax.grid(visible=False, axis="y")
    ax.figure.legend(loc="outside upper right", ncols=2)
    return ax
