"""Figures of thesis chapter 2: the two architectures, the task, and effectiveness over the interpolation weight."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Patch, Rectangle
from numpy.typing import NDArray

from equipoise.plots import COLOURS, literal

GRADE_COLOURS = ("#E8E8E8", "#C6DBEF", "#6BAED6", "#08519C")
"""Grades 0 to 3, from not relevant to identical: one hue, darker for more relevant."""


def _box(ax: Axes, x: float, y: float, width: float, height: float, text: str, colour: str = "#FFFFFF") -> None:
    style = "round,pad=0,rounding_size=0.08"
    ax.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=style, fc=colour, ec="#444444", lw=1.0))
    ax.text(x + width / 2, y + height / 2, literal(text), ha="center", va="center", fontsize=9)


def _arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    ax.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=9, color="#444444", lw=1.0))


def tilde_architectures(axes: Sequence[Axes], weights: pd.DataFrame, query: Sequence[str]) -> None:
    """Draw how TILDE and TILDEv2 come to a score, with real weights of one document.

    ``axes``: for TILDE and for TILDEv2. ``weights``: ``system, token, weight``, the systems "TILDE" (log-probabilities
    of vocabulary tokens, most likely first) and "TILDEv2" (weights of the document's tokens in their order). ``query``:
    tokens of a query; those that a model finds are marked.

    thesis Figure 2.1.
    """
    parts = (
        ("TILDE", "[CLS] or mean", "language-model head", "Log-probability of vocabulary tokens [nats]"),
        ("TILDEv2", "every token", "projection to a scalar, ReLU", "Weight of document tokens"),
    )
    for ax, (system, read, head, label) in zip(axes, parts, strict=True):
        own = weights[weights["system"] == system].head(14)
        ax.set(xlim=(0, 10), ylim=(0, 10), title=system)
        ax.axis("off")
        _box(ax, 0.3, 0.2, 5.2, 1.0, "document d: [CLS] t₁ … tₙ [SEP]", "#F4F4F4")
        _box(ax, 0.3, 1.9, 5.2, 1.1, "BERT encoder, once a document")
        _box(ax, 0.3, 3.7, 5.2, 1.0, f"{head} on {read}")
        _box(ax, 6.7, 0.2, 3.0, 1.0, "query q, of any length", "#F4F4F4")
        _box(ax, 6.7, 1.9, 3.0, 1.1, "BERT tokeniser only")
        for x, low, high in ((2.9, 1.2, 1.9), (2.9, 3.0, 3.7), (2.9, 4.7, 5.2), (8.2, 1.2, 1.9), (8.2, 3.0, 5.2)):
            _arrow(ax, (x, low), (x, high))
        ax.text(8.3, 4.1, "token counts\nlook weights up", fontsize=8, va="center")
        inner = ax.inset_axes((0.06, 0.62, 0.92, 0.34))
        colours = np.where(own["token"].isin(list(query)), COLOURS[1], COLOURS[0])
        inner.bar(np.arange(len(own)), own["weight"], color=colours, width=0.75)
        inner.set_xticks(np.arange(len(own)), map(literal, own["token"]), rotation=60, ha="right", fontsize=7)
        inner.tick_params(axis="y", labelsize=7)
        inner.set_ylabel(label.replace(" [", "\n[").replace(" of ", "\nof "), fontsize=7)
        inner.grid(visible=False, axis="x")
        handles = [Patch(color=COLOURS[1]), Patch(color=COLOURS[0])]
        inner.legend(handles, ["in the query: summed", "not in the query"], fontsize=7, loc="best")


def ranked_candidates(ax: Axes, grades: NDArray[np.int64], systems: Sequence[str], query: str) -> Axes:
    """Draw one query's rankings as rows of tiles, a tile a candidate, coloured by its grade.

    ``grades`` (shaped (systems, ranks)): of the candidate at each rank, 0 to 3. ``query`` names the query paper.

    thesis Figure 2.2.
    """
    if len(grades) != len(systems) or grades.min() < 0 or grades.max() >= len(GRADE_COLOURS):
        raise ValueError(f"{len(systems)} systems and grades of 0 to 3 wanted, found shape {grades.shape}")
    rows, ranks = grades.shape
    for (row, rank), grade in np.ndenumerate(grades):
        tile = Rectangle((rank + 0.54, row - 0.42), 0.92, 0.84, fc=GRADE_COLOURS[grade], ec="#888888", lw=0.5)
        ax.add_patch(tile)
    _box(ax, -7.5, (rows - 1) / 2 - 0.8, 4.2, 1.6, f"query document q:\n{query}", "#F4F4F4")
    for row in range(rows):
        _arrow(ax, (-3.2, (rows - 1) / 2), (-2.4, row))
        ax.text(-2.3, row, literal(systems[row]), va="center", fontsize=8)
    ax.set(xlim=(-7.7, ranks + 1.5), ylim=(rows - 0.3, -0.7), xticks=[1, *range(5, ranks + 1, 5)], yticks=[])
    ax.set_xlabel("Rank among the candidate documents", loc="right")
    ax.grid(visible=False)
    ax.spines["left"].set_visible(False)
    handles = [Patch(fc=colour, ec="#888888") for colour in GRADE_COLOURS]
    ax.legend(handles, [f"grade {grade}" for grade in range(4)], ncols=4, loc="lower center", bbox_to_anchor=(0.6, 1.0))
    return ax


def interpolation_sweep(axes: NDArray[np.object_], means: pd.DataFrame, best: pd.DataFrame) -> None:
    """Draw mean effectiveness over the interpolation weight, and the oracle's as a level.

    ``axes`` (shaped (fusions times measures, tasks)): one row a fusion and measure, one column a task. ``means``:
    ``fusion, measure, task, alpha, value``. ``best``: ``fusion, measure, task, value`` of the oracle.

    thesis Figure 2.3: weight 0 is TILDE or TILDEv2 alone, 1 is BM25 alone.
    """
    keys = ["fusion", "measure", "task"]
    levels = best.set_index(keys)["value"]
    for ax, (key, line) in zip(axes.ravel(), means.groupby(keys, sort=False), strict=True):
        ax.plot(line["alpha"], line["value"], marker="o", markersize=3.5, color=COLOURS[0])
        ax.axhline(levels[key], color=COLOURS[1], ls="--")
    for ax, task in zip(axes[0], means["task"].unique(), strict=True):
        ax.set_title(task)
    for ax, cell in zip(axes[:, 0], means[keys[:2]].drop_duplicates().to_numpy(), strict=True):
        ax.set_ylabel("\n".join(cell), fontsize=8)
    for ax in axes[-1]:
        ax.set_xlabel("Weight of BM25, α")
    handles = [Line2D([], [], color=COLOURS[0], marker="o", markersize=3.5), Line2D([], [], color=COLOURS[1], ls="--")]
    axes[0, -1].legend(handles, ["one α for all queries", "best α of each query"], fontsize=7, loc="best")
