"""Figures of satisfaction estimators, and the dialogues and prompts that are shown as text.

Texts of the collections are not shown: their turns are told by their acts and ratings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise, product
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from equipoise_compendium.plots import COLOURS
from equipoise_studies.satisfaction.annotation import Annotations
from equipoise_studies.satisfaction.claims import few_shot
from equipoise_studies.satisfaction.data import COLLECTIONS, Collection
from equipoise_studies.satisfaction.study import Study

MEASURE_NAMES = {"Acc": "Accuracy", "F1": "Macro F1", "sensitivity": "Sensitivity"}
CONSTANT = "always satisfied"
FINE_TUNED = "fine-tuned"
THRESHOLDS = ("usual", "chosen")

SAME_LINE = 0.01
"""A line nowhere farther from another one is that line."""

LABEL_GAP = 0.1
"""Least distance of two lines of text beside a panel, in its units."""


def curve_panels(
    table: pd.DataFrame, measures: Sequence[str], sizes: Mapping[str, int], title: str
) -> Figure:
    """Draw measures over the share of dissatisfied samples, a row a measure, a column a collection.

    Fine-tuned estimators are a band, from the lowest to the highest of them, with their mean; each
    few-shot one is a line, and says so if it is that of who always says dissatisfied. Names stand
    at the ends of the lines. ``table``: columns collection, run, measure, ratio, value, low, high.
    ``sizes``: samples by collection.

    thesis, Figures 3.4 and 3.5.
    """
    names = table["collection"].unique()
    figure, axes = plt.subplots(
        len(measures),
        len(names),
        figsize=(4.5 * len(names), 0.7 + 2.3 * len(measures)),
        sharex=True,
        sharey=True,
        squeeze=False,
    )
    for place, (measure, name) in enumerate(product(measures, names)):
        ax = axes.flat[place]
        curves = table[(table["collection"] == name) & (table["measure"] == measure)]
        _draw_kinds(ax, curves, measure)
        ax.set_title(f"{name}, n = {sizes[name]:,} samples", loc="left", fontsize=10)
    for ax, measure in zip(axes[:, 0], measures, strict=True):
        ax.set_ylabel(MEASURE_NAMES[measure])
    for ax in axes[-1]:
        ax.set_xlabel("Share of dissatisfied samples")
    figure.suptitle(title, fontsize=11)
    return figure


def _draw_kinds(ax: Axes, curves: pd.DataFrame, measure: str) -> None:
    """Draw the curves of one measure on one collection, with the name of each kind at its end."""
    kinds = curves["run"].map(_kind)
    labels = []
    for kind, of_kind in curves.groupby(kinds, sort=False):
        by_ratio = of_kind.groupby("ratio")
        mean = by_ratio["value"].mean()
        style = _style(str(kind), kinds.unique())
        ax.plot(mean.index, mean, **style)
        ax.fill_between(
            mean.index,
            by_ratio["low"].min(),
            by_ratio["high"].max(),
            color=style["color"],
            alpha=0.15,
            linewidth=0,
        )
        label = str(kind)
        n_runs = of_kind["run"].nunique()
        if n_runs > 1:
            label += f" ({n_runs})"
        elif kind != CONSTANT and _always_dissatisfied(mean, measure):
            label += ":\nalways dissatisfied"
        labels.append((float(mean.iloc[-1]), label, style["color"]))
    _label_ends(ax, labels)
    ax.set(ylim=(-0.02, 1.02), xlim=(0, 1))


def _kind(run: str) -> str:
    """What estimators are drawn as: a few-shot one by its name, the others of a kind together."""
    if run == "constant":
        return CONSTANT
    for threshold in THRESHOLDS:
        if f"({threshold})" in run:
            return f"{threshold} threshold"
    if few_shot([("", run)]):
        return run.removesuffix(", Few-shot")
    return FINE_TUNED


def _always_dissatisfied(mean: pd.Series, measure: str) -> bool:
    """Whether a curve, by ratio, is that of who calls every sample dissatisfied."""
    ratios = mean.index.to_numpy(dtype=np.float64)
    expected = {"Acc": ratios, "F1": ratios / (1 + ratios), "sensitivity": np.ones_like(ratios)}
    return bool(np.abs(mean.to_numpy() - expected[measure]).max() < SAME_LINE)


def _style(kind: str, kinds: Sequence[str]) -> dict[str, Any]:
    """The line of a kind: few-shot estimators share a colour, and differ in their dashes."""
    if kind == CONSTANT:
        return {"color": "0.4", "linestyle": (0, (1.2, 1.2)), "linewidth": 1.2}
    if kind in (FINE_TUNED, f"{THRESHOLDS[0]} threshold"):
        return {"color": COLOURS[0], "linestyle": "-"}
    drawn_alike = [name for name in kinds if name not in (CONSTANT, FINE_TUNED)]
    dashes = ["-", (0, (5, 1.5)), (0, (1.2, 1.2))]
    place = drawn_alike.index(kind)
    return {"color": COLOURS[2], "linestyle": dashes[place % len(dashes)]}


def _label_ends(ax: Axes, labels: Sequence[tuple[float, str, str]]) -> None:
    """Write names to the right of the lines' ends; ``labels``: value, text and colour of each."""
    labels = sorted(labels)
    for height, (_, text, colour) in zip(_label_heights(labels), labels, strict=True):
        ax.annotate(
            text,
            xy=(1.02, height),
            textcoords="data",
            annotation_clip=False,
            va="center",
            fontsize=9,
            color=colour,
        )


