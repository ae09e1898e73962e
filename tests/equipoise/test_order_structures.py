"""Guards permutations section 3.1: counts, ranks, samples and probabilities against brute force."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from equipoise.orders import lattices
from equipoise.orders.class_structures import ClassStructure
from equipoise.orders.structures import GraphStructure, Structure

classes = st.lists(st.sampled_from(["SE", "FT", "PT"]), max_size=6).map(lambda tail: ["SE", *tail])
homes = st.sampled_from(["ft", "se"])


@st.composite
def graphs(draw: st.DrawFn) -> GraphStructure:
    """A random graph of up to seven utterances: edges follow a line-up, so it has no cycle."""
    size = draw(st.integers(1, 7))
    fixed_first = draw(st.booleans())
    line = draw(st.permutations(range(size)))
    if fixed_first:
        line = [0, *(u for u in line if u != 0)]
    pairs = [(line[i], line[j]) for i in range(size) for j in range(i + 1, size)]
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=8)) if pairs else []
    return GraphStructure(size, chosen, fixed_first=fixed_first)


def valid_by_definition(order: tuple[int, ...], names: list[str], pt_behind_ft: str) -> bool:
    """Check the four rules of section 3.1 one by one."""
    if order[0] != 0:
        return False
    for u, name in enumerate(names):
        if name != "PT":
            continue
        owners = ("SE",) if pt_behind_ft == "se" else ("SE", "FT")
        owner = max(v for v in range(u) if names[v] in owners)
        siblings = {
            w for w in range(owner + 1, len(names)) if names[w] == "PT" and not any(
                names[x] in owners for x in range(owner + 1, w)
            )
        }  # fmt: skip
        between = (
            order[order.index(owner) + 1 : order.index(u)]
            if order.index(owner) < order.index(u)
            else None
        )
        if between is None or not set(between) <= siblings:
            return False
    return True


def probabilities(
    orders: np.ndarray[Any, Any], size: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Adjacency and position frequencies of a stack of orders, by counting."""
    adjacency, positions = np.zeros((size, size)), np.zeros((size, size))
    np.add.at(adjacency, (orders[:, :-1].ravel(), orders[:, 1:].ravel()), 1 / len(orders))
    np.add.at(positions, (orders.ravel(), np.tile(np.arange(size), len(orders))), 1 / len(orders))
    return adjacency, positions


def agrees_with(structure: Structure, expected: list[tuple[int, ...]]) -> None:
    assert structure.count == len(expected)
    orders = structure.orders()
    assert [tuple(order) for order in orders.tolist()] == sorted(expected)
    np.testing.assert_array_equal(structure.rank(orders), np.arange(len(expected)))
    adjacency, positions = probabilities(orders, structure.size)
    np.testing.assert_allclose(structure.adjacency(), adjacency, rtol=0, atol=1e-12)
    np.testing.assert_allclose(structure.positions(), positions, rtol=0, atol=1e-12)


@settings(deadline=None, max_examples=60)
@given(names=classes, home=homes)
def test_classes_agree_with_the_rules_of_the_paper(names: list[str], home: Any) -> None:
    every = itertools.permutations(range(len(names)))
    expected = [order for order in every if valid_by_definition(order, names, home)]
    agrees_with(ClassStructure.from_classes(names, pt_behind_ft=home), expected)


@settings(deadline=None, max_examples=60)
@given(graph=graphs())
def test_graphs_agree_with_filtered_permutations(graph: GraphStructure) -> None:
    expected = [
        order
        for order in itertools.permutations(range(graph.size))
        if all(order.index(v) < order.index(u) for v, u in graph.edges)
    ]
    agrees_with(graph, expected)


@settings(deadline=None, max_examples=30)
@given(names=classes, home=homes, seed=st.integers(0, 99))
def test_score_range_agrees_with_every_order(names: list[str], home: Any, seed: int) -> None:
    structure = ClassStructure.from_classes(names, pt_behind_ft=home)
    rng = np.random.default_rng(seed)
    pairs, first = (
        rng.normal(size=(structure.size, structure.size)),
        rng.normal(size=structure.size),
    )
    assert_range(structure, pairs, first)


