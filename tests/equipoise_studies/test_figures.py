"""Guards figures of studies: no label overlaps another. What they draw is in the committed SVG."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from equipoise.attributes import AttributeSet
from equipoise.nuggets import nugget_table
from equipoise_compendium import plots
from equipoise_compendium.nugget_figure import annotated_conversations
from equipoise_studies.attribution import figures as attribution
from equipoise_studies.conversations import explore
from equipoise_studies.conversations import figures as conversations
from equipoise_studies.permutations import figures as permutations
from equipoise_studies.satisfaction import figures as satisfaction


@pytest.fixture(autouse=True)
def _style() -> Iterator[None]:
    plots.use_style()
    yield
    plt.close("all")


def overlapping(figure: Figure) -> list[tuple[str, str]]:
    """Titles, legends, labels of axes and labels in them that overlap, as pairs."""
    figure.draw_without_rendering()
    labels = [*figure.texts]
    for legend in figure.legends:
        labels += legend.get_texts()
    for ax in figure.axes:
        labels += [child for child in ax.get_children() if isinstance(child, Text)]
        labels += [ax.xaxis.label, ax.yaxis.label]
        own = ax.get_legend()
        if own is not None:
            labels += own.get_texts()
    boxes = []
    for label in labels:
        if label.get_visible() and label.get_text().strip():
            # the text without its arrow, and a pixel less on each side: lines of text may touch
            boxes.append((label.get_text(), Text.get_window_extent(label).padded(-1)))
    pairs = []
    for (one, box), (other, other_box) in combinations(boxes, 2):
        if box.overlaps(other_box):
            pairs.append((one, other))
    return pairs


def test_labels_that_overlap_are_found() -> None:
    figure, ax = plt.subplots()
    ax.text(0.5, 0.5, "one")
    ax.text(0.51, 0.5, "other")
    ax.text(0.5, 0.9, "apart")
    assert overlapping(figure) == [("one", "other")]


def two_panels() -> Figure:
    figure, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True)
    for number, ax in enumerate(axes):
        ax.plot([number, 1, 2], [0, 1, 2], label="a line with a long name, n = 5")
        ax.set_xlabel(f"panel {number} has a label that is too long for a phone in one line")
    axes[0].set_yticks([0, 1, 2], ["one", "a system with a long name", "three"])
    axes[0].set_ylabel("the systems")
    figure.legend(*axes[0].get_legend_handles_labels(), ncols=1, loc="outside lower center")
    figure.suptitle("A title as long as\nthe figure is wide, or a little longer than that")
    figure.draw_without_rendering()
    return figure


def test_panels_are_below_each_other_on_a_phone() -> None:
    figure = two_panels()
    top, bottom = figure.axes
    before = [
        np.asarray(line.get_xydata()).tolist() for ax in figure.axes for line in ax.get_lines()
    ]
    height = top.get_position().height * figure.get_figheight()
    assert plots.narrow(figure)
    assert [
        np.asarray(line.get_xydata()).tolist() for ax in figure.axes for line in ax.get_lines()
    ] == before
    assert bottom.get_position().y1 < top.get_position().y0
    assert top.get_position().height * figure.get_figheight() == pytest.approx(height, abs=0.1)
    for ax in figure.axes:
        assert ax.get_ylabel() == "the systems"
        assert [label.get_text() for label in ax.get_yticklabels()][::2] == ["one", "three"]
        assert "\n" in ax.get_yticklabels()[1].get_text()
        assert "\n" in ax.get_xlabel()
    labels = [*figure.texts, *figure.legends[0].get_texts()]
    for ax in figure.axes:
        labels += [ax.xaxis.label, ax.yaxis.label, *ax.get_yticklabels()]
    for label in labels:
        box = label.get_window_extent().transformed(figure.dpi_scale_trans.inverted())
        assert -0.1 < box.x0 < box.x1 < plots.NARROW + 0.1, label.get_text()


def test_a_figure_on_a_phone_has_the_same_bytes_each_time() -> None:
    drawn = []
    for _ in range(2):
        figure = two_panels()
        assert plots.narrow(figure)
        drawn.append(plots.rendered(figure, "svg", "a figure", "panels-narrow"))
    assert drawn[0] == drawn[1]
    assert re.findall(rb"\d\.\d{3,}", drawn[0]) == []


def test_what_belongs_together_stays_together_on_a_phone() -> None:
    for titles, order in ((["a", "", "b", ""], "abcd"), (["a", "b", "", ""], "acbd")):
        figure, axes = plt.subplots(2, 2, figsize=(8, 4))
        for ax, name, title in zip(axes.flat, "abcd", titles, strict=True):
            ax.set_title(title)
            ax.set_label(name)
        figure.draw_without_rendering()
        assert plots.narrow(figure)
        from_top = sorted(figure.axes, key=lambda ax: -ax.get_position().y0)
        assert "".join(str(ax.get_label()) for ax in from_top) == order


def test_a_drawing_without_axes_stays_wide() -> None:
    figure, ax = plt.subplots()
    ax.axis("off")
    ax.text(0.5, 0.5, "word")
    assert not plots.narrow(figure)


# --- chapter 5 ------------------------------------------------------------------------------------


def test_bars_by_source() -> None:
    bars = pd.DataFrame({"benchmark": "NQ", "model": [*"abcd"], "total": 1.0})
    sources = {"published": "thesis, n = 500", "recorded": "this replication, n = 15"}
    figure = attribution.bars(bars.assign(source=[*sources] * 2), "Citations", sources)
    figure.suptitle("A title as long as\nthe figure is wide, or a little longer than that")
    assert overlapping(figure) == []


def test_biases_by_group() -> None:
    rows = [
        ("Human / LLM", "NQ-UTD, Qwen 1.5B, n = 15", 15, -1.0, -3.0, 1.0, 5.0, 6.0, 7.0),
        ("Birch / Maple", "NQ, Qwen 1.5B, n = 300", 300, 0.0, -1.0, 1.0, np.nan, np.nan, np.nan),
    ]
    columns = ["group", "name", "questions", "value", "low", "high"]
    columns += ["published low", "published mean", "published high"]
    figure = attribution.biases(pd.DataFrame(rows, columns=columns), 30)
    assert overlapping(figure) == []
    many, few = (line for line in figure.axes[0].get_lines() if line.get_marker() == "o")
    assert many.get_markersize() > few.get_markersize()


def test_modes_of_labels() -> None:
    documents = pd.DataFrame(
        {"mode": ["Vanilla", "Informed"], "document": 1, "relevant": True, "author": "LLM"}
    )
    figure = attribution.modes(documents.assign(label=[None, "LLM"]), "Labels differ")
    assert overlapping(figure) == []


def test_marks_and_labels_where_large_models_are_compared() -> None:
    models = ["a", "b", "c", "d"]
    tables = []
    for over, numbers in {"passages": [10, 20, 30], "place": [1, 5, 10, 15, 20, 25, 30]}.items():
        index = pd.MultiIndex.from_product(
            [models, numbers, ["Precision", "Recall", "Correctness"]],
            names=["model", "at", "score"],
        )
        table = index.to_frame(index=False).assign(over=over)
        tables.append(table.assign(questions=100, value=50.0, low=40.0, high=60.0))
    figure = attribution.large_models(pd.concat(tables), 30)
    assert overlapping(figure) == []
    for ax in figure.axes:
        lines = [line for line in ax.get_lines() if line.get_label() in models]
        at = [ax.transData.transform(line.get_xydata())[:, 0] for line in lines]
        width = lines[0].get_markersize() * figure.dpi / 72
        assert np.diff(np.sort(np.concatenate(at))).min() > width


# --- permutations ---------------------------------------------------------------------------------


def test_structures_and_spread_of_conversations() -> None:
    utterances = pd.DataFrame({"topic": ["31"] * 3 + ["32"], "turn": [1, 3, 2, 1]})
    utterances = utterances.assign(**{"class": ["SE", "PT", "FT", "SE"], "block": [0, 0, 1, 0]})
    counts = pd.Series({"31": 1234, "32": 1})
    assert overlapping(permutations.conversation_structures(utterances, counts)) == []
    spread = pd.DataFrame({"topic": ["$32$"] * 2 + ["31"] * 3, "permutation": [0, 1, 0, 1, 2]})
    spread = spread.assign(value=[0.5, 0.9, 0.3, 0.1, 0.2], rank=[0.51, 0.0, 0.0, 0.67, 0.33])
    assert overlapping(permutations.spread_of_conversations(spread, systems=3)) == []


def test_preferences_ranges_and_sizes_of_samples() -> None:
    wins = pd.DataFrame({"topic": "31", "a": ["x", "y"], "b": ["y", "x"], "wins": [0.25, 0.7]})
    assert overlapping(permutations.preferences(wins, ["x", "y"])) == []
    ranges = pd.DataFrame(
        {"run": ["x", "y"], "mean": [0.2, 0.3], "minimum": 0.1, "maximum": 0.5}
        | {"sampled minimum": 0.15, "sampled maximum": 0.4}
    )
    original = pd.Series({"y": 0.31, "x": 0.22})
    assert overlapping(permutations.exact_ranges(ranges, original, conversations=20)) == []
    sizes = pd.DataFrame({"permutations": [1, 10], "tau": [0.5, 0.9], "low": [0.1, 0.8]})
    sizes = sizes.assign(same=[0.2, 0.97], best=[0.6, 1.0])
    errors = pd.DataFrame({"run": "x", "permutations": [1, 10], "standard error": [0.1, 0.02]})
    assert overlapping(permutations.sample_size(sizes, errors, conversations=20)) == []


# --- conversations --------------------------------------------------------------------------------


def test_annotated_conversations() -> None:
    groups = ("here", "there", "nowhere")
    sets = {"ORIGIN": AttributeSet("ORIGIN", "nominal", groups, np.array([0.5, 0.4, 0.1]))}
    rows = [
        ("a", 1, 11, 12, 2, "One", "1 0 0"),
        ("a", 1, 21, 21, 1, "Two", "1/2 1/2 0"),
        ("a", 2, 51, 51, 2, "One", "1 0 0"),
        ("b", 1, 301, 302, 1, "Two", "0 1 0"),
    ]
    columns = ["run", "turn", "start", "end", "level", "entity", "ORIGIN"]
    nuggets = pd.DataFrame(rows, columns=columns).assign(topic="T").astype(str)
    turns = pd.DataFrame({"run": ["a", "a", "b", "b"], "speaker": ["user", "system"] * 2})
    turns = turns.assign(topic="T", turn=1, start=[1, 11, 1, 11], end=[10, 60, 10, 400])
    figure = annotated_conversations(nugget_table(nuggets, sets), turns, sets)
    assert overlapping(figure) == []


def test_groups_of_users() -> None:
    rows = [
        ("x", "T", 1, "", "share", 0.25),
        ("x", "T", 3, "", "share", 0.5),
        ("y", "U", 5, "", "share", 1.0),
        ("x", "T", 1, "ORIGIN", "DistrSim-JSD", 0.3),
        ("x", "T", 3, "ORIGIN", "DistrSim-JSD", 0.6),
    ]
    columns = ["run", "topic", "rank", "attribute", "measure", "value"]
    clusters = pd.DataFrame(rows, columns=columns)
    assert overlapping(conversations.user_groups(clusters, {"ORIGIN": "DistrSim-JSD"})) == []


def test_users_who_leave_and_scores_over_the_patience() -> None:
    clusters = pd.DataFrame({"run": "a", "wc": [3, 8, 3, 8], "probability": [0.1, 0.1, 0.0, 1.0]})
    clusters["stopping model"] = ["words"] * 2 + ["turns"] * 2
    served = {"leave at a nugget": [0.2, 1.0], "GFRC2": [0.1, 0.6]}
    scores = pd.DataFrame({"stopping model": ["words", "turns"], "run": "a", **served})
    assert overlapping(conversations.who_leaves(clusters, scores)) == []
    grid = pd.DataFrame(
        {
            "run": "a",
            "patience": [50, 1000] * 3,
            "stopping model": ["words"] * 2 + ["gain"] * 2 + ["turns"] * 2,
            "gains": "paper",
            "target": "paper",
            "paper": [1, 0, 0, 0, 0, 0],
            "GFRC2": [0.01, 0.001, 0.2, 0.4, 0.2, 0.4],
        }
    )
    assert overlapping(explore.by_patience(grid)) == []


# --- chapter 3 ------------------------------------------------------------------------------------

RATIOS = np.linspace(0.1, 1, 10)
NEAR = {"MistralIF, Few-shot": 0.81 + 0 * RATIOS, "Zephyr, Few-shot": 0.8 + 0 * RATIOS}
LINES = {
    "constant": 1 - RATIOS,
    "encoder, w/o up-sampling": 0.9 - 0.8 * RATIOS,
    "encoder, up-sampling x10": 0.7 - 0.4 * RATIOS,
    "few-shot": RATIOS + 0.005,
    **NEAR,
}


@pytest.mark.parametrize("lines", [NEAR, LINES], ids=["low", "up to the top"])
def test_names_at_the_ends_of_curves(lines: dict[str, np.ndarray]) -> None:
    tables = []
    for run, values in lines.items():
        rows = {"ratio": RATIOS, "value": values, "low": values - 0.01, "high": values + 0.02}
        tables.append(pd.DataFrame(rows).assign(collection="SGD", run=run, measure="Acc"))
    sizes = {"SGD": 1234}
    figure = satisfaction.curve_panels(pd.concat(tables), ["Acc"], sizes, "A finding", "95% CI")
    assert overlapping(figure) == []
