"""Guards the case studies' figures and words: what is drawn and said are the values given."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from equipoise.attributes import AttributeSet
from equipoise.nuggets import NuggetTable, nugget_table
from equipoise_studies.pilot import figures, sentences
from equipoise_studies.plots import conversations as plots

SETS = {
    "ORIGIN": AttributeSet(
        "ORIGIN", "nominal", ("here", "there", "nowhere"), np.array([0.5, 0.4, 0.1])
    )
}
ROWS = [
    ("a", 1, 11, 12, 2, "One", "1 0 0"),
    ("a", 1, 21, 21, 1, "Two", "1/2 1/2 0"),
    ("a", 2, 51, 51, 2, "One", "1 0 0"),  # named before
    ("b", 1, 301, 302, 1, "Two", "0 1 0"),
]


@pytest.fixture
def nuggets() -> NuggetTable:
    columns = ["run", "turn", "start", "end", "level", "entity", "ORIGIN"]
    return nugget_table(pd.DataFrame(ROWS, columns=columns).assign(topic="T").astype(str), SETS)


@pytest.fixture
def turns() -> pd.DataFrame:
    rows = [
        ("a", 1, "user", 1, 10),
        ("a", 1, "system", 11, 60),
        ("b", 1, "user", 1, 10),
        ("b", 1, "system", 11, 400),
    ]
    return pd.DataFrame(rows, columns=["run", "turn", "speaker", "start", "end"]).assign(topic="T")


def bars(figure: Figure, place: int) -> list[Rectangle]:
    containers: Any = figure.axes[place].containers
    return [bar for container in containers for bar in container.patches]


def test_conversations_share_an_axis_and_show_every_group_with_its_share_and_target(
    nuggets: NuggetTable, turns: pd.DataFrame
) -> None:
    figure = plots.annotated_conversations(nuggets, turns, SETS, named=True)
    assert len({ax.get_xlim() for ax in figure.axes}) == 1
    assert figure.axes[0].get_xlim()[1] == 401
    levels, groups = bars(figure, 0), bars(figure, 1)
    assert [bar.get_height() for bar in levels] == [2, 1, 2]
    assert [bar.get_x() + bar.get_width() for bar in levels] == pytest.approx([12.5, 21.5, 51.5])
    assert [bar.get_facecolor()[:3] == (1, 1, 1) for bar in levels] == [
        False,
        False,
        True,
    ]  # the repeated one is hollow
    assert sorted(-bar.get_height() for bar in groups) == pytest.approx([0.425, 0.425, 0.85, 0.85])
    assert [label.get_text() for label in figure.axes[1].get_yticklabels()] == [
        "here",
        "there",
        "nowhere",
    ]
    said = [text.get_text() for text in figure.axes[1].texts]
    assert said == ["75%", "50%", "25%", "40%", "0%", "10%", "nuggets", "target"]
    assert [text.get_text() for text in figure.axes[0].texts][-3:] == ["One", "Two", "One"]
    one = plots.annotated_conversations(nuggets, turns, SETS, runs=["b"])
    assert len(one.axes) == 2
    assert one.axes[0].get_xlim() == figure.axes[0].get_xlim()
    plt.close("all")


def test_nuggets_lie_on_the_slope_of_their_weight() -> None:
    figure, ax = plt.subplots()
    scores = pd.DataFrame({"run": ["a", "b", "b"], "wc": [10, 20, 30], "pw": [0.9, 0.8, 0.7]})
    plots.position_weight(ax, pd.DataFrame({"WC": [1, 100], "pw": [1, 0]}), scores)
    drawn = {line.get_label(): np.asarray(line.get_xydata()).tolist() for line in ax.lines}
    assert drawn["b: 2 relevant nuggets"] == [[20, 0.8], [30, 0.7]]
    plt.close(figure)


def test_discs_are_as_large_as_the_share_of_users_who_leave() -> None:
    figure, ax = plt.subplots()
    rows = [
        ("x", "T", 1, "", "share", 0.25),
        ("x", "T", 2, "", "share", 0.5),
        ("y", "U", 1, "", "share", 1.0),
    ]
    rows += [
        ("x", "T", 1, "ORIGIN", "DistrSim-JSD", 0.3),
        ("x", "T", 2, "ORIGIN", "DistrSim-JSD", 0.6),
    ]
    clusters = pd.DataFrame(rows, columns=["run", "topic", "rank", "attribute", "measure", "value"])
    figures.user_groups([ax], clusters, {"ORIGIN": "DistrSim-JSD"})
    discs: Any = ax.collections[0]
    assert np.asarray(discs.get_offsets()).tolist() == [[1, 0.3], [2, 0.6]]
    assert (discs.get_sizes() - 8).tolist() == [125, 250]
    assert [text.get_text() for text in ax.texts] == ["y: nothing relevant,\nnobody leaves"]
    assert sentences.where_users_leave(clusters) == "T x 2, U y 1"
    plt.close(figure)


def test_what_figures_show_is_said_in_numbers() -> None:
    outcomes = [
        ("x", "1", "oo"),
        ("x", "2", "ox"),
        ("x", "3", "xo"),
        ("x", "4", "xx"),
        ("x", "5", "x-"),
    ]
    turns = [(run, topic, turn + 1, pair[turn]) for run, topic, pair in outcomes for turn in (0, 1)]
    said = sentences.outcomes_in_words(
        pd.DataFrame(turns, columns=["run", "topic", "turn", "outcome"])
    )
    assert (
        said
        == "both turns are useful in 1 of 5 conversations, just one of them in 2, neither in 1, "
        "and 1 break down"
    )
    scores = pd.DataFrame({"run": ["a", "a", "b"], "wc": [10, 20, 30]})
    assert (
        sentences.where_nuggets_stand(scores)
        == "a has 2 between words 10 and 20, b has 1 between words 30 and 30"
    )
    totals = [
        ("a", "", "R", 0.5),
        ("a", "X", "GF", 0.25),
        ("a", "", "GF", 0.9),
        ("b", "", "R", 0.1),
    ]
    table = pd.DataFrame(totals, columns=["run", "attribute", "measure", "value"])
    assert sentences.scores_in_words(table) == "a: R 0.5000, GF X 0.2500; b: R 0.1000"
    clusters = pd.DataFrame(
        {"run": "a", "wc": [3, 9], "GNP": [0.1, 0.2], "DistrSim ORIGIN": [0.3, 0.4]}
    )
    said = sentences.clusters_in_words(clusters, SETS)
    assert said == "a, words 3 to 9: utility from 0.10 to 0.20, fairness (ORIGIN) from 0.30 to 0.40"