@settings(deadline=None, max_examples=30)
@given(graph=graphs(), seed=st.integers(0, 99))
def test_score_range_of_graphs_agrees_with_every_order(graph: GraphStructure, seed: int) -> None:
    rng = np.random.default_rng(seed)
    assert_range(graph, rng.normal(size=(graph.size, graph.size)), rng.normal(size=graph.size))


def assert_range(structure: Structure, pairs: Any, first: Any) -> None:
    orders = structure.orders()
    totals = first[orders[:, 0]] + pairs[orders[:, :-1], orders[:, 1:]].sum(axis=1)
    found = structure.score_range(pairs, first)
    assert found.mean == pytest.approx(totals.mean(), abs=1e-12)
    assert structure.mean_score(pairs, first) == pytest.approx(totals.mean(), abs=1e-12)
    assert found.sd == pytest.approx(totals.std(), abs=1e-7)
    for bound, order, extreme in [
        (found.minimum, found.worst, totals.min()),
        (found.maximum, found.best, totals.max()),
    ]:
        assert bound == pytest.approx(extreme, abs=1e-12)
        assert structure.is_valid([order]).all()
        assert totals[int(structure.rank([order])[0])] == pytest.approx(bound, abs=1e-12)


def test_extremes_are_the_same_some_sets_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    structure = GraphStructure(8, [(1, 2), (3, 4), (3, 5)], fixed_first=False)
    pairs = np.random.default_rng(1).integers(0, 3, (8, 8)).astype(float)  # with ties
    whole = structure.score_range(pairs)
    monkeypatch.setattr(lattices, "_NUMBERS_AT_ONCE", 500)
    assert structure.score_range(pairs) == whole
    orders = structure.orders()
    totals = pairs[orders[:, :-1], orders[:, 1:]].sum(axis=1)
    assert whole.worst == tuple(
        orders[totals.argmin()].tolist()
    )  # the first of those that attain it
    assert whole.best == tuple(orders[totals.argmax()].tolist())
    np.testing.assert_allclose(structure.opening(), structure.positions()[:, 0])


