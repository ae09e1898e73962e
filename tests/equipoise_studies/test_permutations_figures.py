"""Guards the figures of the permutation study: what is drawn are the values that were given."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from equipoise_studies.permutations import figures


@pytest.fixture
def ax() -> Iterator[Axes]:
    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


def test_one_tile_per_utterance_and_one_count_per_conversation(ax: Axes) -> None:
    utterances = pd.DataFrame(
        {
            "topic": ["31"] * 3 + ["32"],
            "turn": [1, 3, 2, 1],
            "class": ["SE", "PT", "FT", "SE"],
            "block": [0, 0, 1, 0],
        }
    )
    figures.conversation_structures(ax, utterances, pd.Series({"31": 1234, "32": 1}))
    tiles = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    assert [tile.get_x() for tile in tiles[:2]] == [0.0, 1.0]  # of one block: they touch
    assert tiles[2].get_x() > 2.0
    texts = [text.get_text() for text in ax.texts]
    assert texts == ["1 SE", "3 PT", "2 FT", "1 SE", "1,234", "1", "permutations"]


def test_boxes_span_the_permutations_and_diamonds_mark_the_original_order(ax: Axes) -> None:
    spread = pd.DataFrame(
        {
            "topic": ["$32$"] * 2 + ["31"] * 3,
            "permutation": [0, 1, 0, 1, 2],
            "value": [0.5, 0.9, 0.3, 0.1, 0.2],
        }
    )
    figures.spread_of_conversations(ax, spread)
    (diamonds,) = (line for line in ax.lines if line.get_label() == "original order")
    assert np.asarray(diamonds.get_ydata()).tolist() == [0.3, 0.5]
    heights = {float(value) for line in ax.lines for value in np.asarray(line.get_ydata())}
    assert {0.1, 0.3, 0.5, 0.9} <= heights
    # a name that is data begins no formula
    assert [label.get_text() for label in ax.get_xticklabels()] == ["31", r"\$32\$"]


def test_cells_are_percentages_of_the_rows_wins(ax: Axes) -> None:
    table = pd.DataFrame({"topic": "31", "a": ["x", "y"], "b": ["y", "x"], "wins": [0.25, 0.7]})
    figures.preferences([ax], table, ["x", "y"])
    # each pair once
    assert [(text.get_position(), text.get_text()) for text in ax.texts] == [((0, 1), "70")]
    assert ax.get_ylim() == (1.5, 0.5)


def test_ranges_show_the_exact_mean_and_the_original_order(ax: Axes) -> None:
    table = pd.DataFrame(
        {"run": ["x", "y"], "mean": [0.2, 0.3], "minimum": 0.1, "maximum": 0.5}
        | {"sampled minimum": 0.15, "sampled maximum": 0.4}
    )
    figures.exact_ranges(ax, table, pd.Series({"y": 0.31, "x": 0.22}))
    drawn = [np.asarray(line.get_xdata()).tolist() for line in ax.lines]
    assert [0.2, 0.3] in drawn
    assert [0.22, 0.31] in drawn


def test_curves_of_the_sample_size() -> None:
    figure, axes = plt.subplots(1, 2)
    stability = pd.DataFrame(
        {
            "permutations": [1, 10],
            "tau": [0.5, 0.9],
            "low": [0.1, 0.8],
            "same": [0.2, 0.7],
            "best": [0.6, 1.0],
        }
    )
    errors = pd.DataFrame(
        {"run": ["x", "x"], "permutations": [1, 10], "standard error": [0.1, 0.02]}
    )
    figures.sample_size(axes, stability, errors)
    curves = [np.asarray(line.get_ydata()).tolist() for line in axes[0].lines]
    assert curves == [[0.5, 0.9], [0.2, 0.7], [0.6, 1.0]]
    assert [np.asarray(line.get_ydata()).tolist() for line in axes[1].lines] == [[0.1, 0.02]]
    plt.close(figure)
