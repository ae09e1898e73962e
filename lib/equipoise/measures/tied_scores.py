"""Tied scores: which ranks share one, means over them, and the orders that they leave open."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from equipoise.arrays import Floats, Integers, ranks, starts


def tied_spans(scores: ArrayLike, what: str = "a list") -> tuple[Integers, Integers]:
    """First and last rank (from 0) that have the score of each rank; each rank by itself where lists have ended.

    ``scores`` (shaped (lists, ranks)): falling along each list, NaN beyond its end. ``what``: named
    if they rise.
    """
    values = np.asarray(scores, dtype=np.float64)
    rise = np.diff(values, axis=1)
    if (rise > 0).any():
        raise ValueError(f"scores of {what} rise along a list: give the best item first")
    goes_on = np.pad(rise == 0, ((0, 0), (1, 1)))
    place = np.broadcast_to(np.arange(values.shape[1]), values.shape)
    first = np.maximum.accumulate(np.where(goes_on[:, :-1], 0, place), axis=1)
    last = np.where(goes_on[:, 1:], values.shape[1], place)
    return first, np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]


def mean_of_ties(values: ArrayLike, first: Integers, last: Integers) -> Floats:
    """The values (shaped (lists, ranks, ...)), each the mean of its tie; those that nothing is tied with as they are.

    A sum over ranks, each with a weight of its own, then is the mean of the sums over all orders of
    the ties.
    """
    given = np.asarray(values, dtype=np.float64)
    total = np.cumsum(np.pad(given, ((0, 0), (1, 0)) + ((0, 0),) * (given.ndim - 2)), axis=1)
    row = np.arange(len(given))[:, np.newaxis]
    extra = (...,) + (np.newaxis,) * (given.ndim - 2)
    means = (total[row, last + 1] - total[row, first]) / (last - first + 1)[extra]
    return np.where((first == last)[extra], given, means)


def orders_of_ties(
    first: Integers,
    last: Integers,
    depth: int,
    *,
    most: int = 20_000,
    drawn: int = 1_000,
    seed: int = 0,
) -> tuple[Integers, Integers]:
    """The orders that ties leave open in the first ``depth`` ranks of each list.

    ``first``, ``last``: of `tied_spans`. Returns the list of each order, ascending, and the places
    in that list of the documents that it has at the first ranks, shaped (orders, up to depth). A
    list with up to ``most`` orders has each once; one with more has so many drawn by ``seed``, each
    as likely as any other.
    """
    width = min(depth, first.shape[1])
    reach = int(last[:, :width].max(initial=0)) + 1
    choices = last[:, :width] - np.arange(width) + 1
    orders = choices.astype(np.float64).prod(axis=1)
    times = np.where(orders <= most, orders, drawn).astype(np.int64)
    own = np.repeat(np.arange(len(first)), times)
    code = ranks(starts(own), len(own)).astype(np.int64)
    chance = np.random.default_rng(seed).random((drawn, width))
    every, draw = (orders <= most)[own], code % drawn
    places = np.broadcast_to(np.arange(reach), (len(own), reach)).copy()
    row = np.arange(len(own))
    for rank in range(
        width
    ):  # Fisher and Yates: each rank takes one of those that are left of its tie
        left = choices[own, rank]
        taken = rank + np.where(every, code % left, (chance[draw, rank] * left).astype(np.int64))
        code //= left
        places[row, rank], places[row, taken] = places[row, taken], places[row, rank]
    return own, places[:, :width]
