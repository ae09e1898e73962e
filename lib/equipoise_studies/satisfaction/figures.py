"""Figures of satisfaction estimators, and the dialogues and prompts that are shown as text.

The texts of the dialogues are not shown, only the acts and ratings of their turns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from equipoise_compendium.plots import COLOURS
from equipoise_studies.satisfaction.claims import FEW_SHOT, FINE_TUNED, kind_of

MEASURE_NAMES = {
    "Acc": "Accuracy",
    "F1": "Macro F1",
    "sensitivity": "Sensitivity",
}
ALWAYS = "always "
"""Beginning of the name of an estimator that always predicts the same label."""

LABEL_GAP = 0.1
"""Smallest distance of two lines of text next to a panel, in its units."""


def curve_panels(
    table: pd.DataFrame, measures: Sequence[str], sizes: Mapping[str, int], title: str, ends: str
) -> Figure:
    """Draw measures over the share of dissatisfied samples: rows are measures, columns collections.

    Fine-tuned estimators are a band, from the lowest to the highest of them, with their mean. Each
    few-shot estimator is a line.

    Parameters
    ----------
    table : DataFrame
        Columns collection, run, measure, ratio, value, low, high.
    measures : sequence of str
        The measures to draw.
    sizes : mapping
        Samples by collection.
    title : str
        The title of the figure.
    ends : str
        Description of low and high, for the legend.

    Notes
    -----
    thesis, Figures 3.4 and 3.5.
    """
    names = table["collection"].unique()
    figure, axes = plt.subplots(
        len(measures),
        len(names),
        figsize=(8, 0.9 + 2.3 * len(measures)),
        sharex=True,
        sharey=True,
        squeeze=False,
    )
    for place, (measure, name) in enumerate(product(measures, names)):
        ax = axes.flat[place]
        curves = table[(table["collection"] == name) & (table["measure"] == measure)]
        _draw_kinds(ax, curves)
        ax.set_title(f"{name}, n = {sizes[name]:,} samples", loc="left", fontsize=10)
    for ax, measure in zip(axes[:, 0], measures, strict=True):
        ax.set_ylabel(MEASURE_NAMES[measure])
    for ax in axes[-1]:
        ax.set_xlabel("Share of dissatisfied samples")
    handles = [
        Line2D([], [], color=COLOURS[0]),
        Patch(color="0.4", alpha=0.25, linewidth=0),
    ]
    labels = [
        "mean of the fine-tuned runs (number)",
        f"lowest to highest run of a kind, with {ends}",
    ]
    figure.legend(handles, labels, ncols=2, loc="outside lower center")
    figure.suptitle(title, fontsize=11)
    return figure


def _draw_kinds(ax: Axes, curves: pd.DataFrame) -> None:
    """Draw the curves of one measure on one collection, each kind with its name at the end."""
    kinds = curves["run"].map(_kind)
    labels = []
    for kind, lines in curves.groupby(kinds, sort=False):
        by_ratio = lines.groupby("ratio")
        mean = by_ratio["value"].mean()
        style = _style(str(kind), kinds.unique())
        ax.plot(mean.index, mean, **style)
        ax.fill_between(
            mean.index,
            by_ratio["low"].min(),
            by_ratio["high"].max(),
            color=style["color"],
            alpha=0.2,
            linewidth=0,
        )
        label = str(kind)
        n_runs = lines["run"].nunique()
        if n_runs > 1:
            label += f" ({n_runs})"
        labels.append((float(mean.iloc[-1]), label, style["color"]))
    _label_ends(ax, labels)
    ax.set(ylim=(-0.02, 1.02), xlim=(0, 1))


def _kind(run: str) -> str:
    """Return the line of an estimator: fine-tuned ones together, few-shot ones by name."""
    if run == "constant":
        return f"{ALWAYS}satisfied"
    if run.startswith(ALWAYS):
        return run
    if kind_of(run) == FEW_SHOT:
        return run.removesuffix(", Few-shot")
    return FINE_TUNED


def _style(kind: str, kinds: Sequence[str]) -> dict[str, Any]:
    """Return the style of a line; few-shot estimators share a colour, not their dashes."""
    if kind.startswith(ALWAYS):
        return {"color": "0.4", "linestyle": (0, (1.2, 1.2)), "linewidth": 1.2}
    if kind == FINE_TUNED:
        return {"color": COLOURS[0], "linestyle": "-"}
    drawn_alike = [name for name in kinds if not name.startswith((ALWAYS, FINE_TUNED))]
    dashes = ["-", (0, (5, 1.5)), (0, (1.2, 1.2))]
    place = drawn_alike.index(kind)
    return {"color": COLOURS[2], "linestyle": dashes[place % len(dashes)]}


def _label_ends(ax: Axes, labels: Sequence[tuple[float, str, str]]) -> None:
    """Write the names of lines to the right of their ends, without overlap.

    ``labels`` are value, name and colour of each line.
    """
    labels = sorted(labels)
    heights = [value for value, _, _ in labels]
    for place in range(1, len(heights)):
        heights[place] = max(heights[place], heights[place - 1] + LABEL_GAP)
    # A name above the panel moves down, and so do the names below it.
    limit = 1.0 if heights and heights[-1] > 1.0 else np.inf
    for place in reversed(range(len(heights))):
        heights[place] = min(heights[place], limit)
        limit = heights[place] - LABEL_GAP

    for height, (_, text, colour) in zip(heights, labels, strict=True):
        ax.annotate(
            text,
            xy=(1.02, height),
            textcoords="data",
            annotation_clip=False,
            va="center",
            fontsize=9,
            color=colour,
        )


# --- text -----------------------------------------------------------------------------------------


def turned_utterances(turns: pd.DataFrame, examples: pd.DataFrame) -> list[tuple[str, str]]:
    """Show user utterances with their own and another response (thesis Figure 3.2).

    ``examples`` has the columns collection, sample, dialogue, turn, dissatisfied (with the other
    response) and response.
    """
    by_turn = turns.set_index(["collection", "dialogue", "turn"])
    lines = []
    for example in examples.itertuples():
        before, after = "dissatisfied", "satisfied"
        if example.dissatisfied:
            before, after = after, before
        act = by_turn.loc[(example.collection, example.dialogue, example.turn - 1), "act"]
        # A response is rated before the user's next turn.
        ratings = by_turn.loc[(example.collection, example.dialogue, example.turn), "ratings"]
        lines += [
            ("", f"{example.collection} {example.sample}, from {before} to {after}"),
            ("USER", f"an utterance with the act {act or 'none'}"),
            (
                f"SYSTEM, own response ({before})",
                f"a response, rated {', '.join(map(str, ratings))}",
            ),
            (f"SYSTEM, other response ({after})", example.response),
        ]
    return lines


def without_example_dialogues(prompt: str) -> str:
    """Replace the utterances of a prompt's worked examples by a note."""
    lines = []
    n_utterances: int | None = None  # of the example that is being read
    for line in prompt.splitlines():
        if line.startswith("Example ") and line.endswith(":"):
            n_utterances = 0
        elif n_utterances is not None and line.startswith(("USER:", "SYSTEM:")):
            n_utterances += 1
            continue
        elif n_utterances is not None and line:
            lines += [f"{{{n_utterances} utterances of a dialogue of MultiWOZ}}", ""]
            n_utterances = None
        if line or not lines or lines[-1]:
            lines.append(line)
    return "\n".join(lines)
