"""Figures of thesis chapter 2: two architectures, the task, and effectiveness over the weight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Patch, Rectangle
from numpy.typing import NDArray

from equipoise_compendium.plots import COLOURS, literal

GRADE_COLOURS = ("#FFFFFF", "#8FC1E3", "#2F7FBF", "#08306B")
"""Grades 0 to 3, from not relevant to identical: one hue, darker for more relevant."""


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


def tilde_architectures(axes: Sequence[Axes], weights: pd.DataFrame, query: Sequence[str]) -> None:
    """Draw how TILDE and TILDEv2 come to a score, with real weights of one document.

    ``axes``: for TILDE and for TILDEv2. ``weights``: ``system, token, weight``, the systems "TILDE"
    (probabilities of vocabulary tokens, most likely first) and "TILDEv2" (weights of the document's
    tokens in their order). ``query``: tokens of a query; those that a model finds are marked.

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
    for ax, (system, read, head, label) in zip(axes, architectures, strict=True):
        system_weights = weights[weights["system"] == system].head(12)
        ax.set(xlim=(0, 10), ylim=(0, 10))
        ax.set_title(system, loc="left")
        ax.axis("off")
        _box(ax, 0.3, 0.2, 5.2, 1.0, "document d: [CLS] t₁ … tₙ [SEP]", "#F4F4F4")
        _box(ax, 0.3, 1.9, 5.2, 1.1, "BERT encoder, once a document")
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
        inner = ax.inset_axes((0.1, 0.7, 0.9, 0.28))
        places, tokens = np.arange(len(system_weights)), system_weights["token"]
        colours = np.where(tokens.isin(list(query)), COLOURS[1], COLOURS[0])
        inner.bar(places, system_weights["weight"], color=colours, width=0.75)
        inner.set_xticks(places, map(literal, tokens), rotation=60, ha="right", fontsize=9)
        inner.tick_params(axis="y", labelsize=9)
        inner.set_ylabel(label.replace(" of ", "\nof "), fontsize=9)
        inner.grid(visible=False, axis="x")
    handles = [Patch(color=COLOURS[1]), Patch(color=COLOURS[0])]
    labels = ["in the query: counts", "not in the query"]
    axes[0].figure.legend(handles, labels, ncols=2, loc="outside lower center")


def ranked_candidates(
    ax: Axes, grades: NDArray[np.int64], systems: Sequence[str], query: str
) -> Axes:
    """Draw one query's rankings as rows of tiles, a tile a candidate, coloured by its grade.

    ``grades`` (shaped (systems, ranks)): of the candidate at each rank, 0 to 3. ``query`` names the
    query paper.

    thesis Figure 2.2.
    """
    if len(grades) != len(systems) or grades.min() < 0 or grades.max() >= len(GRADE_COLOURS):
        raise ValueError(
            f"grades must be 0 to 3 for {len(systems)} systems, got shape {grades.shape}"
        )
    rows, ranks = grades.shape
    for (row, rank), grade in np.ndenumerate(grades):
        tile = Rectangle(
            (rank + 0.54, row - 0.42), 0.92, 0.84, fc=GRADE_COLOURS[grade], ec="#888888", lw=0.5
        )
        ax.add_patch(tile)
    ax.set(xlim=(0.4, ranks + 0.6), ylim=(rows - 0.5, -0.6), xticks=[1, *range(5, ranks + 1, 5)])
    ax.set_yticks(range(rows), map(literal, systems))
    ax.tick_params(axis="y", length=0)
    ax.set_title(f"Query: {query}", loc="left", fontsize=10)
    ax.set_xlabel("Rank among the candidate documents")
    ax.grid(visible=False)
    ax.spines["left"].set_visible(False)
    handles = []
    for grade in np.unique(grades):
        label = f"grade {grade}"
        handles.append(Patch(fc=GRADE_COLOURS[grade], ec="#888888", label=label))
    ax.figure.legend(handles=handles, ncols=len(handles), loc="outside lower center")
    return ax


def interpolation_sweep(
    axes: NDArray[np.object_], means: pd.DataFrame, best: pd.DataFrame, names: Mapping[str, str]
) -> None:
    """Draw what a mixture gains on BM25 over the weight, and the oracle's gain as a level.

    ``axes`` (shaped (tasks, measures)): a row a task, a column a measure, both fusions over each
    other. ``means``: ``fusion, measure, task, alpha, difference, low, high``, of the
    paired differences from BM25 alone. ``best``: ``fusion, measure, task, difference`` of the
    oracle. ``names``: what the legend calls each fusion.

    thesis Figure 2.3: weight 0 is TILDE or TILDEv2 alone, 1 is BM25 alone.
    """
    levels = best.set_index(["fusion", "measure", "task"])["difference"]
    colours = dict(zip(names, COLOURS, strict=False))
    lines = dict(iter(means.groupby(["fusion", "measure", "task"])))
    for row, task in zip(axes, means["task"].unique(), strict=True):
        for ax, measure in zip(row, means["measure"].unique(), strict=True):
            ax.set_title(f"{task}: {measure}", loc="left", fontsize=10)
            ax.axhline(0, color="#444444", lw=0.8, zorder=0)
            for fusion, colour in colours.items():
                line = lines[fusion, measure, task]
                differences = line["difference"]
                ax.plot(line["alpha"], differences, marker="o", markersize=3.5, color=colour)
                ax.fill_between(
                    line["alpha"], line["low"], line["high"], color=colour, alpha=0.12, lw=0
                )
                ax.axhline(levels[fusion, measure, task], color=colour, ls="--")
    for ax in axes[-1]:
        ax.set_xlabel("Weight of BM25, α")
    for ax in axes[:, 0]:
        ax.set_ylabel("Gain on BM25 alone")
    handles: list[Artist] = [
        Line2D([], [], color=colours[name], marker="o", markersize=3.5) for name in names
    ]
    handles += [
        Line2D([], [], color="#444444"),
        Patch(color="#444444", alpha=0.12),
        Line2D([], [], color="#444444", ls="--"),
    ]
    labels = [
        *names.values(),
        "one α for all queries",
        "its 95% interval",
        "the best α of each query",
    ]
    axes[0, 0].figure.legend(handles, labels, ncols=2, loc="outside upper center")


def differences(ax: Axes, table: pd.DataFrame) -> None:
    """Draw differences in MAP with their intervals, a row a finding, a colour a collection.

    ``table``: ``finding, collection, MAP, low, high``.
    """
    collections = table["collection"].unique()
    places = {finding: place for place, finding in enumerate(table["finding"].unique())}
    for number, collection in enumerate(collections):
        rows = table[table["collection"] == collection]
        # Collections stand a little above one another.
        height = rows["finding"].map(places) + 0.22 * (number - (len(collections) - 1) / 2)
        ax.hlines(height, rows["low"], rows["high"], color=COLOURS[number])
        ax.plot(rows["MAP"], height, "o", markersize=4, color=COLOURS[number], label=collection)
    ax.axvline(0, color="#444444", lw=0.8)
    ax.set_yticks(range(len(places)), map(literal, places))
    ax.invert_yaxis()
    ax.set_xlabel("Difference in MAP, with its 95% interval over query papers")
    ax.figure.legend(ncols=len(collections), loc="outside upper center")
