"""Guards the case studies' figures and words: what is drawn and said are the values given."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation

from equipoise.attributes import AttributeSet
from equipoise.nuggets import NuggetTable, nugget_table
from equipoise_studies.pilot import conversation_figures as plots
from equipoise_studies.pilot import explore, figures

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
        ("x", "T", 3, "", "share", 0.04),
        ("y", "U", 1, "", "share", 1.0),
    ]
    rows += [
        ("x", "T", 1, "ORIGIN", "DistrSim-JSD", 0.3),
        ("x", "T", 2, "ORIGIN", "DistrSim-JSD", 0.6),
        ("x", "T", 3, "ORIGIN", "DistrSim-JSD", 0.7),
    ]
    clusters = pd.DataFrame(rows, columns=["run", "topic", "rank", "attribute", "measure", "value"])
    figures.user_groups([ax], clusters, {"ORIGIN": "DistrSim-JSD"})
    discs: Any = ax.collections[0]
    # Few leave at the third rank: it is on the line, and has no disc.
    assert np.asarray(ax.lines[0].get_ydata()).tolist() == [0.3, 0.6, 0.7]
    assert np.asarray(discs.get_offsets()).tolist() == [[1, 0.3], [2, 0.6]]
    assert (discs.get_sizes() - 8).tolist() == [125, 250]
    assert [text.get_text() for text in ax.texts] == ["y: nothing relevant,\nnobody leaves"]
    plt.close(figure)


def test_no_name_stands_on_the_line_of_another() -> None:
    places, names = np.array([10.0, 12.0, 14.0, 90.0]), ["a long name", "b", "another", "c"]
    lanes = plots._lanes(places, names, letter=2.0)
    # The second ends before the third begins to be written, but not before its line.
    assert lanes.tolist() == [2, 1, 0, 0]
    assert plots._lanes(places, names, letter=0.01).tolist() == [0, 0, 0, 0]


def test_names_need_no_more_room_than_they_take(nuggets: NuggetTable, turns: pd.DataFrame) -> None:
    """Beside the same conversation on a phone, where names stand nearer to one another."""
    wide = plots.annotated_conversations(nuggets, turns, SETS, named=True)
    narrow = plots.annotated_conversations(nuggets, turns, SETS, named=True, width=4.2)
    unnamed = plots.annotated_conversations(nuggets, turns, SETS)
    heights = [figure.get_size_inches()[1] for figure in (unnamed, wide, narrow)]
    assert heights[0] < heights[1] < heights[2] < heights[0] + 1.5
    assert min(bar.get_width() for bar in bars(narrow, 0)) > 5
    plt.close("all")


def test_scores_over_the_patience_are_marks_with_their_names_apart() -> None:
    figure, axes = plt.subplots(1, 1)
    grid = pd.DataFrame(
        {
            "run": "a",
            "patience": [50, 1000] * 3,
            "stop model": ["words"] * 2 + ["gain"] * 2 + ["turns"] * 2,
            "gains": "paper",
            "target": "paper",
            "paper": [1, 0, 0, 0, 0, 0],
            "GFRC2": [0.01, 0.001, 0.2, 0.4, 0.2, 0.4],
        }
    )
    explore.by_patience([axes], grid)
    assert {line.get_linestyle() for line in axes.lines} == {":"}
    assert axes.get_legend() is None
    axis: Any = axes.transAxes
    heights = {}
    for text in axes.texts:
        assert isinstance(text, Annotation)
        place = axes.transData.transform(text.xy)
        heights[text.get_text()] = axis.inverted().transform(place)[1]
    assert heights["words"] == pytest.approx(0.1)  # of a thousandth, the cube root
    assert heights["turns"] - heights["gain"] >= 0.05
    plt.close(figure)
