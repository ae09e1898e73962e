"""Means over the orders of tied scores, against every order written out."""

from itertools import permutations, product
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import dcg_score

from equipoise.measures import rank_overlap
from equipoise.measures.effectiveness import effectiveness
from equipoise.measures.rank_overlap import crbo, rbo
from equipoise.measures.ranking_bias import TermGroups, count_terms, score_ranking_bias
from equipoise.measures.tied_scores import mean_of_ties, orders_of_ties, tied_spans

WORDS = ["he", "him", "she", "her", "rain", "falls"]
GENDER = TermGroups.from_pairs([("he", "m"), ("him", "m"), ("she", "f"), ("her", "f")])

scores_of_a_list = st.lists(st.integers(0, 2), min_size=1, max_size=5).map(
    lambda scores: sorted(scores, reverse=True)
)


def every_order(scores: list[int]) -> list[tuple[int, ...]]:
    """All orders of the places of a list that keep its scores in order."""
    places = range(len(scores))
    ties = [
        [place for place in places if scores[place] == score]
        for score in sorted(set(scores), reverse=True)
    ]
    return [sum(parts, ()) for parts in product(*map(permutations, ties))]


@given(scores_of_a_list, st.integers(1, 8))
def test_each_order_of_the_first_ranks_comes_equally_often(scores: list[int], depth: int) -> None:
    own, places = orders_of_ties(*tied_spans([scores]), depth)
    assert set(own) == {0}
    listed = [tuple(row) for row in places.tolist()]
    assert len(set(listed)) == len(listed)
    assert set(listed) == {order[:depth] for order in every_order(scores)}


def test_lists_are_taken_apart_and_long_ones_are_drawn_evenly() -> None:
    scores = np.array([[3.0, 2, 1, np.nan], [1, 1, 1, 1], [2, 2, np.nan, np.nan]])
    first, last = tied_spans(scores)
    assert first.tolist() == [[0, 1, 2, 3], [0, 0, 0, 0], [0, 0, 2, 3]]
    assert last.tolist() == [[0, 1, 2, 3], [3, 3, 3, 3], [1, 1, 2, 3]]
    assert (
        len(np.unique(orders_of_ties(first[1:2], last[1:2], 4, most=24, drawn=5)[1], axis=0)) == 24
    )
    own, places = orders_of_ties(first, last, 4, most=23, drawn=4800)
    assert np.bincount(own).tolist() == [1, 4800, 2]
    assert np.unique(places[own == 1], axis=0, return_counts=True)[1] == pytest.approx(
        200, abs=60
    )  # 4 deviations
    again = orders_of_ties(first[1:2], last[1:2], 4, most=23, drawn=4800)[1]
    np.testing.assert_array_equal(again, places[own == 1])
    with pytest.raises(ValueError, match="scores of mine rise"):
        tied_spans([[1, 2]], "mine")


@given(scores_of_a_list, st.integers(0, 99))
def test_weighted_sums_of_the_means_of_ties_are_the_means_of_the_sums(
    scores: list[int], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    values, weights = rng.random((len(scores), 2)), rng.random(len(scores))
    means = mean_of_ties(values[np.newaxis], *tied_spans([scores]))
    sums = [weights @ values[list(order)] for order in every_order(scores)]
    assert weights @ means[0] == pytest.approx(np.mean(sums, axis=0))
    alone = [place for place, score in enumerate(scores) if scores.count(score) == 1]
    assert means[0][alone].tolist() == values[alone].tolist()


def one_list(
    scores: list[int], order: tuple[int, ...] | None = None, run: str = "r"
) -> pd.DataFrame:
    order = tuple(range(len(scores))) if order is None else order
    names, ranks = [f"d{place}" for place in order], range(1, len(scores) + 1)
    return pd.DataFrame(
        {"run": run, "topic": "1", "document": names, "rank": ranks, "score": scores}
    )


@settings(max_examples=12)
@given(scores_of_a_list, st.integers(0, 99))
def test_bias_is_the_mean_over_every_order(scores: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    texts = [
        (f"d{n}", " ".join(rng.choice(WORDS, size=rng.integers(1, 9)))) for n in range(len(scores))
    ]
    texts.append(("other", "he and she"))  # some term occurs
    counts = count_terms(texts, GENDER.terms)
    options: dict[str, Any] = {"cutoffs": [1, 2, 4, 9], "undefined": 0.0}
    found = score_ranking_bias(one_list(scores), counts, GENDER, tied_scores="expected", **options)[
        "value"
    ]
    orders = every_order(scores)
    runs = pd.concat(
        [one_list(scores, order, f"{number:03d}") for number, order in enumerate(orders)]
    )
    each = score_ranking_bias(runs, counts, GENDER, **options)
    means = each[each["topic"] == "1"].groupby(["attribute", "measure"], sort=False)["value"].mean()
    assert found[::2].to_numpy() == pytest.approx(means.to_numpy(), abs=1e-12)


@settings(max_examples=12)
@given(scores_of_a_list, st.integers(0, 99), st.integers(1, 7))
def test_effectiveness_is_the_mean_over_every_order(scores: list[int], seed: int, k: int) -> None:
    grades = np.random.default_rng(seed).integers(0, 3, len(scores))
    judged = pd.DataFrame(
        {"query": "1", "document": [f"d{n}" for n in range(len(scores))], "grade": grades}
    )
    judged.loc[len(judged)] = ["1", "elsewhere", 1]
    measures = {name: f"{name}@{k}" for name in ("RR", "nDCG", "P")}
    listed = one_list(scores).rename(columns={"topic": "query"})
    other = listed.assign(
        run="s", score=[-rank for rank in listed["rank"]]
    )  # a list without ties beside it
    both = pd.concat([listed, other])
    values = effectiveness(both, judged, measures=measures, tied_scores="expected").set_index(
        ["run", "measure"]
    )
    relevant = [grades[list(order)] > 0 for order in every_order(scores)]
    first = [
        next((1 / rank for rank, held in enumerate(row[:k], start=1) if held), 0.0)
        for row in relevant
    ]
    assert values.loc[("r", "RR"), "value"] == pytest.approx(np.mean(first))
    assert values.loc[("r", "P"), "value"] == pytest.approx(
        np.mean([row[:k].sum() / k for row in relevant])
    )
    ideal = dcg_score([[*grades, 1]], [[*grades, 1]], k=k)
    for run, ranked in (
        ("r", scores),
        ("s", range(len(scores), 0, -1)),
    ):  # scikit-learn takes means over ties
        theirs = dcg_score([[*grades, 0]], [[*ranked, -1]], k=k) / ideal
        assert values.loc[(run, "nDCG"), "value"] == pytest.approx(theirs)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6))