def test_pairs_that_never_meet_may_lack_a_score() -> None:
    structure = ClassStructure.from_classes(["SE", "SE", "PT", "FT"])
    pairs = np.where(structure.adjacency() > 0, 1.0, np.nan)
    assert structure.score_range(pairs).maximum == pytest.approx(3.0)
    pairs[0, 3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        structure.score_range(pairs)


SAMPLED: list[tuple[str, Structure]] = [
    ("classes", ClassStructure.from_classes(["SE", "PT", "PT", "FT", "SE", "PT", "PT", "FT"])),
    ("graph", GraphStructure(6, [(1, 2), (1, 3), (4, 5)])),
]


@pytest.mark.parametrize("structure", [s for _, s in SAMPLED], ids=[name for name, _ in SAMPLED])
def test_samples_are_uniform(structure: Structure) -> None:
    drawn = structure.sample(200 * structure.count, np.random.default_rng(1))
    frequencies = np.bincount(structure.rank(drawn).astype(int), minlength=structure.count)
    assert chisquare(frequencies).pvalue > 0.01
    adjacency, positions = probabilities(drawn, structure.size)
    np.testing.assert_allclose(structure.adjacency(), adjacency, atol=0.03)
    np.testing.assert_allclose(structure.positions(), positions, atol=0.03)


def test_distinct_samples_are_uniform_sets_without_the_excluded() -> None:
    structure = GraphStructure(5, [(1, 2)])
    original = [[0, 1, 2, 3, 4]]
    rng, tally = np.random.default_rng(2), np.zeros(structure.count)
    for _ in range(600):
        ranks = structure.rank(structure.sample(5, rng, distinct=True, exclude=original)).astype(
            int
        )
        assert len(set(ranks)) == 5
        tally[ranks] += 1
    barred = int(structure.rank(original)[0])
    assert tally[barred] == 0
    assert chisquare(np.delete(tally, barred)).pvalue > 0.01
    everything = structure.sample(structure.count, rng, distinct=True)
    assert sorted(structure.rank(everything)) == list(range(structure.count))


def test_the_same_seed_gives_the_same_orders() -> None:
    for _, structure in SAMPLED:
        one, two = (structure.sample(50, np.random.default_rng(5)) for _ in range(2))
        np.testing.assert_array_equal(one, two)
        assert structure.is_valid(one).all()


def test_counts_past_64_bits_are_exact_and_can_be_ranked() -> None:
    structure = ClassStructure.from_classes(["SE"] * 30)
    assert structure.count == math.factorial(29)
    drawn = structure.sample(20, np.random.default_rng(3), distinct=True)
    ranks = structure.rank(drawn)
    assert max(ranks) > 2**63
    np.testing.assert_array_equal(structure.unrank(ranks), drawn)
    last = structure.unrank([structure.count - 1])[0]
    assert last.tolist() == [0, *range(29, 0, -1)]
    chains = GraphStructure(41, [(u, u + 2) for u in range(1, 39)])
    assert chains.count == math.comb(40, 20)
    np.testing.assert_allclose(chains.positions().sum(axis=0), 1.0, atol=1e-12)


def test_a_large_class_structure_needs_no_enumeration() -> None:
    structure = ClassStructure([[0, 1], *([u, u + 1, u + 2] for u in range(2, 59, 3))])
    adjacency, positions = structure.adjacency(), structure.positions()
    assert structure.count == math.factorial(19) * 2**19
    np.testing.assert_allclose(adjacency.sum(axis=0)[1:], 1.0, atol=1e-12)
    np.testing.assert_allclose([positions.sum(axis=0), positions.sum(axis=1)], 1.0, atol=1e-12)


@pytest.mark.parametrize("size", [21, 22, 30, 43, 62])
def test_long_conversations_of_three_chains_follow_the_runs_test(size: int) -> None:
    """Two chains of one kind, one of another: each pattern is as likely (Wald-Wolfowitz test)."""
    third = size // 3
    m, k = 2 * third, size - 1 - 2 * third
    ends = [1, 1 + third, 1 + m, size]
    chains = [
        edge
        for start, end in itertools.pairwise(ends)
        for edge in itertools.pairwise(range(start, end))
    ]
    structure = GraphStructure(size, chains)
    assert structure.count == math.factorial(m + k) // math.factorial(third) ** 2 // math.factorial(
        k
    )
    kind = np.arange(size) > m
    pairs = (kind[:, None] != kind[None, :]).astype(float)
    pairs[0] = 0.0  # the first utterance belongs to no chain
    found = structure.score_range(pairs)
    assert found.mean == pytest.approx(2 * m * k / (m + k))
    assert found.sd**2 == pytest.approx(
        2 * m * k * (2 * m * k - m - k) / ((m + k) ** 2 * (m + k - 1))
    )
    assert (found.minimum, found.maximum) == pytest.approx((1, 2 * min(m, k)))
    assert_ranks_both_ways(structure)


@pytest.mark.parametrize("size", range(21, 63))
def test_long_conversations_of_classes_are_counted_ranked_and_averaged(size: int) -> None:
    names = ["SE", *(["SE", "PT", "PT", "FT", "PT"] * 13)][:size]
    structure = ClassStructure.from_classes(names)
    blocks = sum(name != "PT" for name in names[1:])
    twice = sum(names[u : u + 3] == ["SE", "PT", "PT"] for u in range(1, size))
    assert structure.count == math.factorial(blocks) * 2**twice
    heads = np.array([name != "PT" for name in names], dtype=float)
    assert structure.mean_score(np.tile(heads, (size, 1))) == pytest.approx(blocks)
    first, second = (
        1,
        names.index("FT"),
    )  # the end of any block stands before a given other head with probability 1 / b
    before = structure.adjacency()[[first, first + 1, first + 2], second]
    assert before.tolist() == pytest.approx([0, 1 / blocks / 2, 1 / blocks / 2])
    assert_ranks_both_ways(structure)


