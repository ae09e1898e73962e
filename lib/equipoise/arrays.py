"""Array types, and sums along segments: consecutive rows that belong together, as the nuggets of a conversation.

A table of many conversations is one long array; these functions work on all of its segments at
once. What they return for a segment depends on that segment's rows alone, to the last bit: scoring
conversations in another order, or in parts, gives the same numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]


def starts(*labels: ArrayLike) -> NDArray[np.intp]:
    """First row of each segment.

    ``*labels`` (shaped (rows,)): rows next to each other that agree in every key are one segment.
    Returns ndarray, shaped (segments,).
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

    ``first`` (shaped (segments,)): First row of each segment, ascending from 0 (see `starts`).
    ``rows``: number of rows in all. Returns ndarray, shaped (rows,).
    """
    first_row = np.asarray(first, dtype=np.intp)
    return np.arange(rows) - np.repeat(first_row, np.diff(first_row, append=rows))


def cumulative_sums(values: ArrayLike, first: ArrayLike) -> NDArray[np.float64]:
    """Cumulative sums that begin anew in each segment.

    All segments advance together, row by row: as many steps as the longest segment has rows. No sum
    leaves its segment, so nothing is added and taken away again, and no precision is lost.

    ``first`` (shaped (segments,)): First row of each segment, ascending from 0 (see `starts`).
    Returns ndarray, shaped like values.
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
        raise ValueError(
            f"a {what} is made of non-negative numbers, not all zero, with a sum that is a number"
        )
    return given / total


def ratio(part: ArrayLike, whole: ArrayLike, otherwise: float) -> Floats:
    """Divide, with a value for any division by zero."""
    over, under = np.broadcast_arrays(np.asarray(part, dtype=np.float64), whole)
    return np.divide(over, under, out=np.full(over.shape, otherwise), where=under != 0)


def all_differ(numbers: NDArray[Any]) -> bool:
    """Whether each number is there once."""
    ordered = np.sort(numbers)
    return not (ordered[1:] == ordered[:-1]).any()


def numbered(values: pd.Series) -> tuple[Integers, pd.Index]:
    """The number of each value among the distinct ones, in the order in which they come."""
    codes, distinct = pd.factorize(values, use_na_sentinel=False)
    return codes.astype(np.int64, copy=False), pd.Index(distinct)


def text_bytes(texts: Any, table: bytes | None = None) -> tuple[NDArray[np.uint8], Integers]:
    """The bytes of texts of Arrow, eight more behind them, and where each text begins and the last ends.

    ``table``: what to put in the place of each of the 256 bytes, if anything.
    """
    whole = pc.fill_null(pa.array(texts).cast(pa.large_string()), "")
    whole = whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole
    _, offsets, data = whole.buffers()
    bounds = np.frombuffer(offsets, np.int64, len(whole) + 1, 8 * whole.offset)
    held = bytes(memoryview(data)[bounds[0] : bounds[-1]]) if data else b""
    return np.frombuffer(held.translate(table) + bytes(8), dtype=np.uint8), bounds - bounds[0]


_BLOCK = 1 << 15
_BYTES = (np.uint64(1) << (8 * np.arange(8, dtype=np.uint64))) - np.uint64(1)
_KEPT = np.append(_BYTES, ~np.uint64(0))  # masks of the first 0 to 8 bytes of a word


def words_at(held: NDArray[np.uint8], begin: Integers, size: Integers) -> NDArray[np.uint64]:
    """Up to eight bytes from each place as one number, zeros behind the ``size`` of them that count."""
    words: NDArray[np.uint64] = np.ndarray(len(held) - 7, "<u8", held, strides=(1,))[begin]
    words &= _KEPT[np.minimum(size, 8)]
    return words


def _fingerprints(texts: pd.Series) -> NDArray[np.uint64]:
    """A number for each text, equal for equal texts, and for others next to never."""
    held, bounds = text_bytes(texts)
    found = np.empty(len(bounds) - 1, dtype=np.uint64)
    reach = min(
        int(np.diff(bounds).max(initial=0)), 64
    )  # the same for all, so that equal texts stay equal
    for first in range(0, len(found), _BLOCK):  # what is worked on stays in the processor's cache
        begin = bounds[first : first + _BLOCK + 1]
        left = np.diff(begin)
        mixed = left.astype(np.uint64)
        for step in range(0, reach, 8):
            mixed ^= words_at(
                held, np.minimum(begin[:-1] + step, len(held) - 8), np.maximum(left - step, 0)
            )
            mixed *= np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
        found[first : first + _BLOCK] = mixed
    return found


def each_once(*columns: pd.Series) -> bool:
    """Whether no two rows agree in every column."""
    mixed = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        mixed *= np.uint64(0xD6E8FEB86659FD93)
        whole = column.dtype.kind == "i"
        own = (
            _fingerprints(column)
            if column.dtype == "str"
            else column
            if whole
            else numbered(column)[0]
        )
        mixed += np.asarray(own).astype(np.uint64, copy=False)
    if all_differ(mixed):
        return True
    row = np.zeros(len(mixed), dtype=np.int64)
    for column in columns:  # the same, and no chance: they are compared letter by letter
        codes, others = numbered(column)
        row = numbered(pd.Series(row * len(others) + codes))[0]
    return all_differ(row)


def places(values: pd.Series, index: pd.Index) -> Integers:
    """Place of each value in an index that has each once, -1 where it is not there; texts make no objects."""
    if not (values.dtype == index.dtype == "str"):
        codes, distinct = numbered(values)
        return index.get_indexer(distinct)[codes].astype(np.int64)
    if len(index) > len(values):  # the fewer are put into a table, the more looked up in it
        codes, distinct = numbered(values)
        place = np.full(len(distinct), -1)
        number = pc.fill_null(
            pc.index_in(pa.array(index), value_set=pa.array(distinct)), -1
        ).to_numpy()
        known = np.flatnonzero(number >= 0)
        place[number[known]] = known
        return place[codes]
    found = pc.index_in(pa.array(values), value_set=pa.array(index))
    return pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)


def as_strings(text: str, rows: int) -> pd.Series:
    """One text in every row, without an object for each."""
    return (
        pa.chunked_array([pa.repeat(pa.scalar(text, pa.large_string()), rows)])
        .to_pandas()
        .astype("str")
    )