def test_overlap_is_the_mean_over_every_order_of_the_documents(seed: int, depth: int) -> None:
    """Of up to six documents, on one side or both, all 720 orders are gone through by hand."""
    rng = np.random.default_rng(seed)
    worlds, expected = [], np.zeros(3)
    for _ in range(2):
        tables = []
        for topic in range(3):
            documents = rng.permutation(6)[: rng.integers(2, 6)]
            scores = np.sort(rng.integers(0, 3, len(documents)))[::-1]
            table = pd.DataFrame({"run": "r", "topic": str(topic), "document": documents})
            tables.append(table.assign(score=scores, rank=range(1, len(table) + 1)))
        worlds.append(pd.concat(tables, ignore_index=True))
    for topic in range(3):
        pair = [world[world["topic"] == str(topic)] for world in worlds]
        ordered: list[list[list[int]]] = [[], []]
        for order in permutations(range(6)):
            for rows, lists in zip(pair, ordered, strict=True):
                items = zip(rows["document"], rows["score"], strict=True)
                by_score = sorted(items, key=lambda item: (-item[1], order.index(item[0])))
                best = [document for document, _ in by_score[:depth]]
                lists.append([*best, *[-1] * (depth - len(best))])
        expected[topic] = rbo(ordered[0], ordered[1]).mean()
    texts = [world.assign(document="d" + world["document"].astype(str)) for world in worlds]
    found = crbo(*texts, depth=depth, tied_scores="expected")
    assert found["value"][:3].to_numpy() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("tied_places", "n_orders"), [(7, 5040), (8, 1000), (12, 1000)])
def test_orders_of_two_worlds_are_counted_up_to_20_000(
    monkeypatch: pytest.MonkeyPatch, tied_places: int, n_orders: int
) -> None:
    counted = Mock(side_effect=rbo)
    monkeypatch.setattr(rank_overlap, "rbo", counted)
    tied, other = one_list([1] * tied_places), one_list([*range(tied_places, 0, -1)])
    crbo(tied, other, depth=12, tied_scores="expected")
    assert [len(call.args[0]) for call in counted.call_args_list] == [1, n_orders]


def test_a_tie_that_goes_on_beyond_the_depth_is_counted_up_to_it() -> None:
    """Of twenty tied documents three are seen: 20 * 19 * 18 orders, not 20!, and exact so."""
    tied, other = one_list([1] * 20), one_list([*range(20, 0, -1)])
    found = crbo(tied, other, depth=3, tied_scores="expected")["value"].iloc[0]
    values = [rbo([list(first)], [[0, 1, 2]])[0] for first in permutations(range(20), 3)]
    assert found == pytest.approx(np.mean(values), abs=1e-12)


def test_one_order_breaks_the_ties_of_both_worlds() -> None:
    tied = one_list([2, 1, 1, 1, 0])
    other = one_list([2, 1, 1, 1, 0], (0, 3, 2, 1, 4))
    assert crbo(tied, other)["value"].iloc[0] < 1
    assert crbo(tied, other).index.tolist() == [0, 1]
    assert crbo(tied, other, tied_scores="expected")["value"].tolist() == pytest.approx([1, 1])
    # two are tied in one world only: half of the orders agree with the other world
    apart = one_list([3, 2, 1, 0, -1])
    paired = one_list([3, 2, 2, 0, -1])
    swapped = crbo(apart, one_list([3, 2, 1, 0, -1], (0, 2, 1, 3, 4)))["value"].iloc[0]
    assert crbo(apart, paired, tied_scores="expected")["value"].iloc[0] == pytest.approx(
        (1 + swapped) / 2
    )
    # a tie that goes on beyond the depth
    long = one_list([1, 1, 1])
    values = [
        crbo(one_list([3, 2, 1]), one_list([3, 2, 1], order), depth=1)["value"].iloc[0]
        for order in every_order([1, 1, 1])
    ]
    assert crbo(one_list([3, 2, 1]), long, depth=1, tied_scores="expected")["value"].iloc[
        0
    ] == pytest.approx(np.mean(values), abs=1e-12)
    with pytest.raises(ValueError, match="column"):
        crbo(tied.drop(columns="score"), other, tied_scores="expected")
