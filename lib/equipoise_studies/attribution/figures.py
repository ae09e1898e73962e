"""Figures of attribution: modes, sensitivity and bias."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from equipoise_compendium.plots import COLOURS, GREY, look, note

WIDTH, WIDE = 7.0, 9.0
"""The two widths of figures, in inches."""

_RELEVANT, _NONRELEVANT = "#dbe9f6", "#f1f1f1"
_LABELLED, _PLAIN = "#f5c45e", "white"


def modes(documents: pd.DataFrame, title: str) -> Figure:
    """Draw how each mode labels each document.

    ``documents`` (columns mode, document, relevant, author, label): one row for each mode and
    document; ``author`` wrote it, ``label`` is what a model receives, missing for no label.

    thesis, Figures 5.3 and 5.4.
    """
    centred: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 10}
    names = documents["mode"].drop_duplicates().tolist()
    figure, ax = plt.subplots(figsize=(WIDTH, 1.34 * len(names)))
    for line, mode in enumerate(names):
        for place, row in enumerate(documents[documents["mode"] == mode].itertuples()):
            box = FancyBboxPatch(
                (place + 0.06, -line - 0.8),
                0.86,
                0.62,
                boxstyle="round,pad=0.02",
                lw=1.2,
                fc=_RELEVANT if row.relevant else _NONRELEVANT,
                ec=COLOURS[0] if row.relevant else "#888888",
            )
            ax.add_patch(box)
            author = f"relevant, by {row.author}" if row.relevant else f"by {row.author}"
            text = f"Document [{row.document}]\n{author}"
            ax.text(place + 0.49, -line - 0.38, text, **centred)
            label, background = "no label", _PLAIN
            if not pd.isna(row.label):
                label, background = f"[{row.label}]", _LABELLED
            tag = {"fc": background, "ec": "none", "pad": 2}
            ax.text(place + 0.49, -line - 0.7, label, bbox=tag, **centred)
        name = mode.replace("/", "/\n")
        ax.text(-0.1, -line - 0.5, name, ha="right", va="center", fontweight="bold")
    ax.set_xlim(-1.1, documents.groupby("mode").size().max() + 0.05)
    ax.set_ylim(-len(names) - 0.05, 0)
    ax.axis("off")
    ax.set_title(title, fontsize=11)
    return figure


def biases(table: pd.DataFrame, few: int) -> Figure:
    """Draw CAB with its intervals by group, from top to bottom, and a line at zero.

    ``table`` (columns name, questions, value, low, high, group, published low, published mean,
    published high): the name of a group, a pair of labels, is above its rows. The published range
    is under each row. ``few``: below so many questions a mark is hollow and its line thin.
    """
    n_groups = table["group"].nunique()
    figure, ax = plt.subplots(figsize=(WIDTH, 1.2 + 0.3 * (len(table) + 1.4 * n_groups)))
    places: list[float] = []
    place = 0.0
    for group, rows in table.groupby("group", sort=False):
        ax.text(
            0, place, str(group), transform=ax.get_yaxis_transform(), weight="bold", va="center"
        )
        places += [place - 1 - number for number in range(len(rows))]
        place -= len(rows) + 1.4

    by_group = table.groupby("group", sort=False).ngroup().sort_values(kind="stable").index
    table = table.loc[by_group].assign(at=places)
    columns = ["published low", "published mean", "published high"]
    low, mean, high = table[columns].to_numpy(dtype=np.float64).T
    ax.axvline(0, color="#444444", lw=1)
    ax.barh(table["at"], high - low, 0.8, low, color="#dddddd", label="range in the thesis")
    ax.scatter(mean, table["at"], marker="|", s=120, color="#444444", label="mean in the thesis")
    is_few = table["questions"] < few
    many_style = {"ms": 8, "elinewidth": 2.6, "label": f"at least {few} questions, 95% CI"}
    few_style = {"ms": 5, "elinewidth": 0.9, "mfc": "white", "label": "fewer questions, 95% CI"}
    for rows, weight in ((table[~is_few], many_style), (table[is_few], few_style)):
        lengths = np.abs(rows[["low", "high"]].to_numpy().T - rows["value"].to_numpy())
        style: dict[str, Any] = look(0) | weight | {"linestyle": "none"}
        ax.errorbar(rows["value"], rows["at"], xerr=lengths, **style)
    figure.legend(loc="outside lower center", ncols=2, fontsize=9)
    ax.set_yticks(table["at"], table["name"])
    ax.set_ylim(place + 0.6, 0.7)
    ax.set_xlabel("CAB (points)", labelpad=30)
    below_zero: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "va": "top", "fontsize": 9}
    note(ax, "← favours the\nsecond label", (0, 0), (-6, -20), ha="right", **below_zero)
    note(ax, "favours the\nfirst label →", (0, 0), (6, -20), ha="left", **below_zero)
    ax.grid(visible=False, axis="y")
    return figure


def values_over(ax: Axes, table: pd.DataFrame, x: str, label: str) -> Axes:
    """Draw values with their intervals, one column per number, groups side by side within it.

    ``x``: column of the x axis. ``label``: of the y axis.

    thesis, Figure 5.9.
    """
    numbers = sorted(table[x].unique())
    groups = table["group"].unique()
    for column in range(0, len(numbers), 2):  # every other column is shaded
        ax.axvspan(column - 0.5, column + 0.5, color="#f2f2f2", lw=0, zorder=0)
    for number, group in enumerate(groups):
        rows = table[table["group"] == group]
        places = rows[x].map(numbers.index) + 0.8 * ((number + 0.5) / len(groups) - 0.5)
        lengths = np.abs(rows[["low", "high"]].to_numpy().T - rows["value"].to_numpy())
        style = look(number)
        ax.plot(places, rows["value"], linestyle="none", ms=5, label=str(group), **style)
        bars: dict[str, Any] = {"fmt": "none", "elinewidth": 1.4, "ecolor": style["color"]}
        ax.errorbar(places, rows["value"], yerr=lengths, **bars)
    ax.set_xticks(range(len(numbers)), [f"{number:g}" for number in numbers])
    ax.set_xlim(-0.5, len(numbers) - 0.5)
    ax.tick_params(axis="x", length=0)
    ax.grid(visible=False, axis="x")
    ax.set_ylabel(label)
    return ax


def bars(table: pd.DataFrame, label: str, sources: Mapping[str, str]) -> Figure:
    """Draw numbers as bars below each other; published ones are grey.

    ``table``: columns benchmark, model, source, total. ``label``: of the x axis.
    ``sources``: what the legend calls each source.
    """
    figure, ax = plt.subplots(figsize=(WIDTH, 0.8 + 0.32 * len(table)))
    places = -np.arange(len(table), dtype=np.float64)
    for source in table["source"].drop_duplicates():
        source_rows = (table["source"] == source).to_numpy()
        ax.barh(
            places[source_rows],
            table.loc[source_rows, "total"],
            0.7,
            color=GREY if source == "published" else COLOURS[0],
            label=sources[source],
        )
    ax.set_yticks(places, table["model"] + ", " + table["benchmark"])
    ax.set_xlabel(label)
    ax.grid(visible=False, axis="y")
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def over_passages(table: pd.DataFrame) -> Figure:
    """Draw CAS above CAB by the number of passages (thesis, Figure 5.9)."""
    figure, axes = plt.subplots(2, 1, figsize=(WIDTH, 5.3), sharex=True)
    table = table.assign(group=table["model"] + ", " + table["benchmark"])
    for ax, quantity in zip(axes, ("CAS", "CAB"), strict=True):
        values_over(ax, table[table["quantity"] == quantity], "k", f"{quantity} (points)")
        ax.axhline(0, color="#444444", lw=1)
    axes[1].set_xlabel("Passages shown (k)")
    _legend_with_n(figure, table)
    return figure


def _legend_with_n(figure: Figure, table: pd.DataFrame) -> None:
    """Add a legend with the number of questions of each ``group`` below the figure."""
    handles, groups = figure.axes[0].get_legend_handles_labels()
    questions = table.groupby("group")["questions"]
    labels = []
    for group in groups:
        counts = questions.get_group(group)
        least, most = counts.min(), counts.max()
        n = f"{least} to {most}" if least < most else f"{least}"
        labels.append(f"{group}, n = {n}")
    figure.legend(handles, labels, loc="outside lower center", ncol=2, fontsize=9)


def large_models(table: pd.DataFrame, most_passages: int) -> Figure:
    """Draw scores of large models by the number of passages, and by the relevant one's position.

    ``table``: ``over, at, model, score, questions, value, low, high``; over passages or place.
    """
    widths = {"width_ratios": [3, 7]}  # the right panels show more numbers
    size = (WIDE, 7.5)
    figure, axes = plt.subplots(3, 2, figsize=size, sharex="col", sharey="row", gridspec_kw=widths)
    table = table.assign(group=table["model"])
    for column, over in enumerate(("passages", "place")):
        rows = table[table["over"] == over]
        for ax, score in zip(axes[:, column], rows["score"].unique(), strict=True):
            label = "" if column else f"{score} (points)"
            values_over(ax, rows[rows["score"] == score], "at", label)
    axes[2, 0].set_xlabel("Passages shown")
    axes[2, 1].set_xlabel(f"Position of the relevant passage among {most_passages}")
    _legend_with_n(figure, table[table["over"] == "passages"])
    return figure


def people(table: pd.DataFrame) -> Figure:
    """Draw the share of passages that GPT-4o and people cite, by their rank and by their grade.

    ``table``: as for `large_models`; over rank or grade.
    """
    widths = {"width_ratios": [4, 1]}
    figure, axes = plt.subplots(1, 2, figsize=(WIDE, 3.8), sharey=True, gridspec_kw=widths)
    for ax, over in zip(axes, ("rank", "grade"), strict=True):
        values_over(ax, table[table["over"] == over].assign(group=table["model"]), "at", "")
        ax.set_xlabel(f"{over.capitalize()} of the passage")
    axes[0].set(ylabel="Passages cited (%)", ylim=(0, 100))
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure
