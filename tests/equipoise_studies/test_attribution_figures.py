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


def test_a_legend_shows_the_markers() -> None:
    table = pd.DataFrame({"group": ["a", "b"], "k": [2, 5], "value": [1.0, 2.0]})
    table = table.assign(low=[0.0, np.nan], high=[2.0, np.nan])
    figure, ax = plt.subplots(figsize=(6, 3))
    figures.values_over(ax, table, "k", "CAS, points")
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center")
    markers = []
    for handle in figure.legends[0].legend_handles:
        assert isinstance(handle, Line2D)
        markers.append(handle.get_marker())
    assert markers == list(plots.MARKERS[:2])
    bars = [bar for bar in ax.collections if isinstance(bar, LineCollection)]
    assert [len(bar.get_segments()) for bar in bars] == [1, 1]


def test_no_legend_overlaps_a_title() -> None:
    bars = pd.DataFrame({"benchmark": "NQ", "model": ["a", "b"], "total": [1.0, 2.0]})
    sources = {"published": "thesis, n = 500", "recorded": "this replication, n = 15"}
    figure = figures.bars(bars.assign(source=list(sources)), "Citations", sources)
    title = figure.suptitle("A title as long as\nthe figure is wide, or a little longer than that")
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert not legend.get_window_extent().overlaps(title.get_window_extent())


def test_biases_are_drawn_by_group_with_their_intervals() -> None:
    rows = [
        ("Human / LLM", "Qwen 1.5B, NQ, n = 15", -1.0, -3.0, 1.0, 5.0, 6.0, 7.0),
        ("Birch / Maple", "Qwen 1.5B (large), NQ, n = 300", 0.0, -1.0, 1.0, np.nan, np.nan, np.nan),
    ]
    columns = ["group", "name", "value", "low", "high"]
    columns += ["published low", "published mean", "published high"]
    figure = figures.biases(pd.DataFrame(rows, columns=columns))
    (ax,) = figure.axes
    labels = [label.get_text().replace("\N{NO-BREAK SPACE}", " ") for label in ax.get_yticklabels()]
    assert labels == [row[1] for row in rows]
    texts = [text.get_text() for text in ax.texts]
    assert texts[:2] == ["Human / LLM", "Birch / Maple"]
    (legend,) = figure.legends
    assert len(legend.get_texts()) == 3  # the values, the published range and its mean


def test_each_mode_has_a_row_of_documents() -> None:
    documents = pd.DataFrame(
        {"mode": ["Vanilla", "Informed"], "document": 1, "relevant": True, "author": "LLM"}
    )
    figure = figures.modes(documents.assign(label=[None, "LLM"]), "Labels differ")
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert figure.axes[0].get_title() == "Labels differ"
    assert texts.count("no label") == texts.count("[LLM]") == 1


def test_no_mark_overlaps_another_where_large_models_are_compared() -> None:
    models = ["a", "b", "c", "d"]
    columns = ["model", "passages", "score"]
    tables = []
    for over, numbers in {"passages": [10, 20, 30], "place": [1, 5, 10, 15, 20, 25, 30]}.items():
        index = pd.MultiIndex.from_product(
            [models, numbers, ["Precision", "Recall", "Correctness"]], names=columns
        )
        table = index.to_frame(index=False).rename(columns={"passages": over})
        tables.append(table.assign(questions=100, value=50.0, low=40.0, high=60.0))
    by_passages, by_place = tables
    figure = figures.large_models(by_passages, by_place, 30)
    figure.draw_without_rendering()
    for ax in figure.axes:
        lines = [line for line in ax.get_lines() if line.get_label() in models]
        at = [ax.transData.transform(line.get_xydata())[:, 0] for line in lines]
        width = lines[0].get_markersize() * figure.dpi / 72
        assert np.diff(np.sort(np.concatenate(at))).min() > width