def _label_heights(labels: Sequence[tuple[float, str, str]]) -> list[float]:
    """Heights at which no name stands over another, for labels in ascending order."""
    heights = [value for value, _, _ in labels]
    line_counts = [text.count("\n") + 1 for _, text, _ in labels]
    # From the middle of each name to that of the one below it.
    gaps = [0.0]
    for lower, upper in pairwise(line_counts):
        gaps.append(LABEL_GAP * (lower + upper) / 2)
    for place in range(1, len(heights)):
        heights[place] = max(heights[place], heights[place - 1] + gaps[place])
    if not heights or heights[-1] <= 1.0:
        return heights

    # What is too high goes down, and pushes those below it.
    limit = 1.0
    for place in reversed(range(len(heights))):
        heights[place] = min(heights[place], limit)
        limit = heights[place] - gaps[place]
    return heights


# --- text -----------------------------------------------------------------------------------------


def rated_dialogue(collection: Collection) -> list[tuple[str, str]]:
    """The first of the shortest dissatisfied test samples (thesis Figure 3.1), turn by turn."""
    test = collection.part("test")
    dissatisfied = test[test["dissatisfied"]].sort_values("turn", kind="stable")
    sample = dissatisfied.iloc[0]
    return [
        ("dialogue", f"{collection.name} {sample['dialogue']}, up to line {_line(sample)}"),
        *_turns(collection, sample["dialogue"], range(1, sample["turn"])),
        ("rating", f"{sample['rating']} of 5: dissatisfied"),
    ]


def _line(sample: pd.Series) -> str:
    return str(sample["sample"]).partition(":")[2]


def _turns(collection: Collection, dialogue: str, turns: range) -> list[tuple[str, str]]:
    """Acts of user turns, and the ratings of the responses that follow them."""
    rows = collection.rated_rows
    rows = rows[rows["dialogue"] == dialogue].set_index("turn")
    lines = []
    for turn in turns:
        # A response is rated before the user's next turn.
        ratings = ", ".join(map(str, rows.loc[turn + 1, "ratings"]))
        act = rows.loc[turn, "act"] or "none"
        lines.append(("USER", f"an utterance, its act: {act}"))
        lines.append(("SYSTEM", f"a response, rated {ratings}"))
    return lines


def turned_examples(study: Study, annotations: Mapping[str, Annotations]) -> pd.DataFrame:
    """One sample with another last response in each direction: the texts of ours, ids of others.

    Of written responses the first that readers found to fit and to do what was asked; else the
    first of the turned samples, a swapped response by the sample that it is taken from. Columns
    collection, sample, dialogue, turn, dissatisfied (with the other response) and response.
    """
    tables = []
    for name in COLLECTIONS:
        if annotations:
            settled = annotations[name].settled
            fits = settled["written"] & settled["coherent"]
            examples = settled[fits & (settled["satisfied"] != settled["dissatisfied"])]
            examples = examples[["sample", "dissatisfied"]].merge(study.written(name), on="sample")
            # A response that repeats an example of the prompt shows nothing.
            repeats = [response in study.writing_prompt for response in examples["response"]]
            examples = examples[~np.array(repeats, dtype=bool)]
            samples = study.test_sets[name].all_samples[["sample", "dialogue", "turn"]]
            examples = examples.merge(samples, on="sample")
        else:
            examples = study.test_sets[name].turned.copy()
            if "response" not in examples:
                examples["response"] = "that of " + name + " " + examples["donor"]
        examples = examples.assign(collection=name)
        tables.append(examples.sort_values(["turn", "sample"], kind="stable"))
    columns = ["collection", "sample", "dialogue", "turn", "dissatisfied", "response"]
    return pd.concat(tables, ignore_index=True).drop_duplicates("dissatisfied")[columns]


def turned_utterances(
    collections: Mapping[str, Collection], examples: pd.DataFrame, last: int = 1
) -> list[tuple[str, str]]:
    """Samples turned in either direction (thesis Figures 3.2 and 3.7), and both responses.

    ``examples``: of `turned_examples`. ``last``: exchanges that are shown, from the end.
    """
    lines = []
    for example in examples.itertuples():
        before, after = "dissatisfied", "satisfied"
        if example.dissatisfied:
            before, after = after, before
        title = f"{example.collection} {example.sample}, from {before} to {after}"
        shown_turns = range(max(1, example.turn - last), example.turn)
        # The last of the turns shown is the own response, which has its line beside the other.
        turns = _turns(collections[example.collection], example.dialogue, shown_turns)
        own_response = turns.pop()[1]
        lines += [
            ("", title),
            *turns,
            (f"SYSTEM, own: {before}", own_response),
            (f"SYSTEM, other: {after}", example.response),
        ]
    return lines


def without_example_dialogues(prompt: str) -> str:
    """A prompt whose worked examples have a note in the place of their dialogues' utterances."""
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
