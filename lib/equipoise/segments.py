"""Sums along segments: runs of consecutive rows that belong together, such as the nuggets of a conversation.

A table of many conversations is one long array; these functions work on all of its segments at once. What they return
for a segment depends on that segment's rows alone, to the last bit: scoring conversations in another order, or in
parts, gives the same numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["cumulative_sums", "ranks", "starts"]


def starts(*labels: ArrayLike) -> NDArray[np.intp]:
    """First row of each segment.

    Parameters
    ----------
    *labels : array_like, shaped (rows,)
        Rows next to each other that agree in every key are one segment.

    Returns
    -------
    ndarray, shaped (segments,)

    Examples
    --------
    >>> starts([7, 7, 4, 4, 4, 7])
    array([0, 2, 5])
    >>> starts([7, 7, 4, 4, 4, 7], [1, 2, 1, 1, 1, 1])
    array([0, 1, 2, 5])
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

    Parameters
    ----------
    first : array_like, shaped (segments,)
        First row of each segment, ascending from 0 (see `starts`).
    rows : int
        Number of rows in all.

    Returns
    -------
    ndarray, shaped (rows,)

    Examples
    --------
    >>> ranks([0, 2, 5], 6)
    array([0, 1, 0, 1, 2, 0])
    """
    first_row = np.asarray(first, dtype=np.intp)
    return np.arange(rows) - np.repeat(first_row, np.diff(first_row, append=rows))


def cumulative_sums(values: ArrayLike, first: ArrayLike) -> NDArray[np.float64]:
    """Cumulative sums that begin anew in each segment.

    All segments advance together, row by row: as many steps as the longest segment has rows. No sum leaves its segment,
    so nothing is added and taken away again, and no precision is lost.

    Parameters
    ----------
    values : array_like, shaped (rows,) or (rows, columns)
    first : array_like, shaped (segments,)
        First row of each segment, ascending from 0 (see `starts`).

    Returns
    -------
    ndarray, shaped like values

    Examples
    --------
    >>> cumulative_sums([1.0, 2, 3, 4, 5, 6], [0, 2, 5])
    array([ 1.,  3.,  3.,  7., 12.,  6.])
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
