"""Guards properties of measures: what each changes, by hand, and who keeps it on random tables."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plain_gfrc as plain
from equipoise.attributes import AttributeSet, attribute_sets
from equipoise.measures.gfrc import gfrc
from equipoise.measures.gfrc2 import gfrc2
from equipoise.nuggets import NuggetTable, nugget_table
from equipoise_studies.pilot.axioms import PROPERTIES, Sets, examine, small_conversations

SETS = attribute_sets({"A": {"kind": "nominal", "groups": ["x", "y"], "target": "uniform"}})
NOTHING = {"run": "r", "topic": "1", "turn": 1, "start": "", "end": "", "level": 0, "A": ""}
ROWS = [
    NOTHING,
    {"run": "r", "topic": "2", "turn": 1, "start": 3, "end": 4, "level": 1, "A": "1 0"},
    {"run": "r", "topic": "3", "turn": 1, "start": 3, "end": 3, "level": 2, "A": "1 0"},
    {"run": "r", "topic": "3", "turn": 1, "start": 6, "end": 7, "level": 1, "A": "1 0"},
    {"run": "r", "topic": "3", "turn": 2, "start": 9, "end": 9, "level": 1, "A": "0 1"},
]


def scorer(measure: Any, name: str, **options: Any) -> Any:
    def score(nuggets: NuggetTable, sets: Sets) -> Any:
        table = measure(nuggets, sets, patience=20, **options)
        return table.loc[
            (table["measure"] == name) & (table["attribute"] == ""), "value"
        ].to_numpy()

    return score


MEASURES = {
    "R": scorer(gfrc, "R"),
    "GF": scorer(gfrc, "GF"),
    "GF, empty turns uniform": scorer(gfrc, "GF", empty_turns="uniform"),
    "GF, beyond ignored": scorer(gfrc, "GF", beyond_patience="ignored"),
    "EGNP": scorer(gfrc2, "EGNP"),
    "GFRC2": scorer(gfrc2, "GFRC2"),
    "GFRC2, duplicates": scorer(gfrc2, "GFRC2", duplicates="relevant"),
}


def relevant(nuggets: NuggetTable, topic: str) -> list[tuple[int, int, int, int, list[float]]]:
    """Turn, start, end, level and memberships of the relevant nuggets of a conversation."""
    number = nuggets.conversations["topic"].tolist().index(topic)
    rows = np.flatnonzero((nuggets.conversation == number) & (nuggets.level > 0))
    columns = (nuggets.turn, nuggets.start, nuggets.end, nuggets.level, nuggets.memberships["A"])
    return [tuple(column[row].tolist() for column in columns) for row in rows]


X, Y = [1.0, 0.0], [0.0, 1.0]
FIRST, LATER = (1, 3, 3, 2, X), (1, 6, 7, 1, X)


@pytest.mark.parametrize(
    ("name", "expected", "possible"),
    [
        ("refusal", [], [True, True, True]),
        (
            "duplicate",
            [FIRST, (1, 4, 4, 2, X), (1, 7, 8, 1, X), (2, 10, 10, 1, Y)],
            [False, True, True],
        ),
        ("padding", [(1, 4, 4, 2, X), (1, 7, 8, 1, X), (2, 10, 10, 1, Y)], [False, True, True]),
        (
            "unfair addition",
            [FIRST, LATER, (2, 9, 9, 1, Y), (2, 10, 10, 2, X)],
            [False, True, True],
        ),
        ("fair addition", [FIRST, LATER, (2, 9, 9, 1, Y), (2, 10, 10, 2, Y)], [False, True, True]),
        ("earlier nugget", [FIRST, LATER, (2, 8, 8, 1, Y)], [False, True, True]),
        ("beyond patience", [FIRST, LATER, (2, 9, 9, 1, Y), (2, 21, 21, 2, X)], [True, True, True]),
        (
            "order of groups",
            [(1, 3, 3, 2, Y), (1, 6, 7, 1, Y), (2, 9, 9, 1, X)],
            [True, True, True],
        ),
        (
            "number of groups",
            [(*n[:4], [*n[4], 0.0]) for n in (FIRST, LATER, (2, 9, 9, 1, Y))],
            [True, True, True],
        ),
        ("split turn", [FIRST, LATER, (2, 9, 9, 1, Y)], [False, False, False]),
        ("scale of the target", [FIRST, LATER, (2, 9, 9, 1, Y)], [True, True, True]),
    ],
)
def test_what_each_property_changes(name: str, expected: list[Any], possible: list[bool]) -> None:
    nuggets = nugget_table(pd.DataFrame(ROWS), SETS)
    changed, sets, where = PROPERTIES[name].change(nuggets, SETS, 20)
    assert relevant(changed, "3") == expected
    assert np.broadcast_to(where, 3).tolist() == possible
    assert len(sets["A"].groups) == changed.memberships["A"].shape[1]
    kept = (
        {(turn, end) for turn, _, end, _, _ in relevant(nuggets, "2")}
        if name == "split turn"
        else set()
    )
    assert kept <= {(turn, end) for turn, _, end, _, _ in relevant(changed, "2")}


def test_no_nugget_is_moved_onto_the_one_before_an_empty_turn() -> None:
    rows = [
        ROWS[2] | {"topic": "5", "start": 4, "end": 4},
        NOTHING | {"topic": "5", "turn": 2},
        ROWS[2] | {"topic": "5", "turn": 3, "start": 5, "end": 5},
        ROWS[2] | {"topic": "6"},
        NOTHING | {"topic": "6", "turn": 2},
        ROWS[2] | {"topic": "6", "turn": 3, "start": 5, "end": 5},
    ]
    nuggets = nugget_table(pd.DataFrame(rows), SETS)
    changed, _, where = PROPERTIES["earlier nugget"].change(nuggets, SETS, 20)
    assert where.tolist() == [False, True]  # type: ignore[union-attr]
    assert [nugget[1] for nugget in relevant(changed, "5")] == [4, 5]
    assert [nugget[1] for nugget in relevant(changed, "6")] == [3, 4]


def test_a_turn_is_split_before_its_last_nugget() -> None:
    rows = [
        *ROWS[2:4],
        ROWS[2] | {"topic": "4", "start": 8, "end": 8},
        ROWS[2] | {"topic": "4", "turn": 2},
    ]
    rows = [row | {"start": 5 + place, "end": 5 + place} for place, row in enumerate(rows)]
    changed, _, where = PROPERTIES["split turn"].change(
        nugget_table(pd.DataFrame(rows), SETS), SETS, 20
    )
    assert where.tolist() == [True, False]  # type: ignore[union-attr]
    assert [nugget[0] for nugget in relevant(changed, "3")] == [1, 2]
    assert [nugget[0] for nugget in relevant(changed, "4")] == [1, 2]


def test_groups_and_targets_change_together() -> None:
    sets = {"A": AttributeSet("A", "nominal", ("x", "y"), np.array([1, 3]))}
    nuggets = nugget_table(pd.DataFrame(ROWS), sets)
    rolled, larger, scaled = (
        PROPERTIES[name].change(nuggets, sets, 20)[1]["A"]
        for name in ("order of groups", "number of groups", "scale of the target")
    )
    assert (rolled.groups, rolled.target.tolist()) == (("0", "1"), [0.75, 0.25])
    assert (larger.groups, larger.target.tolist()) == (("0", "1", "2"), [0.25, 0.75, 0])
    assert scaled.target.tolist() == [0.25, 0.75]


def test_who_breaks_what_and_the_smallest_examples() -> None:
    small = small_conversations(SETS["A"], most=2)
    found = examine(MEASURES, small, SETS, 20)
    said = small.conversations["topic"].to_numpy(dtype=object)
    breaks = found[found["broken"] > 0]
    examples = {(row.measure, row.property): said[row.example] for row in breaks.itertuples()}
    one, two = "S1 word 1: L1 x", "S1 word 1: L1 x; S1 word 2: L1 y"
    unfair, beyond, split = "unfair addition", "beyond patience", "split turn"
    expected = {
        ("GF, empty turns uniform", "refusal"): one,
        ("GFRC2, duplicates", "duplicate"): one,
    }
    expected |= {(name, unfair): one for name in ("R", "EGNP", "GFRC2", "GFRC2, duplicates")}
    expected |= {
        (name, split): two for name in ("GF", "GF, empty turns uniform", "GF, beyond ignored")
    }
    expected |= {(name, beyond): "nothing" for name in ("GF", "GF, empty turns uniform")}
    expected["GF, empty turns uniform", "number of groups"] = "nothing"
    assert examples == expected
    rescored = breaks[breaks["property"] == "unfair addition"].set_index("measure").loc["GFRC2"]
    a_similarity, both = plain.similarity([1, 0], SETS["A"]), 1 / 20
    assert rescored["before"] == pytest.approx(both * (1 + a_similarity) / 2)
    assert rescored["after"] == pytest.approx(2 * both * (1 + a_similarity) / 2)
    moved = found.set_index(["measure", "property"])["moved"]
    assert moved["GF", "padding"] == 0
    assert moved["R", "padding"] == len(said) - 1


def test_small_conversations_are_all_there_once_and_grow() -> None:
    small = small_conversations(SETS["A"], most=2)
    assert len(small.conversations) == 1 + 8 + 8 * 8 * 2
    assert small.conversations["topic"].is_unique
    assert (np.diff(np.bincount(small.conversation, weights=small.level > 0)) >= 0).all()
    assert small.memberships["A"].sum() == (small.level > 0).sum()


@settings(max_examples=20)
@given(st.builds(plain.random_table, st.integers(1, 6), st.integers(1, 8), st.integers(0, 10_000)))
def test_what_is_kept_on_small_conversations_is_kept_on_random_ones(given_table: Any) -> None:
    nuggets, sets = given_table
    found = examine({name: MEASURES[name] for name in ("R", "EGNP", "GFRC2")}, nuggets, sets, 20)
    broken = {f"{row.measure} {row.property}" for row in found[found["broken"] > 0].itertuples()}
    ordinal = {
        "GFRC2 order of groups",
        "GFRC2 number of groups",
    }  # RNOD sees order, and counts groups
    assert broken <= {
        "R unfair addition",
        "EGNP unfair addition",
        "GFRC2 unfair addition",
        *ordinal,
    }