@pytest.mark.parametrize("blocks", [3, 5])
def test_long_blocks_have_exact_extremes(blocks: int) -> None:
    structure = ClassStructure.from_classes(
        ["SE", *(["SE", *["PT"] * 6] * blocks)]
    )  # 22 and 36 utterances
    later = np.triu(
        np.ones((structure.size, structure.size))
    )  # one for each step that goes on in the script's order
    found = structure.score_range(later)
    assert (found.minimum, found.maximum) == pytest.approx(
        (1 + blocks, structure.size - 1)
    )  # to heads, to followers
    assert found.best == tuple(range(structure.size))


def assert_ranks_both_ways(structure: Structure) -> None:
    ranks = [0, structure.count // 3, structure.count - 1]
    orders = structure.unrank(ranks)
    assert structure.is_valid(orders).all()
    assert structure.rank(orders).tolist() == ranks
    drawn = structure.sample(
        5, np.random.default_rng(structure.size), distinct=True, exclude=orders[:1]
    )
    assert len({*structure.rank(drawn).tolist(), 0}) == 6


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "without a first utterance"),
        (["FT", "SE"], "first utterance must be self-explanatory"),
        (["SE", "XX", "PT", "se"], "'XX' at utterance 2, 'se' at utterance 4"),
    ],
)
def test_refuses_classes_that_are_none(names: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ClassStructure.from_classes(names)


def test_refuses_graphs_that_cannot_be_ordered() -> None:
    with pytest.raises(
        ValueError,
        match=r"circle: 1 -> 2 -> 3 -> 1|circle: 2 -> 3 -> 1 -> 2|circle: 3 -> 1 -> 2 -> 3",
    ):
        GraphStructure(4, [(1, 2), (2, 3), (3, 1)])
    with pytest.raises(ValueError, match="circle"):
        GraphStructure(3, [(1, 0)])
    with pytest.raises(ValueError, match=r"0 to 2 are wanted, found \[5\]"):
        GraphStructure(3, [(1, 5)])
    with pytest.raises(ValueError, match="more than 1,000 sets"):
        _ = GraphStructure(20, [], limit=1000).count
    with pytest.raises(ValueError, match="1 to 62 utterances, found 63"):
        GraphStructure(63, [])


def test_refuses_orders_ranks_and_samples_that_do_not_exist() -> None:
    structure = ClassStructure.from_classes(["SE", "SE", "PT", "FT"])
    with pytest.raises(ValueError, match=r"order number 1 is not valid here: \[0, 2, 1, 3\]"):
        structure.rank([[0, 1, 2, 3], [0, 2, 1, 3]])
    assert not structure.is_valid([[0, 1, 1, 3], [0, 1, 2, 9], [0, 1, 2, -1]]).any()
    with pytest.raises(ValueError, match="shaped"):
        structure.is_valid([[0, 1, 2]])
    with pytest.raises(ValueError, match="0 to 1, found 2 to 2"):
        structure.unrank([2])
    with pytest.raises(ValueError, match="3 different orders wanted, but there are only 2"):
        structure.sample(3, np.random.default_rng(0), distinct=True)
    with pytest.raises(ValueError, match="pass distinct=True"):
        structure.sample(1, np.random.default_rng(0), exclude=[[0, 1, 2, 3]])
    with pytest.raises(ValueError, match="more than the limit of 1"):
        structure.orders(limit=1)
    with pytest.raises(ValueError, match="open with 0"):
        ClassStructure([[1], [0]])
    with pytest.raises(ValueError, match="'ft' or 'se'"):
        ClassStructure.from_classes(["SE"], pt_behind_ft="any")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="shaped"):
        structure.mean_score(np.zeros((3, 3)))
