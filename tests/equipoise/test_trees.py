"""Conversation trees: paths, positions and expectations, held against a recursion."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.attributes import attribute_sets
from equipoise.loaders.transcripts import nugget_frame, parse_transcripts, turn_frame
from equipoise.measures.gfrc import gfrc
from equipoise.measures.trees import (
    conversation_trees,
    expected_scores,
    leaving_trees,
    nuggets_by_round,
    path_nuggets,
    reach,
)
from equipoise.nuggets import nugget_table

SETS = attribute_sets({"A": {"kind": "nominal", "groups": ["x", "y"], "target": "uniform"}})
MEMBERSHIPS = st.sampled_from(["1 0", "0 1", "1/2 1/2"])
COLUMNS = ["run", "topic", "node", "parent", "probability", "words"]


@st.composite
def trees(draw: st.DrawFn) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A tree of up to nine rounds, and nuggets in some of them."""
    size = draw(st.integers(1, 9))
    parents = [-1] + [draw(st.integers(0, i - 1)) for i in range(1, size)]
    shares = [draw(st.integers(1, 5)) for _ in range(size)]
    words = [draw(st.integers(2, 30)) for _ in range(size)]
    rows, found = [], []
    for i, parent in enumerate(parents):
        siblings = sum(shares[j] for j in range(size) if parents[j] == parent)
        rows.append(
            ("r", "t", f"n{i}", "" if parent < 0 else f"n{parent}", shares[i] / siblings, words[i])
        )
        places = sorted(draw(st.sets(st.integers(2, words[i]), max_size=3)))
        found += [
            ("r", "t", f"n{i}", at, at, draw(st.integers(1, 2)), draw(MEMBERSHIPS)) for at in places
        ]
    order = draw(st.permutations(range(size)))
    table = pd.DataFrame([rows[i] for i in order], columns=COLUMNS)
    return table, pd.DataFrame(
        found, columns=["run", "topic", "node", "start", "end", "level", "A"]
    )


def walk(
    table: pd.DataFrame, parent: str = "", share: float = 1.0
) -> Iterator[tuple[list[str], float]]:
    """Every path with its probability, by recursion."""
    for row in table[table["parent"] == parent].itertuples():
        node, probability = str(row.node), share * float(str(row.probability))
        if (table["parent"] == node).any():
            yield from (([node, *rest], p) for rest, p in walk(table, node, probability))
        else:
            yield [node], probability


