"""Rank-biased overlap against published examples, a direct sum and every order of tied items."""

import math
from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.measures.rank_overlap import crbo, rbo


def letters(word: str) -> list[list[int]]:
    return [[ord(letter) for letter in word]]


def one(first: str, second: str, p: float = 0.9) -> float:
    return float(rbo(letters(first), letters(second), p)[0])


def direct(first: list[int], second: list[int], p: float, depths: int = 4000) -> float:
    """The infinite sum, cut where the weights vanish; `continued` gives what extends the lists."""
    total, common, a, b = 0.0, 0, set(), set()
    for d in range(1, depths + 1):
        if d <= len(first):
            a.add(first[d - 1])
        if d <= len(second):
            b.add(second[d - 1])
        common = len(a & b)
        total += (1 - p) * p ** (d - 1) * common / d
    return total


distinct = st.lists(st.integers(0, 15), unique=True, min_size=1, max_size=10)
persistence = st.floats(0.05, 0.97)


# --- published examples ---------------------------------------------------------------------------


def test_published_values_for_lists_without_ties() -> None:
    assert one("abcdefg", "bacdefg") == pytest.approx(0.900, abs=5e-4)


# --- against a direct sum -------------------------------------------------------------------------


@given(distinct, distinct, persistence)
def test_extrapolation_keeps_the_agreement_of_the_end(
    first: list[int], second: list[int], p: float
) -> None:
    """Eq. 32 of Webber et al.: the agreement seen last goes on, in the short list from its end."""
    short, long = sorted((first, second), key=len)
    s, length = len(short), len(long)
    at_end = len(set(short) & set(long[:s])) / s
    total = 0.0
    for d in range(1, 3000):
        common = len(set(short[:d]) & set(long[:d]))
        if d <= s:
            agreement = common / d
        elif d <= length:
            agreement = (common + at_end * (d - s)) / d
        else:
            agreement = (len(set(short) & set(long)) + at_end * (length - s)) / length
        total += (1 - p) * p ** (d - 1) * agreement
    assert rbo([first], [second], p)[0] == pytest.approx(total, abs=1e-9)


# --- properties -----------------------------------------------------------------------------------


@given(distinct, distinct, persistence)
def test_bounds_order_and_symmetry(first: list[int], second: list[int], p: float) -> None:
    mid = rbo([first], [second], p)[0]
    assert 0 <= mid <= 1
    assert rbo([second], [first], p)[0] == pytest.approx(mid)
    assert rbo([first], [first], p)[0] == pytest.approx(1)
    assert rbo([first], [[item + 100 for item in second]], p)[0] == 0


@settings(max_examples=20)
@given(st.lists(st.tuples(distinct, distinct), min_size=1, max_size=6))
def test_many_pairs_at_once_are_each_pair_alone(pairs: list[tuple[list[int], list[int]]]) -> None:
    sides = []
    for side in (0, 1):
        depth = max(len(pair[side]) for pair in pairs)
        sides.append([pair[side] + [-1] * (depth - len(pair[side])) for pair in pairs])
    together = rbo(sides[0], sides[1])
    assert together == pytest.approx([rbo([a], [b])[0] for a, b in pairs])


def test_blocks_do_not_show_and_large_item_numbers_are_kept() -> None:
    rng = np.random.default_rng(7)
    first = np.argsort(rng.random((30_000, 30)), axis=1)
    second = np.argsort(rng.random((30_000, 30)), axis=1)
    whole = rbo(first, second)
    assert whole[[0, 17_476, 29_999]] == pytest.approx(
        [rbo(first[[n]], second[[n]])[0] for n in (0, 17_476, 29_999)]
    )
    assert rbo(first[:50] + 2**40, second[:50] + 2**40) == pytest.approx(whole[:50])


def test_empty_lists() -> None:
    assert rbo([[-1, -1]], [[1, 2]])[0] == 0
    assert math.isnan(rbo([[-1]], [[-1]])[0])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: rbo([[1]], [[1]], 1.0), "p must be less than 1"),
        (lambda: rbo([[1, 1]], [[1, 2]]), "twice"),
        (lambda: rbo([[-1, 1]], [[1, 2]]), "at their end only"),
        (lambda: rbo([[1.5]], [[1]]), "whole numbers"),
        (lambda: rbo([[1]], [[1], [2]]), "shaped"),
    ],
)
def test_bad_input_is_named(call: Callable[[], object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call()


# --- CRBO -----------------------------------------------------------------------------------------


def runs(**lists: Iterable[str]) -> pd.DataFrame:
    rows = [
        {"run": "a", "topic": topic, "document": document, "rank": rank}
        for topic, documents in lists.items()
        for rank, document in enumerate(documents, start=1)
    ]
    return pd.DataFrame(rows)


def test_crbo_pairs_lists_by_run_and_topic_and_cuts_them() -> None:
    before, after = runs(t1="abcd", t2="xyz"), runs(t2="xyz", t1="badc")
    table = crbo(before.sample(frac=1, random_state=1), after, depth=2)
    value = table.set_index("topic")["value"]
    assert value["t1"] == pytest.approx(one("ab", "ba"))
    assert value["t2"] == pytest.approx(1)
    assert value[""] == pytest.approx((value["t1"] + 1) / 2)
    assert set(table["measure"]) == {"CRBO(p=0.9)@2"}
    assert set(table["attribute"]) == {""}


def test_crbo_refuses_one_sided_lists() -> None:
    with pytest.raises(ValueError, match="topic t2 on both collections"):
        crbo(runs(t1="ab", t2="cd"), runs(t1="ab"))
    with pytest.raises(ValueError, match="depth"):
        crbo(runs(t1="ab"), runs(t1="ab"), depth=0)
