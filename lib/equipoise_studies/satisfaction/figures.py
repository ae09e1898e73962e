"""Figures of satisfaction estimators, and the dialogues and prompts that are shown as text.

Texts of the collections are not shown: their turns are told by their acts and ratings.
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

from equipoise_compendium.plots import COLOURS
from equipoise_studies.satisfaction.annotation import Annotations
from equipoise_studies.satisfaction.data import COLLECTIONS, Collection
from equipoise_studies.satisfaction.study import Study

MEASURE_NAMES = {"Acc": "Accuracy", "F1": "Macro F1", "sensitivity": "Sensitivity"}
DASHES = {"": "-", "x10": (0, (5, 1.5)), "x20": (0, (1.2, 1.2)), "(usual)": (0, (1.2, 1.2))}
COLOUR_PLACES = {
    "BERT": 0,
    "encoder": 0,
    "ASAP": 1,
    "hawkes": 1,
    "Zephyr": 2,
    "few-shot": 2,
    "MistralIF": 3,
}
"""Colours of estimators; one that stands for another has its colour."""

SAME_LINE = 0.01
"""Lines nowhere farther apart are drawn as one."""

LABEL_GAP = 0.085
"""Least distance of two lines of text beside a panel, in its units."""


def curve_panels(table: pd.DataFrame, measures: Sequence[str]) -> Figure:
    """Draw measures over the share of dissatisfied samples, with names at the ends of the lines.

    A panel for each measure and collection (thesis Figures 3.4, 3.5), one above the other: a colour
    for each family of estimators, dashes for up-sampling, a band for the interval. Estimators that
    say the same share one line. ``table``: columns collection, run, measure, ratio, value, low,
    high.
    """
    panels = list(product(measures, table["collection"].unique()))
    figure, axes = plt.subplots(
        len(panels), 1, figsize=(6.5, 0.3 + 2.4 * len(panels)), sharex=True, squeeze=False
    )
    places = _colour_places(table["run"])
    for ax, (measure, name) in zip(axes.flat, panels, strict=True):
        curves = table[(table["collection"] == name) & (table["measure"] == measure)]
        curve_by_run = {}
        for run, curve in curves.groupby("run", sort=False):
            curve_by_run[str(run)] = curve.sort_values("ratio")
        # Lines that lie on each other share a colour, a band and a label.
        labels = []
        for runs in _same_lines(curve_by_run):
            curve, style = curve_by_run[runs[0]], _style(runs, places)
            colour = style["color"]
            ax.plot(curve["ratio"], curve["value"], **style)
            ax.fill_between(
                curve["ratio"], curve["low"], curve["high"], color=colour, alpha=0.1, linewidth=0
            )
            names = "\n= ".join(map(_short_name, runs))
            labels.append((float(curve["value"].iloc[-1]), names, colour))
        _label_ends(ax, labels)
        ax.set(ylim=(-0.02, 1.02), xlim=(0, 1), ylabel=MEASURE_NAMES[measure])
        ax.set_title(name, loc="left", fontsize=10)
    axes[-1, 0].set_xlabel("Share of dissatisfied samples")
    return figure


def _colour_places(runs: pd.Series) -> dict[str, int]:
    """Place of each family's colour; families that the thesis does not have come last."""
    places = dict(COLOUR_PLACES)
    next_place = max(COLOUR_PLACES.values()) + 1
    for run in runs:
        family = _family_and_setup(run)[0]
        if family not in places:
            places[family] = next_place
            next_place += 1
    return places


def _family_and_setup(run: str) -> tuple[str, str]:
    """Family of an estimator, and its up-sampling or threshold as `DASHES` name it."""
    family = run.partition(", ")[0].partition(" (")[0]
    # The empty mark, no up-sampling, stands in every name.
    for mark in DASHES:
        if mark and mark in run:
            return family, mark
    return family, ""


def _short_name(run: str) -> str:
    """A name that fits at the end of a line."""
    family, _, setup = run.partition(", ")
    for phrase in ("w/o up-sampling", "up-sampling", "Few-shot"):
        setup = setup.replace(phrase, "").strip()
    return f"{family} {setup}".strip()


def _style(runs: Sequence[str], places: Mapping[str, int]) -> dict[str, Any]:
    if "constant" in runs:
        return {"color": "0.45", "linestyle": "-", "linewidth": 1.2}
    family, setup = _family_and_setup(runs[0])
    colour = COLOURS[places[family] % len(COLOURS)]
    return {"color": colour, "linestyle": DASHES[setup], "linewidth": 1.6}


def _same_lines(curves: Mapping[str, pd.DataFrame]) -> list[list[str]]:
    """Estimators whose lines are the same, together; the constant one first."""
    groups: list[list[str]] = []
    for run in sorted(curves, key=lambda run: run != "constant"):
        values = curves[run]["value"].to_numpy()
        for group in groups:
            group_values = curves[group[0]]["value"].to_numpy()
            if len(group_values) != len(values):
                continue
            if np.abs(group_values - values).max() < SAME_LINE:
                group.append(run)
                break
        else:
            groups.append([run])
    return groups


def _label_ends(ax: Axes, labels: Sequence[tuple[float, str, str]]) -> None:
    """Write names to the right of the lines' ends; ``labels``: value, text and colour of each."""
    labels = sorted(labels)
    for height, (value, text, colour) in zip(_label_heights(labels), labels, strict=True):
        leader = {
            "arrowstyle": "-",
            "color": colour,
            "linewidth": 0.6,
            "shrinkA": 0,
            "shrinkB": 0,
            "relpos": (0, 0.5),
        }
        ax.annotate(
            text,
            xy=(1.0, value),
            xytext=(1.04, height),
            textcoords="data",
            annotation_clip=False,
            va="center",
            fontsize=9,
            arrowprops=leader,
        )


def _label_heights(labels: Sequence[tuple[float, str, str]]) -> list[float]:
    """Heights at which no name stands over another, for labels in ascending order."""
    heights = [value for value, _, _ in labels]
    line_counts = [text.count("\n") for _, text, _ in labels]
    for place in range(1, len(heights)):
        n_lines = (line_counts[place] + line_counts[place - 1]) / 2 + 1
        heights[place] = max(heights[place], heights[place - 1] + LABEL_GAP * n_lines)
    if not heights or heights[-1] <= 1.0:
        return heights

    # What is too high goes down, and pushes those below it.
    limit = 1.0
    for place in reversed(range(len(heights))):
        heights[place] = min(heights[place], limit)
        limit = heights[place] - LABEL_GAP
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