@given(trees())
@settings(deadline=None, max_examples=60)
def test_expectation_agrees_with_a_recursion(tree: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    table, nuggets = tree
    laid = conversation_trees(table)
    assert laid.paths["probability"].sum() == pytest.approx(1)
    expected: dict[tuple[str, str], float] = {}
    words = table.set_index("node")["words"]
    for path, probability in walk(table):
        rows, before = [], 0
        for turn, node in enumerate(path, start=1):
            inside = nuggets[nuggets["node"] == node]
            for nugget in inside.itertuples():
                at = str(int(str(nugget.start)) + before)
                rows.append(["r", "t", str(turn), at, at, str(nugget.level), str(nugget.A)])
            if inside.empty:
                rows.append(["r", "t", str(turn), "", "", "0", ""])
            before += int(words[node])
        frame = pd.DataFrame(rows, columns=["run", "topic", "turn", "start", "end", "level", "A"])
        for row in gfrc(nugget_table(frame, SETS), SETS).itertuples():
            key = (str(row.attribute), str(row.measure))
            expected[key] = expected.get(key, 0.0) + probability * float(str(row.value))
    scores = gfrc(nugget_table(path_nuggets(laid, nuggets), SETS), SETS)
    ours = expected_scores(scores, laid)
    assert set(ours["topic"]) == {"t"}
    found = {
        (str(row.attribute), str(row.measure)): float(str(row.value)) for row in ours.itertuples()
    }
    assert found == {key: pytest.approx(value, abs=1e-12) for key, value in expected.items()}


def test_trees_do_not_mix() -> None:
    table = pd.DataFrame(
        [
            ("r", "t", "1", "", 1, 5),
            ("r", "t", "2", "1", 1, 5),
            ("s", "t", "1", "", 1, 7),
            ("s", "t", "2", "1", 1, 5),
        ],
        columns=COLUMNS,
    )
    nuggets = pd.DataFrame(
        {"run": ["r", "s"], "topic": "t", "node": "2", "start": 3, "end": 3, "level": 1, "A": "1 0"}
    )
    frame = path_nuggets(conversation_trees(table), nuggets)
    assert frame["end"].tolist() == ["", "8", "", "10"]
    assert frame["run"].tolist() == ["r", "r", "s", "s"]
    assert frame["topic"].tolist() == ["t/2"] * 4


TREE = pd.DataFrame(
    [("r", "t", "1", "", 1.0, 5), ("r", "t", "a", "1", 0.5, 5), ("r", "t", "b", "1", 0.5, 5)],
    columns=COLUMNS,
)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (TREE.assign(probability=[1.0, 0.5, 0.4]), "sum to 0.9"),
        (TREE.assign(probability=[0.5, 0.5, 0.5]), "be 1 for a first round"),
        (TREE.assign(probability=[1.0, 1.5, 0.5]), "between 0 and 1"),
        (TREE.assign(probability=[1.0, 0.5, -0.5]), "between 0 and 1"),
        (TREE.assign(parent=["", "1", "z"]), "no node is the parent of"),
        (TREE.assign(parent=["", "b", "a"]), "sum to 0.5|circle"),
        (
            TREE.assign(parent=["", "b", "a"], probability=1.0),
            "2 nodes follow each other in a circle",
        ),
        (TREE.assign(parent=["", "1", ""], probability=1.0), "one first round"),
        (TREE.assign(parent=["a", "1", "1"]), "one first round"),
        (TREE.assign(node=["1", "a", "a"]), "twice"),
        (TREE.assign(words=[5, 5, -1]), "negative number of words"),
        (TREE.drop(columns="words"), "no column words"),
    ],
)
def test_what_is_no_tree_is_refused(change: pd.DataFrame, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        conversation_trees(change)


def test_nuggets_and_scores_that_do_not_belong_are_refused() -> None:
    laid = conversation_trees(TREE)
    nugget = pd.DataFrame(
        {"run": ["r"], "topic": "t", "node": "a", "start": 5, "end": 5, "level": 1}
    )
    assert len(path_nuggets(laid, nugget)) == 4
    for change in ({"end": 6}, {"start": 0}):
        with pytest.raises(ValueError, match="beyond the words"):
            path_nuggets(laid, nugget.assign(**change))
    with pytest.raises(ValueError, match="is no node"):
        path_nuggets(laid, nugget.assign(node="z"))
    scores = pd.DataFrame(
        {"run": "r", "topic": ["t/a", "t/b"], "attribute": "", "measure": "R", "value": [1.0, 0.0]}
    )
    assert expected_scores(scores, laid)["value"].tolist() == [0.5]
    with pytest.raises(ValueError, match="every path of a tree needs each score once"):
        expected_scores(scores.iloc[:1], laid)
    with pytest.raises(ValueError, match="every path of a tree needs each score once"):
        expected_scores(scores.iloc[[0, 0]], laid)
    with pytest.raises(ValueError, match="is no path of a tree"):
        expected_scores(scores.assign(topic="t"), laid)
    with pytest.raises(ValueError, match="topic 't/z', which is no path"):
        expected_scores(scores.assign(topic=["t/z", "t/y"]), laid)


def test_reach_of_a_long_conversation() -> None:
    count = 500
    probability, before, level = reach(np.arange(count) - 1, np.ones(count), np.full(count, 3))
    np.testing.assert_array_equal(before, 3 * np.arange(count))
    np.testing.assert_array_equal(level, 1 + np.arange(count))
    assert probability.min() == 1


TALK = """##### t
### U1
Films about chess, please.
### S1 o
Queen of Katwe
#L2
#A: (1,0)
### U2
More?
### S2 o
Pawn Sacrifice, and Fresh
#L1
#A: (0,1)
### U3
And more?
### S3 o
Dangerous Moves
#L1
#A: (0,1)
"""


@pytest.mark.parametrize("persistence", [0.0, 0.25, 1.0])
def test_users_who_may_leave_score_what_the_rounds_they_saw_score(persistence: float) -> None:
    """Against the conversation cut off by hand after each round."""
    talk = parse_transcripts(TALK, "r", SETS)
    turns, frame = turn_frame(talk), nugget_frame(talk, SETS)
    trees = leaving_trees(turns, persistence)
    assert trees.paths["probability"].sum() == pytest.approx(1)
    paths = nugget_table(path_nuggets(trees, nuggets_by_round(frame, turns)), SETS)
    ours = expected_scores(gfrc(paths, SETS), trees).set_index(["attribute", "measure"])["value"]
    shares = {1: 1 - persistence, 2: persistence * (1 - persistence), 3: persistence**2}
    wanted: pd.Series = sum(
        share * gfrc(nugget_table(cut, SETS), SETS).set_index(["attribute", "measure"])["value"]
        for rounds, share in shares.items()
        for cut in [frame[frame["turn"].astype(int) <= rounds]]
    )
    pd.testing.assert_series_equal(ours, wanted, check_exact=False, atol=1e-12)


def test_rounds_that_do_not_fit_are_refused() -> None:
    talk = parse_transcripts(TALK, "r", SETS)
    turns, frame = turn_frame(talk), nugget_frame(talk, SETS)
    with pytest.raises(ValueError, match="persistence is a probability"):
        leaving_trees(turns, 1.5)
    with pytest.raises(ValueError, match="no column end"):
        leaving_trees(turns.drop(columns="end"), 0.5)
    with pytest.raises(ValueError, match="numbered 1, 2"):
        leaving_trees(turns[turns["turn"] != 2], 0.5)
    with pytest.raises(ValueError, match="a turn without boundaries"):
        nuggets_by_round(frame, turns[turns["turn"] != 2])
