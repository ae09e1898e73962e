"""Guards the figures of chapter 5, on a phone too."""

from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D

from equipoise_compendium import plots
from equipoise_studies.attribution import figures


@pytest.fixture(autouse=True)
def _style() -> Iterator[None]:
    plots.use_style()
    yield
    plt.close("all")


def test_a_legend_shows_the_markers_on_a_desk_and_on_a_phone() -> None:
    table = pd.DataFrame({"group": ["a", "b"], "k": [2, 5], "value": [1.0, 2.0]})
    table = table.assign(low=[0.0, np.nan], high=[2.0, np.nan])
    figure, ax = plt.subplots(figsize=(6, 3))
    figures.values_over(ax, table, "k", "CAS, points")
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center")
    for lay_out in (lambda _: None, plots.narrow):
        lay_out(figure)
        markers = []
        for handle in figure.legends[0].legend_handles:
            assert isinstance(handle, Line2D)
            markers.append(handle.get_marker())
        assert markers == list(plots.MARKERS[:2])
    bars = [bar for bar in ax.collections if isinstance(bar, LineCollection)]
    assert [len(bar.get_segments()) for bar in bars] == [1, 1]


def test_no_legend_stands_over_a_title() -> None:
    bars = pd.DataFrame({"benchmark": "NQ", "model": ["a", "b"], "total": [1.0, 2.0]})
    figure, ax = plt.subplots(figsize=(6, 2))
    figures.numbers_under(ax, bars.assign(source=["printed", "recorded"]), "Citations")
    title = figure.suptitle("A title as long as\nthe figure is wide, or a little longer than that")
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert not legend.get_window_extent().overlaps(title.get_window_extent())


def test_a_name_breaks_nowhere_within_its_number_of_questions() -> None:
    rows = [
        ("Human / LLM", "Qwen 1.5B, NQ, n = 15", -1.0, -3.0, 1.0, 5.0, 6.0, 7.0),
        ("Birch / Maple", "Qwen 1.5B (large), NQ-UTD, n = 300", 0.0, -1.0, 1.0, 5.0, 6.0, 7.0),
    ]
    columns = ["group", "name", "value", "low", "high"]
    columns += ["printed low", "printed mean", "printed high"]
    figure, ax = plt.subplots(figsize=(7, 3))
    figures.biases(ax, pd.DataFrame(rows, columns=columns), "CAB, points")
    plots.narrow(figure)
    lines = []
    for label in ax.get_yticklabels():
        lines += label.get_text().split("\n")
    assert len(lines) > len(rows)
    spaced = [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]
    assert sum("n = 15" in line or "n = 300" in line for line in spaced) == len(rows)
