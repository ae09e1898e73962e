"""Rank-biased overlap against published examples, a direct sum and every order of tied items."""

import math
from collections.abc import Callable, Iterable
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.measures.rank_overlap import crbo, rbo


def letters(word: str) -> list[list[int]]:
    return [[ord(letter) for letter in word]]


def one(first: str, second: str, p: float = 0.9, **choices: Any) -> float:
    return float(rbo(letters(first), letters(second), p, **choices)[0])


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


def test_agreements_of_figure_5_of_webber_et_al() -> None:
    """S = abcdefg, L = zcavwxy, cut at depth k: differences give back the printed agreements."""
    agreement = [0, 0, 2 / 3, 2 / 4, 2 / 5, 2 / 6, 2 / 7]
    assert sum(agreement) / 7 == pytest.approx(
        0.312, abs=5e-4
    )  # the printed average overlap at depth 7
    p, before = 0.9, 0.0
    for k in range(1, 8):
        value = one("abcdefg"[:k], "zcavwxy"[:k], p, beyond="truncated")
        assert (value - before) / ((1 - p) * p ** (k - 1)) == pytest.approx(agreement[k - 1])
        before = value


def test_published_values_for_lists_without_ties() -> None:
    assert one("abcdefg", "abcdefg", beyond="minimum") == pytest.approx(0.767, abs=5e-4)
    assert one("abcdefgh", "abcdefg", beyond="minimum") == pytest.approx(0.767, abs=5e-4)
    assert 1 - one("abcdefg", "abcdefg", beyond="minimum") == pytest.approx(0.233, abs=5e-4)
    assert one("abcdefg", "bacdefg") == pytest.approx(0.900, abs=5e-4)


# --- against a direct sum -------------------------------------------------------------------------


@given(distinct, distinct, persistence)
def test_the_minimum_is_the_direct_sum_without_further_items(
    first: list[int], second: list[int], p: float
) -> None:
    assert rbo([first], [second], p, beyond="minimum")[0] == pytest.approx(
        direct(first, second, p), abs=1e-9
    )


@given(distinct, distinct, persistence)
def test_the_maximum_is_the_direct_sum_of_the_best_continuation(
    first: list[int], second: list[int], p: float
) -> None:
    short, long = sorted((first, second), key=len)
    gaps = [item for item in long if item not in short]
    # the short list goes on with what only the long one holds, the long one then with what only the
    # short one holds
    rest = [item for item in short if item not in long]
    new = [1000 + n for n in range(1500)]
    best_short, best_long = short + gaps + new, long + rest + new
    expected = direct(best_short, best_long, p, depths=1500)
    assert rbo([first], [second], p, beyond="maximum")[0] == pytest.approx(expected, abs=1e-9)


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
    low, mid, high = (
        rbo([first], [second], p, beyond=b)[0] for b in ("minimum", "extrapolated", "maximum")
    )
    assert (
        0
        <= rbo([first], [second], p, beyond="truncated")[0]
        <= low + 1e-12
        <= mid + 2e-12
        <= high + 3e-12
    )
    assert high <= 1
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
        (lambda: rbo([[1]], [[1]], 1.0), "persistence"),
        (lambda: rbo([[1, 1]], [[1, 2]]), "twice"),
        (lambda: rbo([[-1, 1]], [[1, 2]]), "empty place"),
        (lambda: rbo([[1.5]], [[1]]), "whole numbers"),
        (lambda: rbo([[1]], [[1], [2]]), "same pairs"),
        (lambda: rbo([[1]], [[1]], beyond=cast("Any", "sea")), "sea"),
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
    table = crbo(before.sample(frac=1, random_state=1), after, depth=2, attribute="gender")
    value = table.set_index("topic")["value"]
    assert value["t1"] == pytest.approx(one("ab", "ba"))
    assert value["t2"] == pytest.approx(1)
    assert value[""] == pytest.approx((value["t1"] + 1) / 2)
    assert set(table["measure"]) == {"CRBO(p=0.9)@2"}
    assert set(table["attribute"]) == {"gender"}


def test_crbo_refuses_one_sided_lists() -> None:
    with pytest.raises(ValueError, match=r"1 lists stand on one side only.*t2"):
        crbo(runs(t1="ab", t2="cd"), runs(t1="ab"))
    with pytest.raises(ValueError, match="depth"):
        crbo(runs(t1="ab"), runs(t1="ab"), depth=0)
