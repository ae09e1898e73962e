"""Tied scores: which ranks share one, means over them, and the orders that they leave open."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from equipoise.arrays import Floats, Integers, ranks, starts

_MOST = 20_000
"""Orders of a list that are all looked at; of more, so many are drawn:"""
_DRAWN = 1_000


def tied_spans(scores: ArrayLike, name: str = "a list") -> tuple[Integers, Integers]:
    """Return the first and the last rank (from 0) with the score of each rank.

    ``scores`` (shaped (lists, ranks)): falling along each list, NaN after its end, where each rank
    has its own span. ``name``: of the list in the error if scores rise.
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
    n_possible = choices.astype(np.float64).prod(axis=1)
    all_orders = n_possible <= most
    n_orders = np.where(all_orders, n_possible, drawn).astype(np.int64)
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


def linked_spans(
    lists: Sequence[Integers], first_ranks: Sequence[Integers], depth: int
) -> tuple[Integers, Integers, Integers]:
    """Lay out the documents of two lists whose ties are broken by one order of the documents.

    ``lists``: numbers of documents, -1 beyond the end. ``first_ranks``: of the tie of each rank.
    Documents are linked where they are in one tie that reaches into the first ``depth`` ranks of
    either list. Returns the linked documents side by side, and the first and last place of each,
    shaped (1, documents), for `orders_of_ties`.
    """
    groups: list[tuple[set[int], int]] = []  # documents, and how many places of them matter
    for documents, first_rank in zip(lists, first_ranks, strict=True):
        for begin in np.unique(first_rank[documents >= 0]):
            tie = set(documents[(first_rank == begin) & (documents >= 0)].tolist())
            if len(tie) == 1 or begin >= depth:
                continue
            n_read = min(depth - int(begin), len(tie))
            for members, n_members_read in [group for group in groups if group[0] & tie]:
                groups.remove((members, n_members_read))
                # Of one and the same tie, what is beyond the depth does not matter.
                n_read = max(n_read, n_members_read) if members == tie else len(members | tie)
                tie |= members
            groups.append((tie, n_read))
    linked: list[int] = []
    first_places: list[int] = []
    last_places: list[int] = []
    for members, n_read in groups:
        begin, end = len(linked), len(linked) + len(members)
        linked += sorted(members)
        first_places += [begin] * len(members)
        # Beyond those that matter, a document keeps its place.
        last_places += [end - 1] * n_read + list(range(begin + n_read, end))
    return np.array(linked), np.array([first_places]), np.array([last_places])
