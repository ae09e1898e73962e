"""Guards the figures of the permutation study: what is drawn are the values that were given."""

from __future__ import annotations

import re
from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import Rectangle

from equipoise_studies.permutations import figures


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


def test_one_tile_per_utterance_and_one_count_per_conversation() -> None:
    utterances = pd.DataFrame(
        {
            "topic": ["31"] * 3 + ["32"],
            "turn": [1, 3, 2, 1],
            "class": ["SE", "PT", "FT", "SE"],
            "block": [0, 0, 1, 0],
        }
    )
    counts = pd.Series({"31": 1234, "32": 1})
    (ax,) = figures.conversation_structures(utterances, counts).axes
    tiles = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    assert [tile.get_x() for tile in tiles[:2]] == [0.0, 1.0]  # of one block: they touch
    assert tiles[2].get_x() > 2.0
    texts = [text.get_text() for text in ax.texts]
    assert texts[:-1] == ["1 SE", "3 PT", "2 FT", "1 SE", "1,234", "1"]


def test_boxes_span_the_permutations_and_diamonds_mark_the_original_order() -> None:
    spread = pd.DataFrame(
        {
            "topic": ["$32$"] * 2 + ["31"] * 3,
            "permutation": [0, 1, 0, 1, 2],
            "value": [0.5, 0.9, 0.3, 0.1, 0.2],
            "rank": [0.51, 0.0, 0.0, 0.67, 0.33],
        }
    )
    (ax,) = figures.spread_of_conversations(spread, systems=3).axes
    (diamonds,) = (line for line in ax.lines if line.get_label() == "original order")
    assert np.asarray(diamonds.get_ydata()).tolist() == [0.3, 0.5]
    heights = {float(value) for line in ax.lines for value in np.asarray(line.get_ydata())}
    assert {0.1, 0.3, 0.5, 0.9} <= heights
    # in one of two conversations more than half of the permutations score higher
    assert re.findall(r"\d+", ax.get_title(loc="left")) == ["1", "2"]
    # a name that is data begins no formula
    assert [label.get_text() for label in ax.get_xticklabels()] == ["31", r"\$32\$"]


def test_cells_are_percentages_of_the_rows_wins() -> None:
    table = pd.DataFrame({"topic": "31", "a": ["x", "y"], "b": ["y", "x"], "wins": [0.25, 0.7]})
    figure = figures.preference_panels(table, ["x", "y"], 12, np.random.default_rng(0))
    ax = figure.axes[0]
    # the permutation decides in the one conversation
    assert re.findall(r"\d+", figure.get_suptitle()) == ["100", "1", "1", "1"]
    # each pair once
    assert [(text.get_position(), text.get_text()) for text in ax.texts] == [((0, 1), "70")]
    assert ax.get_ylim() == (1.5, 0.5)


def test_ranges_show_the_exact_mean_and_the_original_order() -> None:
    table = pd.DataFrame(
        {"run": ["x", "y"], "mean": [0.2, 0.3], "minimum": 0.1, "maximum": 0.5}
        | {"sampled minimum": 0.15, "sampled maximum": 0.4}
    )
    original = pd.Series({"y": 0.31, "x": 0.22})
    (ax,) = figures.exact_ranges(table, original, conversations=20).axes
    drawn = [np.asarray(line.get_xdata()).tolist() for line in ax.lines]
    assert [0.2, 0.3] in drawn
    assert [0.22, 0.31] in drawn
    # the samples span 0.25 of 0.4
    assert re.findall(r"\d+%", ax.get_title(loc="left")) == ["62%", "62%"]


def test_curves_of_the_sample_size() -> None:
    stability = pd.DataFrame(
        {
            "permutations": [1, 10],
            "tau": [0.5, 0.9],
            "low": [0.1, 0.8],
            "same": [0.2, 0.97],
            "best": [0.6, 1.0],
        }
    )
    errors = pd.DataFrame(
        {"run": ["x", "x"], "permutations": [1, 10], "standard error": [0.1, 0.02]}
    )
    axes = figures.sample_size(stability, errors, conversations=20).axes
    curves = [np.asarray(line.get_ydata()).tolist() for line in axes[0].lines]
    assert curves == [[0.5, 0.9], [0.2, 0.97], [0.6, 1.0]]
    assert [np.asarray(line.get_ydata()).tolist() for line in axes[1].lines] == [[0.1, 0.02]]
    # ten permutations are the fewest that give the exact ranking in 95% of samples
    titles = [ax.get_title(loc="left") for ax in axes]
    assert [re.findall(r"[\d.]+", title) for title in titles] == [["10", "97"], ["10", "0.0200"]]
