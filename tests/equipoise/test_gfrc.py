"""Guards gfrc Eqs. 3-10, gfrc2 Eqs. 1-21: a plain second opinion, bounds, properties, errors.

The printed tables are guarded by the ledger: see test_reports.py.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plain_gfrc as plain
from equipoise.attributes import attribute_sets
from equipoise.measures.gfrc import (
    gain_values,
    gfrc,
    nugget_scores,
    nugget_weights,
    relevance,
    steps,
    turns,
)
from equipoise.measures.gfrc2 import gfrc2, user_clusters
from equipoise.nuggets import NuggetTable, nugget_table

tables = st.builds(
    lambda count, each, seed: plain.random_table(count, each, seed),
    st.integers(1, 6),
    st.integers(1, 8),
    st.integers(0, 10_000),
)


def scores_by_conversation(
    table: pd.DataFrame, conversations: int
) -> np.ndarray[Any, np.dtype[np.float64]]:
    return table["value"].to_numpy().reshape(conversations, -1)


@given(given_table=tables, cumulative=st.booleans(), uniform=st.booleans())
def test_gfrc_agrees_with_the_plain_transcription(
    given_table: Any, cumulative: bool, uniform: bool
) -> None:
    nuggets, sets = given_table
    ours = gfrc(
        nuggets,
        sets,
        patience=120,
        distribution="cumulative" if cumulative else "independent",
        empty_turns="uniform" if uniform else "ignore",
    )
    expected = [plain.gfrc(c, sets, 120, cumulative, uniform) for c in plain.conversations(nuggets)]
    assert ours["measure"].tolist()[:5] == ["R", "GF", "GF", "GF", "GFRC"]
    assert ours["attribute"].tolist()[:5] == ["", "RATINGS", "ORIGIN", "", ""]
    np.testing.assert_allclose(
        scores_by_conversation(ours, len(expected)), expected, rtol=1e-12, atol=1e-14
    )


@given(given_table=tables)
def test_gfrc2_agrees_with_the_plain_transcription(given_table: Any) -> None:
    nuggets, sets = given_table
    ours = gfrc2(nuggets, sets, patience=120)
    expected = [plain.gfrc2(c, sets, 120) for c in plain.conversations(nuggets)]
    assert ours["measure"].tolist()[:4] == ["EGNP", "EGF", "EGF", "GFRC2"]
    np.testing.assert_allclose(
        scores_by_conversation(ours, len(expected)), expected, rtol=1e-12, atol=1e-14
    )


@given(given_table=tables, patience=st.sampled_from([2, 50, 1000]))
def test_scores_within_bounds(given_table: Any, patience: int) -> None:
    nuggets, sets = given_table
    scores = pd.concat(
        [gfrc(nuggets, sets, patience=patience), gfrc2(nuggets, sets, patience=patience)]
    )
    assert scores["value"].between(0, 1).all()
    clusters = user_clusters(nuggets, sets, patience=patience)
    shares = clusters.filter(regex="^(GNP|D |DistrSim|Experience|probability)").to_numpy(
        dtype=float
    )
    assert ((shares >= 0) & (shares <= 1)).all()


@given(given_table=tables, data=st.data())
def test_moving_a_nugget_earlier_lowers_neither_r_nor_gfrc2(
    given_table: Any, data: st.DataObject
) -> None:
    nuggets, sets = given_table
    row = data.draw(st.integers(0, len(nuggets) - 1))
    same = row > 0 and nuggets.conversation[row - 1] == nuggets.conversation[row]
    room = nuggets.start[row] - (nuggets.end[row - 1] if same else 0) - 1
    shift = data.draw(st.integers(0, int(room)))
    start, end = nuggets.start.copy(), nuggets.end.copy()
    start[row] -= shift
    end[row] -= shift
    moved = replace(nuggets, start=start, end=end)
    for measure, name in ((gfrc, "R"), (gfrc2, "GFRC2")):
        before, after = (measure(table, sets, patience=150) for table in (nuggets, moved))
        chosen = before["measure"] == name
        assert (after.loc[chosen, "value"] >= before.loc[chosen, "value"] - 1e-15).all()


@given(given_table=tables)
def test_independent_equals_cumulative_for_one_turn(given_table: Any) -> None:
    nuggets, sets = given_table
    one_turn = replace(nuggets, turn=np.ones(len(nuggets), dtype=np.int64))
    independent, cumulative = (
        gfrc(one_turn, sets, distribution=d)["value"] for d in ("independent", "cumulative")
    )
    np.testing.assert_allclose(independent, cumulative, rtol=0, atol=1e-14)


@given(given_table=tables, order=st.randoms(use_true_random=False))
def test_permuting_conversations_permutes_scores_to_the_bit(given_table: Any, order: Any) -> None:
    nuggets, sets = given_table
    count = len(nuggets.conversations)
    shuffled = order.sample(range(count), count)
    rows = np.concatenate([np.flatnonzero(nuggets.conversation == c) for c in shuffled])
    frame = plain.frame(nuggets).iloc[rows]
    permuted = nugget_table(frame, sets)
    for measure in (gfrc, gfrc2):
        before = scores_by_conversation(measure(nuggets, sets), count)
        after = scores_by_conversation(measure(permuted, sets), count)
        np.testing.assert_array_equal(after, before[shuffled])


@given(given_table=tables)
def test_interleaving_conversations_changes_nothing(given_table: Any) -> None:
    nuggets, sets = given_table
    frame = plain.frame(nuggets)
    rank = frame.groupby("run").cumcount()
    interleaved = nugget_table(frame.loc[rank.sort_values(kind="stable").index], sets)
    pd.testing.assert_frame_equal(gfrc(interleaved, sets), gfrc(nuggets, sets))


@given(given_table=tables)
def test_permuting_nominal_groups_and_reversing_ordinal_ones(given_table: Any) -> None:
    nuggets, sets = given_table
    turned = {
        name: attribute_sets(
            {
                name: {
                    "kind": a.kind,
                    "groups": list(a.groups[::-1]),
                    "target": [repr(q) for q in a.target[::-1].tolist()],
                }
            }
        )[name]
        for name, a in sets.items()
    }
    reversed_table = replace(
        nuggets, memberships={name: m[:, ::-1] for name, m in nuggets.memberships.items()}
    )
    for measure in (gfrc, gfrc2):
        np.testing.assert_allclose(
            measure(reversed_table, turned)["value"],
            measure(nuggets, sets)["value"],
            rtol=0,
            atol=1e-12,
        )


def one_conversation(**columns: Any) -> tuple[NuggetTable, Any]:
    sets = attribute_sets({"A": {"kind": "nominal", "groups": ["x", "y"], "target": "uniform"}})
    rows = {"run": "r", "topic": "t", "turn": 1, "level": 2, "A": "1 0"} | columns
    return nugget_table(pd.DataFrame(rows), sets), sets


def value(scores: pd.DataFrame, measure: str, attribute: str = "") -> float:
    chosen = scores[(scores["measure"] == measure) & (scores["attribute"] == attribute)]
    return float(chosen["value"].item())


def test_a_conversation_of_nothing_but_perfect_words_has_r_of_one() -> None:
    words = list(range(1, 51))
    nuggets, sets = one_conversation(start=words, end=words)
    for equation, expected in (
        ("one-based", 1.0),
        ("zero-based", 49 / 51),
        ("zero-based-own-normaliser", 1.0),
    ):
        r = value(gfrc(nuggets, sets, patience=50, position_weight=equation), "R")  # type: ignore[arg-type]
        assert r == pytest.approx(expected)


def test_position_weights_and_their_normalisers() -> None:
    assert nugget_weights([10], 100, "one-based").tolist() == [0.91]
    assert nugget_weights([10], 100, "zero-based").tolist() == [0.9]
    scores = [
        relevance([10], [1.0], [0], 1, 100, weight).item()
        for weight in ("one-based", "zero-based", "zero-based-own-normaliser")
    ]
    assert scores == pytest.approx([0.91 * 2 / 101, 0.9 * 2 / 101, 0.9 * 2 / 99])


def test_a_nugget_beyond_the_patience_counts_for_nothing() -> None:
    nuggets, sets = one_conversation(start=[10, 101], end=[10, 101], A=["1 0", "0 1"])
    only, _ = one_conversation(start=[10], end=[10])
    assert value(gfrc2(nuggets, sets, patience=100), "GFRC2") == value(
        gfrc2(only, sets, patience=100), "GFRC2"
    )
    assert value(gfrc(nuggets, sets, patience=100), "R") == value(
        gfrc(only, sets, patience=100), "R"
    )
    on_the_edge = value(gfrc2(nuggets, sets, patience=101), "EGNP")
    assert on_the_edge > value(gfrc2(only, sets, patience=101), "EGNP")


def test_empty_turns() -> None:
    nuggets, sets = one_conversation(
        turn=[1, 2, 3], start=[5, None, None], end=[5, None, None], level=[2, 0, 0]
    )
    similarity = turns(nuggets, sets)["DistrSim A"].item()
    assert value(gfrc(nuggets, sets), "GF", "A") == similarity
    assert value(gfrc(nuggets, sets, empty_turns="uniform"), "GF", "A") == pytest.approx(
        (similarity + 1 + 1) / 3
    )
    nothing, _ = one_conversation(start=[None], end=[None], level=0, A=None)
    assert [value(gfrc(nothing, sets), m) for m in ("R", "GF", "GFRC")] == [0, 0, 0]
    assert value(gfrc(nothing, sets, empty_turns="uniform"), "GF") == 1
    assert value(gfrc2(nothing, sets), "GFRC2") == 0


def test_turns_weighted_by_their_largest_nugget() -> None:
    nuggets, sets = one_conversation(
        turn=[1, 1, 2], start=[1, 21, 51], end=[1, 21, 51], A=["1 0", "1 0", "1/2 1/2"]
    )
    similarities = turns(nuggets, sets)["DistrSim A"]
    weighted = gfrc(nuggets, sets, patience=100, turn_weight="largest-nugget")
    assert value(weighted, "GF", "A") == pytest.approx(
        (1.0 * similarities[0] + 0.5 * similarities[1]) / 1.5
    )


def test_duplicates_of_an_entity_are_not_rewarded() -> None:
    twice, sets = one_conversation(
        start=[5, 9], end=[5, 9], entity=["Tenet", "Tenet"], A=["1 0", "0 1"]
    )
    once, _ = one_conversation(start=[5], end=[5], entity=["Tenet"])
    assert value(gfrc(twice, sets), "GFRC") == value(gfrc(once, sets), "GFRC")
    assert value(gfrc2(twice, sets), "GFRC2") == value(gfrc2(once, sets), "GFRC2")
    unnamed, _ = one_conversation(start=[5, 9], end=[5, 9], entity=["", ""])
    assert len(user_clusters(unnamed, sets)) == 2


def test_what_a_nugget_names_travels_with_it() -> None:
    named, sets = one_conversation(start=[5, 9], end=[5, 9], entity=["Tenet", ""], A=["1 0", "0 1"])
    assert nugget_scores(named)["nugget"].tolist() == ["Tenet", ""]
    assert one_conversation(start=[5], end=[5])[0].names.tolist() == [""]
    both = steps(nugget_scores(named), turns(named, sets), sets)
    assert both["section"].tolist() == ["R", "R", "GF A"]
    assert both["row"].tolist() == [1, 2, 1]
    assert both.loc[2, ["D 1", "D 2", "DistrSim"]].tolist() == [0.5, 0.5, 1.0]


def test_weights_and_alpha() -> None:
    nuggets, sets = plain.random_table(3, 5, 1)
    plainly = gfrc(nuggets, sets).pivot_table(
        index="run", columns=["measure", "attribute"], values="value"
    )
    tilted = gfrc(nuggets, sets, weights={"RATINGS": 3, "ORIGIN": 1}, alpha=0.25)
    tilted = tilted.pivot_table(index="run", columns=["measure", "attribute"], values="value")
    mean = 0.75 * plainly["GF", "RATINGS"] + 0.25 * plainly["GF", "ORIGIN"]
    np.testing.assert_allclose(tilted["GF", ""], mean)
    np.testing.assert_allclose(tilted["GFRC", ""], 0.25 * plainly["R", ""] + 0.75 * mean)
    third = (plainly["R", ""] + plainly["GF", "RATINGS"] + plainly["GF", "ORIGIN"]) / 3
    np.testing.assert_allclose(plainly["GFRC", ""], third)
    only_utility = gfrc2(nuggets, sets, weights={"utility": 1, "RATINGS": 0, "ORIGIN": 0})
    assert value(only_utility[:4], "GFRC2") == value(only_utility[:4], "EGNP")


def test_gains() -> None:
    np.testing.assert_array_equal(
        gain_values([0, 1, 2, 3], {1: 0.1, 2: 0.2, 3: 1}), [0, 0.1, 0.2, 1]
    )
    with pytest.raises(ValueError, match=r"the gain of level 3 of the nuggets is missing"):
        gain_values([1, 3])
    nuggets, sets = plain.random_table(2, 3, 0)
    scores = gfrc(nuggets, sets, gains="exponential")  # type: ignore[arg-type]
    pd.testing.assert_frame_equal(scores, gfrc(nuggets, sets, gains={1: 0.25, 2: 0.75}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"patience": 1}, "patience must be greater than 1, got 1"),
        ({"position_weight": "eq6"}, "position_weight must be 'one-based', .*got 'eq6'"),
        ({"distribution": "both"}, "distribution must be 'independent' or 'cumulative'"),
        ({"empty_turns": "drop"}, "empty_turns must be 'ignore' or 'uniform', got 'drop'"),
        ({"turn_weight": "max"}, "turn_weight must be 'uniform' or 'largest-nugget', got 'max'"),
        ({"turn_weight": "largest-nugget", "empty_turns": "uniform"}, "no largest nugget"),
        ({"ordinal": "emd"}, "ordinal must be 'rnod', 'nmd', 'jsd' or 'nvd', got 'emd'"),
        ({"nominal": "rnod"}, "nominal must be 'jsd' or 'nvd', got 'rnod'"),
        ({"weights": {"RATINGS": 1}}, "for each of RATINGS, ORIGIN, got RATINGS"),
        ({"weights": {"RATINGS": -1, "ORIGIN": 1}}, "RATINGS. must be greater than or equal to 0"),
        ({"weights": {"RATINGS": 1e308, "ORIGIN": 1e308}}, "weights must have a sum above 0"),
        ({"alpha": 1.5}, "alpha must be less than or equal to 1, got 1.5"),
        ({"gains": "linear"}, "gains must be written name:number,name:number"),
        ({"gains": {1: 1.5}}, "gains.1. must be less than or equal to 1, got 1.5"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    nuggets, sets = plain.random_table(1, 3, 0)
    with pytest.raises(ValueError, match=message):
        gfrc(nuggets, sets, **options)


def test_gf_needs_an_attribute_set() -> None:
    nuggets, _ = plain.random_table(1, 3, 0)
    with pytest.raises(ValueError, match="at least one attribute set"):
        gfrc(nuggets, {})
