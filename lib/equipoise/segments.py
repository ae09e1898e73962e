"""Sums along segments: runs of consecutive rows that belong together, such as the nuggets of a conversation.

A table of many conversations is one long array; these functions work on all of its segments at once. What they return
for a segment depends on that segment's rows alone, to the last bit: scoring conversations in another order, or in
parts, gives the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["cumulative_sums", "ranks", "starts", "totals"]


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


def _steps(first: ArrayLike, rows: int) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """For each rank from 1: the segments that reach it, and their rows at that rank."""
    begin = np.asarray(first, dtype=np.intp)
    length = np.diff(begin, append=rows)
    segment = np.arange(len(begin))
    for rank in range(1, int(length.max(initial=0))):
        reach = length > rank
        segment, length, begin = segment[reach], length[reach], begin[reach]
        yield segment, begin + rank


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
    for _, row in _steps(first, len(sums)):
        sums[row] += sums[row - 1]
    return sums


def totals(values: ArrayLike, first: ArrayLike) -> NDArray[np.float64]:
    """Sum of each segment, to the bit the last of its `cumulative_sums`.

    Parameters
    ----------
    values : array_like, shaped (rows,) or (rows, columns)
    first : array_like, shaped (segments,)
        First row of each segment, ascending from 0 (see `starts`).

    Returns
    -------
    ndarray, shaped (segments,) or (segments, columns)

    Examples
    --------
    >>> totals([1.0, 2, 3, 4, 5, 6], [0, 2, 5])
    array([ 3., 12.,  6.])
    """
    rows = np.asarray(values, dtype=np.float64)
    sums: NDArray[np.float64] = rows[np.asarray(first, dtype=np.intp)]
    for segment, row in _steps(first, len(rows)):
        sums[segment] += rows[row]
    return sums
