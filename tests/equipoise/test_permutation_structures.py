"""Guards permutations section 3.1: counts, ranks, samples and exact values against brute force."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from equipoise.permutations.structures import (
    ClassStructure,
    GraphStructure,
    Structure,
    class_structures,
    sampled_permutations,
)

classes = st.lists(st.sampled_from(["SE", "FT", "PT"]), max_size=6).map(lambda tail: ["SE", *tail])
homes = st.sampled_from(["FT", "SE"])


@st.composite
def graphs(draw: st.DrawFn) -> GraphStructure:
    """A random graph of up to seven utterances: edges follow a line-up, so it has no cycle."""
    size = draw(st.integers(1, 7))
    line = [0, *draw(st.permutations(range(1, size)))]
    pairs = [(line[i], line[j]) for i in range(size) for j in range(i + 1, size)]
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=8)) if pairs else []
    return GraphStructure(size, chosen)


def is_valid(order: tuple[int, ...], names: list[str], pt_after: str) -> bool:
    """Check the four rules of section 3.1 one by one."""
    if order[0] != 0:
        return False
    heads = ("SE",) if pt_after == "SE" else ("SE", "FT")
    for u, name in enumerate(names):
        if name != "PT":
            continue
        head = max(v for v in range(u) if names[v] in heads)
        siblings = set()
        for w in range(head + 1, len(names)):
            if names[w] == "PT" and not any(names[x] in heads for x in range(head + 1, w)):
                siblings.add(w)
        if order.index(head) > order.index(u):
            return False
        if not set(order[order.index(head) + 1 : order.index(u)]) <= siblings:
            return False
    return True


def counted_adjacency(permutations: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    size = permutations.shape[1]
    adjacency = np.zeros((size, size))
    neighbours = permutations[:, :-1].ravel(), permutations[:, 1:].ravel()
    np.add.at(adjacency, neighbours, 1 / len(permutations))
    return adjacency


def agrees_with(structure: Structure, expected: list[tuple[int, ...]], seed: int) -> None:
    """Count, adjacency and spread of a structure are those of listed permutations."""
    listed = np.array(expected)
    assert structure.count == len(expected)
    np.testing.assert_allclose(structure.adjacency(), counted_adjacency(listed), atol=1e-12)
    scores = np.random.default_rng(seed).normal(size=(structure.size + 1, structure.size))
    totals = scores[-1, listed[:, 0]] + scores[listed[:, :-1], listed[:, 1:]].sum(axis=1)
    spread = structure.spread(scores)
    assert spread.mean == pytest.approx(totals.mean(), abs=1e-12)
    assert spread.sd == pytest.approx(totals.std(), abs=1e-7)
    assert (spread.minimum, spread.maximum) == pytest.approx((totals.min(), totals.max()))


@settings(deadline=None, max_examples=60)
@given(names=classes, home=homes, seed=st.integers(0, 99))
def test_classes_agree_with_the_rules_of_the_paper(names: list[str], home: Any, seed: int) -> None:
    every = itertools.permutations(range(len(names)))
    expected = [order for order in every if is_valid(order, names, home)]
    structure = ClassStructure.from_classes(names, pt_after=home)
    agrees_with(structure, expected, seed)
    assert [tuple(order) for order in structure.permutations().tolist()] == expected
    assert structure.keeps_original_order == (expected[0] == tuple(range(len(names))))
    # the closed forms are those of the sets
    np.testing.assert_allclose(Structure.adjacency(structure), structure.adjacency(), atol=1e-12)


@settings(deadline=None, max_examples=60)
@given(graph=graphs(), seed=st.integers(0, 99))
def test_graphs_agree_with_filtered_permutations(graph: GraphStructure, seed: int) -> None:
    expected = [
        order
        for order in itertools.permutations(range(graph.size))
        if all(order.index(v) < order.index(u) for v, u in graph.edges)
    ]
    agrees_with(graph, expected, seed)


def test_pairs_that_never_meet_may_miss_a_score() -> None:
    structure = ClassStructure.from_classes(["SE", "SE", "PT", "FT"])
    scores = np.where(np.vstack([structure.adjacency(), [1, 0, 0, 0]]) > 0, 1.0, np.nan)
    assert structure.spread(scores).maximum == pytest.approx(4.0)
    scores[0, 3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        structure.spread(scores)


def test_samples_are_uniform() -> None:
    names = ["SE", "PT", "PT", "FT", "SE", "PT", "PT", "FT"]
    structure = ClassStructure.from_classes(names)
    drawn = structure.sample(200 * structure.count, np.random.default_rng(1))
    distinct, frequencies = np.unique(drawn, axis=0, return_counts=True)
    np.testing.assert_array_equal(distinct, structure.permutations())
    assert chisquare(frequencies).pvalue > 0.01


def test_samples_of_others_are_uniform_and_without_the_original_order() -> None:
    structure = ClassStructure.from_classes(["SE", "FT", "FT", "SE", "PT"])
    rng, tally = np.random.default_rng(2), np.zeros(structure.count)
    every = structure.permutations().tolist()
    for _ in range(600):
        ranks = [every.index(order) for order in structure.sample_others(3, rng).tolist()]
        assert len(set(ranks)) == 3
        tally[ranks] += 1
    assert tally[0] == 0
    assert chisquare(tally[1:]).pvalue > 0.01
    assert len(structure.sample_others(100, rng)) == structure.count - 1


def test_sampled_permutations_start_with_the_original_order_and_follow_the_seed() -> None:
    turns = pd.DataFrame({"topic": "7", "turn": [1, 2, 3, 4], "class": ["SE", "FT", "SE", "PT"]})
    other = turns.assign(topic="8")
    structures = class_structures(pd.concat([turns, other]))
    drawn = sampled_permutations(structures, 2, seed=5)
    assert drawn["7"][0].tolist() == [0, 1, 2, 3]
    assert [len(rows) for rows in drawn.values()] == [2, 2]  # there is one other permutation
    alone = sampled_permutations(class_structures(other), 2, seed=5)
    np.testing.assert_array_equal(alone["8"], drawn["8"])
    invalid = class_structures(turns.assign(**{"class": ["SE", "SE", "FT", "PT"]}), pt_after="SE")
    with pytest.raises(ValueError, match="topic 7: the original order is not valid"):
        sampled_permutations(invalid, 2, seed=5)


def test_counts_past_64_bits_are_exact_and_can_be_sampled() -> None:
    structure = ClassStructure.from_classes(["SE"] * 30)
    assert structure.count == math.factorial(29)
    drawn = structure.sample_others(20, np.random.default_rng(3))
    assert len(np.unique(drawn, axis=0)) == 20
    assert (np.sort(drawn, axis=1) == np.arange(30)).all()
    assert structure.adjacency().sum(axis=0)[1:] == pytest.approx(1)


def test_two_chains_of_one_kind_and_one_of_another_follow_the_runs_test() -> None:
    """Each pattern of kinds is as likely: the Wald-Wolfowitz test gives mean and deviation."""
    size, third = 20, 6
    m, k = 2 * third, size - 1 - 2 * third
    ends = [1, 1 + third, 1 + m, size]
    edges: list[tuple[int, int]] = []
    for start, end in itertools.pairwise(ends):
        edges += itertools.pairwise(range(start, end))
    structure = GraphStructure(size, edges)
    expected = math.factorial(m + k) // math.factorial(third) ** 2 // math.factorial(k)
    assert structure.count == expected
    kind = np.arange(size) > m
    scores = np.vstack([kind[:, None] != kind[None, :], np.zeros(size)]).astype(float)
    scores[0] = 0.0  # the first utterance belongs to no chain
    spread = structure.spread(scores)
    variance = 2 * m * k * (2 * m * k - m - k) / ((m + k) ** 2 * (m + k - 1))
    assert spread.mean == pytest.approx(2 * m * k / (m + k))
    assert spread.sd**2 == pytest.approx(variance)
    assert (spread.minimum, spread.maximum) == pytest.approx((1, 2 * min(m, k)))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "first utterance must be self-explanatory"),
        (["FT", "SE"], "first utterance must be self-explanatory"),
        (["SE", "XX"], "class of utterance 2 must be SE, FT or PT, got 'XX'"),
    ],
)
def test_rejects_unknown_classes(names: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ClassStructure.from_classes(names)


def test_rejects_structures_without_permutations() -> None:
    with pytest.raises(ValueError, match="must not form a circle: "):
        GraphStructure(4, [(1, 2), (2, 3), (3, 1)])
    with pytest.raises(ValueError, match="circle"):
        GraphStructure(3, [(1, 0)])
    with pytest.raises(ValueError, match=r"utterances 0 to 2, got \(1, 5\)"):
        GraphStructure(3, [(1, 5)])
    with pytest.raises(ValueError, match="at most 20 utterances, got 21"):
        _ = GraphStructure(21, []).count
    with pytest.raises(ValueError, match="start with 0"):
        ClassStructure([[1], [0]])
    with pytest.raises(ValueError, match="shaped"):
        ClassStructure.from_classes(["SE"]).spread(np.zeros((3, 3)))
    turns = pd.DataFrame({"topic": ["1", "2"], "turn": [1, 1], "class": ["SE", "FT"]})
    with pytest.raises(ValueError, match="topic 2: the first utterance"):
        class_structures(turns)
