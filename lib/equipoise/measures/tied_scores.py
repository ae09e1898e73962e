"""Tied scores: which ranks share one, means over them, and the orders that they leave open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from equipoise.arrays import Booleans, Floats, Integers, ranks, starts

_MOST = 20_000
"""Orders of a list that are all looked at; of more, so many are drawn:"""
_DRAWN = 1_000


def tied_spans(scores: ArrayLike, name: str = "a list") -> tuple[Integers, Integers]:
    """First and last rank (from 0) that have the score of each rank.

    ``scores`` (shaped (lists, ranks)): falling along each list, NaN beyond its end, where each rank
    stands by itself. ``name``: of what is refused if they rise.
    """
    values = np.asarray(scores, dtype=np.float64)
    steps = np.diff(values, axis=1)
    if (steps > 0).any():
        raise ValueError(f"scores of {name} rise along a list: give the best item first")
    n_ranks = values.shape[1]
    rank = np.broadcast_to(np.arange(n_ranks), values.shape)
    # Whether a rank is tied with the one before it; beyond the end is one that is not.
    tied = np.pad(steps == 0, ((0, 0), (1, 1)))
    tie_begins = np.where(tied[:, :-1], 0, rank)
    tie_ends = np.where(tied[:, 1:], n_ranks, rank)
    first_rank = np.maximum.accumulate(tie_begins, axis=1)
    last_rank = np.minimum.accumulate(tie_ends[:, ::-1], axis=1)[:, ::-1]
    return first_rank, last_rank


def mean_of_ties(values: ArrayLike, first_rank: Integers, last_rank: Integers) -> Floats:
    """The values (shaped (lists, ranks, ...)), each the mean of its tie.

    A sum over ranks, each with a weight of its own, then is the mean of the sums over all orders of
    the ties.
    """
    by_rank = np.asarray(values, dtype=np.float64)
    further_axes = by_rank.ndim - 2
    # Sums before each rank, and over all: those of a tie are the difference of two.
    sums = np.cumsum(np.pad(by_rank, ((0, 0), (1, 0)) + ((0, 0),) * further_axes), axis=1)
    row = np.arange(len(by_rank))[:, np.newaxis]
    widened = (...,) + (np.newaxis,) * further_axes
    means = (sums[row, last_rank + 1] - sums[row, first_rank]) / (last_rank - first_rank + 1)[
        widened
    ]
    return np.where((first_rank == last_rank)[widened], by_rank, means)


def _numbers_of_orders(choices: Integers, most: int, drawn: int) -> tuple[Booleans, Integers]:
    """Whether all orders of each list are looked at, and how many; choices: (lists, ranks)."""
    n_possible = choices.astype(np.float64).prod(axis=1)
    all_orders = n_possible <= most
    return all_orders, np.where(all_orders, n_possible, drawn).astype(np.int64)


def orders_of_ties(
    first_rank: Integers,
    last_rank: Integers,
    depth: int,
    *,
    most: int = _MOST,
    drawn: int = _DRAWN,
    seed: int = 0,
) -> tuple[Integers, Integers]:
    """The orders that ties leave open in the first ``depth`` ranks of each list.

    ``first_rank``, ``last_rank``: of `tied_spans`. Returns the list of each order, ascending, and
    the places in that list of the documents that it has at the first ranks, shaped (orders, up to
    depth). A list with up to ``most`` orders has each once; one with more has so many drawn by
    ``seed``, each as likely as any other.
    """
    width = min(depth, first_rank.shape[1])
    reach = int(last_rank[:, :width].max(initial=0)) + 1
    choices = last_rank[:, :width] - np.arange(width) + 1  # documents that can be at each rank
    all_orders, n_orders = _numbers_of_orders(choices, most, drawn)
    list_of_order = np.repeat(np.arange(len(first_rank)), n_orders)
    number = ranks(starts(list_of_order), len(list_of_order)).astype(np.int64)
    random = np.random.default_rng(seed).random((drawn, width))
    is_counted, draw = all_orders[list_of_order], number % drawn

    places = np.broadcast_to(np.arange(reach), (len(list_of_order), reach)).copy()
    order = np.arange(len(list_of_order))
    # Fisher and Yates: each rank takes one of those that are left of its tie. The number of an
    # order, read digit by digit, says which, so that each order comes once; or chance does.
    for rank in range(width):
        remaining = choices[list_of_order, rank]
        by_chance = (random[draw, rank] * remaining).astype(np.int64)
        chosen = rank + np.where(is_counted, number % remaining, by_chance)
        number //= remaining
        places[order, rank], places[order, chosen] = places[order, chosen], places[order, rank]
    return list_of_order, places[:, :width]


def blocks_of_orders(last_rank: Integers, most: int) -> Iterator[Integers]:
    """Lists, some at a time, of which `orders_of_ties` has about so many orders together."""
    choices = last_rank - np.arange(last_rank.shape[1]) + 1
    _, n_orders = _numbers_of_orders(choices, _MOST, _DRAWN)
    block = np.cumsum(n_orders) // most
    yield from np.split(np.arange(len(last_rank)), np.flatnonzero(np.diff(block)) + 1)


def linked_places(
    lists: Sequence[Integers], spans: Sequence[tuple[Integers, Integers]], depth: int
) -> tuple[Integers, list[Integers]]:
    """Places of documents whose ties in several lists are broken by one order of the documents.

    ``lists``: numbers of documents of the one and the other list of each pair, shaped (pairs,
    ranks), -1 beyond the end. ``spans``: of `tied_spans`. Documents are linked where they share a
    tie that reaches into the first ``depth`` ranks of either list; those of a pair stand side by
    side. Returns the last place, shaped (pairs, places), from which the document at each place may
    be taken, for `orders_of_ties`; and the place of each document of each list, shaped like it,
    behind the last where it is not linked.
    """
    nodes, pair_of_node = _numbered_documents(lists)
    group, n_free = _linked_groups(nodes, spans, depth, len(pair_of_node))
    size = np.bincount(group)
    linked = np.flatnonzero(size[group] > 1)
    linked = linked[np.lexsort((group[linked], pair_of_node[linked]))]
    pair, group = pair_of_node[linked], group[linked]
    place = ranks(starts(pair), len(linked))
    place_in_group = ranks(starts(group), len(linked))
    last_of_group = place - place_in_group + size[group] - 1

    n_places = int(place.max(initial=-1)) + 1
    last_place = np.tile(np.arange(n_places), (len(lists[0]), 1))
    last_place[pair, place] = np.where(place_in_group < n_free[group], last_of_group, place)
    place_of_node = np.full(len(pair_of_node) + 1, n_places)
    place_of_node[linked] = place
    return last_place, [place_of_node[numbers] for numbers in nodes]


def _numbered_documents(lists: Sequence[Integers]) -> tuple[list[Integers], Integers]:
    """The documents of each pair numbered, -1 for none, and the pair of each number."""
    n_documents = max(documents.max(initial=0) for documents in lists) + 1
    pair = np.arange(len(lists[0]))[:, np.newaxis]
    keys = [pair * n_documents + documents for documents in lists]
    is_document = [documents >= 0 for documents in lists]
    present = [key[is_there] for key, is_there in zip(keys, is_document, strict=True)]
    distinct = np.unique(np.concatenate(present))
    nodes = []
    for key, is_there in zip(keys, is_document, strict=True):
        nodes.append(np.where(is_there, np.searchsorted(distinct, key), -1))
    return nodes, distinct // n_documents


def _linked_groups(
    nodes: Sequence[Integers], spans: Sequence[tuple[Integers, Integers]], depth: int, n_nodes: int
) -> tuple[Integers, Integers]:
    """The group of each node, and how many of the first places of each group say anything."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ends, sizes, reaches = [], [], []
    for numbers, (first_rank, last_rank) in zip(nodes, spans, strict=True):
        row, rank = np.nonzero((first_rank < last_rank) & (first_rank < depth))
        begin = first_rank[row, rank]
        ends.append(np.stack([numbers[row, begin], numbers[row, rank]]))
        sizes.append(last_rank[row, rank] - begin + 1)
        reaches.append(depth - begin)
    links = np.concatenate(ends, axis=1)
    graph = coo_array((np.ones(links.shape[1]), links), shape=(n_nodes, n_nodes))
    _, group = connected_components(graph, directed=False)

    size = np.bincount(group)
    smallest_tie, reach = size.copy(), np.zeros_like(size)
    np.minimum.at(smallest_tie, group[links[0]], np.concatenate(sizes))
    np.maximum.at(reach, group[links[0]], np.concatenate(reaches))
    # Where a group is one and the same tie, what comes behind the depth does not matter.
    n_free = np.where(smallest_tie == size, np.minimum(reach, size), size)
    return group, n_free
