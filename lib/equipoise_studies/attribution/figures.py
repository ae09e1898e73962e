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
    figure, ax = plt.subplots(figsize=(7, 1.34 * len(names)))
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


def biases(table: pd.DataFrame) -> Figure:
    """Draw CAB with its intervals by group, from top to bottom, and a line at zero.

    ``table`` (columns name, value, low, high, group, published low, published mean, published
    high): the name of a group, a pair of labels, is above its rows. The published range is under
    each row.
    """
    n_groups = table["group"].nunique()
    figure, ax = plt.subplots(figsize=(7, 1.2 + 0.3 * (len(table) + 1.4 * n_groups)))
    places: list[float] = []
    place = 0.0
    for group, rows in table.groupby("group", sort=False):
        ax.text(
            0, place, str(group), transform=ax.get_yaxis_transform(), weight="bold", va="center"
        )
        places += [place - 1 - number for number in range(len(rows))]
        place -= len(rows) + 1.4

    by_group = table.groupby("group", sort=False).ngroup().sort_values(kind="stable").index
    table = table.loc[by_group]
    at = np.array(places)
    columns = ["published low", "published mean", "published high"]
    low, mean, high = table[columns].to_numpy(dtype=np.float64).T
    ax.axvline(0, color="#444444", lw=1)
    ax.barh(at, high - low, 0.8, low, color="#dddddd", label="range in the thesis")
    ax.scatter(mean, at, marker="|", s=120, color="#444444", label="mean in the thesis")
    lengths = np.abs(table[["low", "high"]].to_numpy().T - table["value"].to_numpy())
    style = look(0) | {"linestyle": "none", "label": "this replication, 95% CI"}
    ax.errorbar(table["value"], at, xerr=lengths, capsize=3, **style)
    figure.legend(loc="outside lower center", ncols=3, fontsize=9)
    # "n = 15" is one word, where a name breaks.
    ax.set_yticks(at, table["name"].str.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"))
    ax.set_ylim(place + 0.6, 0.7)
    ax.set_xlabel("CAB (points)", labelpad=18)
    below_zero: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "va": "top", "fontsize": 9}
    note(ax, "← favours the second label", (0, 0), (-6, -20), ha="right", **below_zero)
    note(ax, "favours the first label →", (0, 0), (6, -20), ha="left", **below_zero)
    ax.grid(visible=False, axis="y")
    return figure


def values_over(ax: Axes, table: pd.DataFrame, x: str, label: str) -> Axes:
    """Draw values with their intervals over a number, side by side where the number is the same.

    ``x``: column of the x axis. ``label``: of the y axis.

    thesis, Figure 5.9.
    """
    groups = table["group"].unique()
    # The groups share four fifths of the least distance between two numbers.
    distances = np.diff(np.sort(table[x].unique()))
    least_distance = float(distances.min()) if distances.size else 1.0
    step = 0.8 * least_distance / max(len(groups), 2)
    for number, group in enumerate(groups):
        rows = table[table["group"] == group]
        shift = step * (number - (len(groups) - 1) / 2)
        places = rows[x].to_numpy(dtype=np.float64) + shift
        lengths = np.abs(rows[["low", "high"]].to_numpy().T - rows["value"].to_numpy())
        style = look(number)
        ax.plot(places, rows["value"], linestyle="none", label=str(group), **style)
        ax.errorbar(
            places, rows["value"], yerr=lengths, fmt="none", capsize=3, ecolor=style["color"]
        )
    ax.set_xticks(sorted(table[x].unique()))
    ax.set_ylabel(label)
    return ax


def bars(table: pd.DataFrame, label: str, sources: Mapping[str, str]) -> Figure:
    """Draw numbers as bars below each other; published ones are grey.

    ``table``: columns benchmark, model, source, total. ``label``: of the x axis.
    ``sources``: what the legend calls each source.
    """
    figure, ax = plt.subplots(figsize=(6, 0.8 + 0.32 * len(table)))
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
    figure, axes = plt.subplots(2, 1, figsize=(6, 5.3), sharex=True)
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


def large_models(by_passages: pd.DataFrame, by_place: pd.DataFrame, most_passages: int) -> Figure:
    """Draw scores of large models by the number of passages, and by the relevant one's position."""
    widths = {"width_ratios": [3, 7]}  # the right panels show more numbers
    figure, axes = plt.subplots(
        3, 2, figsize=(10, 7.5), sharex="col", sharey="row", gridspec_kw=widths
    )
    by_passages = by_passages.assign(group=by_passages["model"])
    panels = {"passages": by_passages, "place": by_place.assign(group=by_place["model"])}
    for column, (over, table) in enumerate(panels.items()):
        for ax, score in zip(axes[:, column], ("Precision", "Recall", "Correctness"), strict=True):
            rows = table[table["score"] == score]
            values_over(ax, rows, over, "" if column else f"{score} (points)")
    axes[2, 0].set_xlabel("Passages shown")
    axes[2, 1].set_xlabel(f"Position of the relevant passage among {most_passages}")
    _legend_with_n(figure, by_passages)
    return figure


def people(by_rank: pd.DataFrame, by_grade: pd.DataFrame) -> Figure:
    """Draw the share of passages that GPT-4o and people cite, by their rank and by their grade."""
    widths = {"width_ratios": [3, 1]}
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, gridspec_kw=widths)
    panels = {"Rank of the passage": by_rank, "Grade of the passage": by_grade}
    for ax, (label, table) in zip(axes, panels.items(), strict=True):
        values_over(ax, table.assign(group=table["model"]), "at", "")
        ax.set_xlabel(label)
    axes[0].set(ylabel="Passages cited (%)", ylim=(0, 100))
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure
