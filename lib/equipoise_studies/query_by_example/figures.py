"""Figures of thesis chapter 2: two architectures, the task, mixtures by weight, differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Patch, Rectangle

from equipoise_compendium.plots import COLOURS, literal, look

GRADE_COLOURS = ("#FFFFFF", "#8FC1E3", "#2F7FBF", "#08306B")
"""Grades 0 to 3, from not relevant to identical: one hue, darker for more relevant."""

ORACLE_DASHES = ("--", ":")
"""Lines of the oracle over the first and the second encoder."""


def _box(
    ax: Axes, x: float, y: float, width: float, height: float, text: str, colour: str = "#FFFFFF"
) -> None:
    style = "round,pad=0,rounding_size=0.08"
    ax.add_patch(
        FancyBboxPatch((x, y), width, height, boxstyle=style, fc=colour, ec="#444444", lw=1.0)
    )
    ax.text(x + width / 2, y + height / 2, literal(text), ha="center", va="center", fontsize=9)


def _arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    ax.add_patch(
        FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=9, color="#444444", lw=1.0)
    )


def tilde_architectures(weights: pd.DataFrame, query: Sequence[str], title: str) -> Figure:
    """Draw how TILDE and TILDEv2 compute a score, with real weights of one document.

    Parameters
    ----------
    weights
        ``system, token, weight``. The system "TILDE" has probabilities of vocabulary tokens, most
        probable first; "TILDEv2" has weights of the document's tokens in their order.
    query
        Tokens of a query; those that a model finds are marked.
    title
        Title of the figure.

    Notes
    -----
    thesis Figure 2.1.
    """
    architectures = (
        (
            "TILDE",
            "[CLS] or mean",
            "language-model head",
            "Probability of tokens of the vocabulary",
        ),
        (
            "TILDEv2",
            "every token",
            "projection to a scalar, ReLU",
            "Weight of tokens of the document",
        ),
    )
    figure, axes = plt.subplots(2, 1, figsize=(6, 9.2))
    in_query: dict[str, Any] = {"facecolor": COLOURS[1], "edgecolor": "white", "hatch": "///"}
    for ax, (system, read, head, label) in zip(axes, architectures, strict=True):
        system_weights = weights[weights["system"] == system].head(12)
        ax.set(xlim=(0, 10), ylim=(0, 10))
        ax.set_title(system, loc="left")
        ax.axis("off")
        _box(ax, 0.3, 0.2, 5.2, 1.0, "document d: [CLS] t1 … tn [SEP]", "#F4F4F4")
        _box(ax, 0.3, 1.9, 5.2, 1.1, "BERT encoder, once per document")
        _box(ax, 0.3, 3.7, 5.2, 1.0, f"{head}\non {read}")
        _box(ax, 6.3, 0.2, 3.6, 1.0, "query q, of any length", "#F4F4F4")
        _box(ax, 6.3, 1.9, 3.6, 1.1, "BERT tokeniser only")
        for x, low, high in (
            (2.9, 1.2, 1.9),
            (2.9, 3.0, 3.7),
            (2.9, 4.7, 5.1),
            (8.2, 1.2, 1.9),
            (8.2, 3.0, 5.1),
        ):
            _arrow(ax, (x, low), (x, high))
        ax.text(8.1, 3.9, "token counts\nlook up\nweights", fontsize=9, va="center", ha="right")
        inner = ax.inset_axes((0.1, 0.73, 0.9, 0.27))
        tokens = system_weights["token"]
        bars = inner.bar(range(len(tokens)), system_weights["weight"], color=COLOURS[0], width=0.75)
        for bar, found in zip(bars, tokens.isin(list(query)), strict=True):
            if found:
                bar.set(**in_query)
        inner.set_xticks(range(len(tokens)), map(literal, tokens), rotation=60, ha="right")
        inner.tick_params(labelsize=9)
        inner.set_ylabel(label.replace(" of ", "\nof "), fontsize=9)
        inner.grid(visible=False, axis="x")
    handles = [Patch(**in_query), Patch(color=COLOURS[0])]
    labels = ["in the query: adds to the score", "not in the query"]
    figure.legend(handles, labels, ncols=2, loc="outside lower center")
    figure.suptitle(title, fontsize=11)
    return figure


def ranked_candidates(grades: pd.DataFrame, n_candidates: int, title: str) -> Figure:
    """Draw one query's rankings: one row per ranker, one tile per candidate, darker if relevant.

    ``grades``: 0 to 3, one row per ranker, one column per rank. ``n_candidates``: of the query.

    thesis Figure 2.2.
    """
    cells = grades.to_numpy()
    if cells.min() < 0 or cells.max() >= len(GRADE_COLOURS):
        raise ValueError(f"grades must be 0 to 3, got {cells.min()} to {cells.max()}")
    rows, ranks = cells.shape
    figure, ax = plt.subplots(figsize=(7, 1.1 + 0.36 * rows))
    for (row, rank), grade in np.ndenumerate(cells):
        tile = Rectangle(
            (rank + 0.54, row - 0.42), 0.92, 0.84, fc=GRADE_COLOURS[grade], ec="#888888", lw=0.5
        )
        ax.add_patch(tile)
    ax.set(xlim=(0.4, ranks + 0.6), ylim=(rows - 0.5, -0.6), xticks=[1, *range(5, ranks + 1, 5)])
    ax.set_yticks(range(rows), map(literal, grades.index))
    ax.tick_params(axis="y", length=0)
    ax.set_title(title, loc="left", fontsize=10)
    ax.set_xlabel(f"Rank (first {ranks} of {n_candidates} candidates)")
    ax.grid(visible=False)
    ax.spines["left"].set_visible(False)
    handles = []
    for grade in np.unique(cells):
        label = f"grade {grade}" if grade else "grade 0 (not relevant)"
        handles.append(Patch(fc=GRADE_COLOURS[grade], ec="#888888", label=label))
    figure.legend(handles=handles, ncols=len(handles), loc="outside lower center")
    return figure


def interpolation_sweep(
    means: pd.DataFrame,
    best: pd.DataFrame,
    rankers: Mapping[str, str],
    sizes: Mapping[str, int],
    title: str,
) -> Figure:
    """Draw mixture minus BM25 by weight, and the oracle as a level: designs by tasks.

    Parameters
    ----------
    means
        ``fusion, measure, task, alpha, difference, low, high``, of the paired differences.
    best
        ``fusion, measure, task, difference`` of the oracle.
    rankers
        The ranker that each fusion mixes with BM25, a design and an encoder: ``TILDE MiniLM``.
    sizes
        Queries of each task.
    title
        Title of the figure.

    Notes
    -----
    thesis Figure 2.3: weight 0 is TILDE or TILDEv2 alone, 1 is BM25 alone.
    """
    levels = best.set_index(["fusion", "measure", "task"])["difference"]
    lines = dict(iter(means.groupby(["fusion", "measure", "task"])))
    encoders = list(dict.fromkeys(name.partition(" ")[2] for name in rankers.values()))
    designs = list(dict.fromkeys(name.partition(" ")[0] for name in rankers.values()))
    panels = list(product(designs, means["measure"].unique()))
    size = (7, 1.4 + 1.7 * len(panels))
    grid: dict[str, Any] = {"sharex": True, "sharey": "row", "squeeze": False}
    figure, axes = plt.subplots(len(panels), len(sizes), figsize=size, **grid)
    for row, (design, measure) in zip(axes, panels, strict=True):
        row[0].set_ylabel(f"{design}: difference\nin {measure} from BM25")
        for ax, task in zip(row, sizes, strict=True):
            ax.axhline(0, color="#444444", lw=0.8, zorder=0)
            for fusion, name in rankers.items():
                if not name.startswith(f"{design} "):
                    continue
                number = encoders.index(name.partition(" ")[2])
                line, style = lines[fusion, measure, task], look(number)
                ax.plot(line["alpha"], line["difference"], markersize=4, **style)
                ax.fill_between(
                    line["alpha"], line["low"], line["high"], color=style["color"], alpha=0.2, lw=0
                )
                level = levels[fusion, measure, task]
                ax.axhline(level, color=style["color"], ls=ORACLE_DASHES[number])
    for ax, (task, n_queries) in zip(axes[0], sizes.items(), strict=True):
        ax.set_title(f"{task}, n = {n_queries:,}", loc="left", fontsize=10)
    for ax in axes[-1]:
        ax.set_xlabel("Weight of BM25, α")
    handles: list[Artist] = []
    labels = []
    for number, encoder in enumerate(encoders):
        handles.append(Line2D([], [], markersize=4, **look(number)))
        handles.append(Line2D([], [], color=look(number)["color"], ls=ORACLE_DASHES[number]))
        labels += [f"{encoder}, one α for all queries", f"{encoder}, best α of each query"]
    handles.append(Patch(color="#444444", alpha=0.2, lw=0))
    figure.legend(handles, [*labels, "95% CI"], ncols=2, loc="outside lower center")
    figure.suptitle(title, fontsize=11)
    return figure


def differences(table: pd.DataFrame, title: str) -> Figure:
    """Draw differences in MAP with their intervals, one row per finding.

    ``table``: ``finding, collection, MAP, low, high, papers``. Collections differ in colour and
    marker.
    """
    collections = table["collection"].unique()
    places = {finding: place for place, finding in enumerate(table["finding"].unique())}
    figure, ax = plt.subplots(figsize=(7, 1.4 + 0.36 * len(places)))
    handles: list[Artist] = []
    labels = []
    for number, collection in enumerate(collections):
        rows, style = table[table["collection"] == collection], look(number)
        # Collections are drawn a little above one another.
        height = rows["finding"].map(places) + 0.22 * (number - (len(collections) - 1) / 2)
        ax.hlines(height, rows["low"], rows["high"], color=style["color"])
        ax.plot(rows["MAP"], height, linestyle="", markersize=5, **style)
        handles.append(Line2D([], [], markersize=5, **style))
        labels.append(f"{collection}, n = {rows['papers'].max()} query papers")
    ax.axvline(0, color="#444444", lw=0.8)
    ax.set_yticks(range(len(places)), map(literal, places))
    ax.invert_yaxis()
    ax.set_xlabel("Difference in MAP (mark) and its 95% CI (line)")
    figure.legend(handles, labels, ncols=len(collections), loc="outside lower center")
    figure.suptitle(title, fontsize=11)
    return figure
