"""The figures of the pilot study draw the values that they are given."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

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


def test_conversations_show_every_nugget_with_its_groups_their_shares_and_targets(
    nuggets: NuggetTable, turns: pd.DataFrame
) -> None:
    figure = plots.annotated_conversations(nuggets, turns, SETS)
    words, groups = figure.axes[0], figure.axes[1]
    assert words.get_xlim() == figure.axes[2].get_xlim() == (0, 401)
    bars: Any = words.containers[0]
    assert [bar.get_x() + bar.get_width() for bar in bars] == pytest.approx([12.5, 21.5, 51.5])
    hollow = [bar.get_facecolor()[:3] == (1, 1, 1) for bar in bars]
    assert hollow == [False, False, True]  # the repeated one
    labels = [label.get_text() for label in words.get_yticklabels()]
    assert labels[:3] == ["One, L2", "Two, L1", "(One, L2)"]
    written = {text.get_position(): text.get_text() for text in groups.texts}
    assert [written[0, row] for row in range(3)] == ["100", "50", "(100)"]
    assert [written[group, 3] for group in range(3)] == ["75", "25", "0"]  # shares
    assert [written[group, 4] for group in range(3)] == ["50", "40", "10"]  # targets
    names = [label.get_text() for label in groups.get_xticklabels()]
    assert names == list(SETS["ORIGIN"].groups)
    one = plots.annotated_conversations(nuggets, turns, SETS, runs=["b"])
    assert len(one.axes) == 2
    assert one.axes[0].get_xlim() == words.get_xlim()
    plt.close("all")


def test_conversations_about_several_topics_are_titled_with_their_topic(
    turns: pd.DataFrame,
) -> None:
    columns = ["run", "turn", "start", "end", "level", "entity", "ORIGIN"]
    topic_of = {"a": "T", "b": "U"}
    rows = pd.DataFrame(ROWS, columns=columns)
    rows["topic"], turns["topic"] = rows["run"].map(topic_of), turns["run"].map(topic_of)
    figure = plots.annotated_conversations(nugget_table(rows.astype(str), SETS), turns, SETS)
    titles = [ax.get_title(loc="left").partition(", relevant")[0] for ax in figure.axes[::2]]
    assert titles == ["a, T", "b, U"]
    plt.close("all")


def test_nuggets_lie_on_the_slope_of_their_weight() -> None:
    figure, ax = plt.subplots()
    scores = pd.DataFrame({"run": ["a", "b", "b"], "wc": [10, 20, 30], "pw": [0.9, 0.8, 0.7]})
    plots.position_weight(ax, pd.DataFrame({"WC": [1, 100], "pw": [1, 0]}), scores)
    drawn = [np.asarray(line.get_xydata()).tolist() for line in ax.lines]
    assert [[20, 0.8], [30, 0.7]] in drawn
    plt.close(figure)


def test_users_have_stopped_by_the_sum_of_their_shares() -> None:
    rows = [
        ("x", "T", 1, "", "share", 0.25),
        ("x", "T", 3, "", "share", 0.5),
        ("y", "U", 5, "", "share", 1.0),
        ("x", "T", 1, "ORIGIN", "DistrSim-JSD", 0.3),
        ("x", "T", 3, "ORIGIN", "DistrSim-JSD", 0.6),
    ]
    clusters = pd.DataFrame(rows, columns=["run", "topic", "rank", "attribute", "measure", "value"])
    top, below = figures.user_groups(clusters, {"ORIGIN": "DistrSim-JSD"}).axes
    steps = [np.asarray(line.get_xydata()).tolist() for line in top.lines]
    assert steps == [[[0, 0], [1, 25], [3, 75], [5, 75]], [[0, 0], [5, 0]]]
    assert np.asarray(below.lines[0].get_ydata()).tolist() == [0.3, 0.6]
    assert "0.50" in below.get_title(loc="left")  # (0.25 * 0.3 + 0.5 * 0.6) / 0.75
    assert [text.get_text()[0] for text in below.texts] == ["y"]  # which has no cluster
    plt.close("all")


def test_users_leave_at_each_nugget_under_each_model() -> None:
    part = {"run": "a", "wc": [3, 8]}
    clusters = pd.concat(
        pd.DataFrame({**part, "stopping model": model, "probability": shares})
        for model, shares in (("words", [0.1, 0.1]), ("turns", [0.0, 1.0]))
    )
    served = {"leave at a nugget": [0.2, 1.0], "GFRC2": [0.1, 0.6]}
    scores = pd.DataFrame({"stopping model": ["words", "turns"], "run": "a", **served})
    figure = figures.who_leaves(clusters, scores)
    title = "From 0.0% (turns) to 80.0% (words) of the users leave with nothing"
    assert figure.get_suptitle() == title
    first, second = figure.axes
    bars: Any = first.collections[0]
    assert [bar[1].tolist() for bar in bars.get_segments()] == [[3, 10], [8, 10]]
    assert "80.0%" in first.texts[0].get_text()
    assert "0.6000" in second.texts[0].get_text()
    plt.close("all")


def test_scores_over_the_patience_have_linear_axes_and_labels_apart() -> None:
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
    upper, lower = explore.by_patience(grid).axes
    assert upper.get_yscale() == lower.get_yscale() == "linear"
    assert [line.get_label() for line in lower.lines] == ["words"]
    labels: Any = upper.texts
    assert {label.xy for label in labels} == {(1000, 0.4)}
    shifts = [label.xyann[1] for label in labels]
    assert abs(shifts[0] - shifts[1]) >= 12  # points
    plt.close("all")
