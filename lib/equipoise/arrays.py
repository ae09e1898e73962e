"""Array types, and sums along segments: consecutive rows that belong together, as the nuggets of a conversation.

A table of many conversations is one long array; these functions work on all of its segments at once. What they return
for a segment depends on that segment's rows alone, to the last bit: scoring conversations in another order, or in
parts, gives the same numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]


def starts(*labels: ArrayLike) -> NDArray[np.intp]:
    """First row of each segment.

    ``*labels`` (shaped (rows,)): rows next to each other that agree in every key are one segment. Returns ndarray,
    shaped (segments,).
    """
    keys: list[NDArray[Any]] = [np.asarray(label) for label in labels]
    if len(keys[0]) == 0:
        return np.zeros(0, dtype=np.intp)
    differs = keys[0][1:] != keys[0][:-1]
    for key in keys[1:]:
        differs |= key[1:] != key[:-1]
    return np.concatenate(([0], np.flatnonzero(differs) + 1))


def ranks(first: ArrayLike, rows: int) -> NDArray[np.intp]:
    """Position of each row within its segment, from 0.

    ``first`` (shaped (segments,)): First row of each segment, ascending from 0 (see `starts`). ``rows``: number of
    rows in all. Returns ndarray, shaped (rows,).
    """
    first_row = np.asarray(first, dtype=np.intp)
    return np.arange(rows) - np.repeat(first_row, np.diff(first_row, append=rows))


def cumulative_sums(values: ArrayLike, first: ArrayLike) -> NDArray[np.float64]:
    """Cumulative sums that begin anew in each segment.

    All segments advance together, row by row: as many steps as the longest segment has rows. No sum leaves its segment,
    so nothing is added and taken away again, and no precision is lost.

    ``first`` (shaped (segments,)): First row of each segment, ascending from 0 (see `starts`). Returns ndarray,
    shaped like values.
    """
    sums = np.array(values, dtype=np.float64)
    begin = np.asarray(first, dtype=np.intp)
    length = np.diff(begin, append=len(sums))
    for rank in range(1, int(length.max(initial=0))):
        reach = length > rank
        length, begin = length[reach], begin[reach]
        row = begin + rank
        so_far = sums.take(row, axis=0)
        so_far += sums.take(row - 1, axis=0)
        sums[row] = so_far
    return sums


def normalised(numbers: ArrayLike, groups: int, what: str = "target") -> Floats:
    """Non-negative numbers, one for each group, divided by their sum: one rule for every target and weight."""
    given = np.array(numbers, dtype=np.float64)
    if given.shape != (groups,):
        raise ValueError(f"{given.size} numbers in a {what} for {groups} groups")
    with np.errstate(over="ignore"):
        total = given.sum()
    if not ((given >= 0).all() and 0 < total < np.inf):
        raise ValueError(f"a {what} is made of non-negative numbers, not all zero, with a sum that is a number")
    return given / total


def ratio(part: ArrayLike, whole: ArrayLike, otherwise: float) -> Floats:
    """Divide, with a value for any division by zero."""
    over, under = np.broadcast_arrays(np.asarray(part, dtype=np.float64), whole)
    return np.divide(over, under, out=np.full(over.shape, otherwise), where=under != 0)
