"""Array types, and sums along segments: consecutive rows that belong together.

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
    first_rows = np.asarray(first, dtype=np.intp)
    positions = np.arange(rows)
    positions -= np.repeat(first_rows, np.diff(first_rows, append=rows))
    return positions


def cumulative_sums(values: ArrayLike, first: ArrayLike) -> NDArray[np.float64]:
    """Compute cumulative sums that restart in each segment.

    All segments advance together, row by row: as many steps as the longest segment has rows. No sum
    leaves its segment, so nothing is added and taken away again, and no precision is lost.

    ``first`` (shaped (segments,)): First row of each segment, ascending from 0 (see `starts`).
    Returns ndarray, shaped like values.
    """
    sums = np.array(values, dtype=np.float64)
    begins = np.asarray(first, dtype=np.intp)
    lengths = np.diff(begins, append=len(sums))
    for rank in range(1, int(lengths.max(initial=0))):
        # Only the segments that are long enough take part in this step.
        goes_on = lengths > rank
        lengths, begins = lengths[goes_on], begins[goes_on]
        rows = begins + rank
        sums[rows] = sums.take(rows, axis=0) + sums.take(rows - 1, axis=0)
    return sums


def normalised(numbers: ArrayLike, groups: int, name: str = "target") -> Floats:
    """Non-negative numbers, one for each group, divided by their sum: for targets and weights."""
    shares = np.array(numbers, dtype=np.float64)
    if shares.shape != (groups,):
        raise ValueError(f"{name} must have {groups} numbers, got {shares.size}")
    with np.errstate(over="ignore"):
        total = shares.sum()
    if not (shares >= 0).all() or not 0 < total < np.inf:
        raise ValueError(f"{name} must have non-negative numbers with a sum above 0")
    return shares / total


def ratio(numerator: ArrayLike, denominator: ArrayLike, otherwise: float) -> Floats:
    """Divide, with a value for any division by zero."""
    over, under = np.broadcast_arrays(np.asarray(numerator, dtype=np.float64), denominator)
    quotients = np.full(over.shape, otherwise)
    return np.divide(over, under, out=quotients, where=under != 0)


def sums_by_case(cases: ArrayLike, values: ArrayLike, n_cases: int) -> Floats:
    """Sum of the values of each case; ``cases`` and ``values`` are shaped (items,)."""
    numbers = np.asarray(cases, dtype=np.intp)
    return np.bincount(numbers, np.asarray(values), n_cases).astype(np.float64)


def numbered(values: pd.Series) -> tuple[Integers, pd.Index]:
    """Number of each value among the distinct ones, which come in the order of their first rows."""
    codes, distinct = pd.factorize(values, use_na_sentinel=False)
    return codes.astype(np.int64, copy=False), pd.Index(distinct)


def places(values: pd.Series, index: pd.Index) -> Integers:
    """Return the position of each value in an index of distinct values; -1 if missing."""
    if not (values.dtype == index.dtype == "str"):
        return index.get_indexer(values).astype(np.int64)
    # Arrow compares the texts where they lie; pandas would make a Python object of each. The index
    # may be a whole collection: the values that are looked for take a smaller table.
    encoded = pa.array(values).dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    found = pc.index_in(pa.array(index), value_set=encoded.dictionary)
    place_of_value = np.full(len(encoded.dictionary) + 1, -1)  # the last is of missing values
    rows = pc.is_valid(found).to_numpy(zero_copy_only=False)
    place_of_value[found.drop_null().to_numpy()] = np.flatnonzero(rows)
    return place_of_value[pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)]


def single_precision(scores: ArrayLike) -> NDArray[np.float32]:
    """Round scores to single precision, as trec_eval does; raise if one is too large."""
    with np.errstate(over="ignore"):
        single = np.asarray(scores, dtype=np.float64).astype(np.float32)
    is_beyond = ~np.isfinite(single)
    if is_beyond.any():
        score = np.asarray(scores)[is_beyond][0]
        raise ValueError(
            f"a score must be at most 3.4e+38, got {score:g}; divide the scores, because trec_eval "
            "orders documents in single precision"
        )
    return single


def by_score(lists: Integers, document: pd.Series, score: ArrayLike) -> NDArray[np.intp]:
    """Rows list by list, each list as trec_eval orders it.

    By score in single precision, ties by document id, both descending. ``lists``: the number of
    each row's list.
    """
    single = single_precision(score)
    steps = np.diff(lists)
    if ((steps > 0) | ((steps == 0) & (np.diff(single) < 0))).all():
        return np.arange(len(single))
    order = np.lexsort((-single, lists))
    is_tied = (np.diff(lists[order]) == 0) & (np.diff(single[order]) == 0)
    if not is_tied.any():
        return order
    # Only ids of tied documents are put in order, which takes far longer than numbers do.
    tied = order[np.append(is_tied, False) | np.append(False, is_tied)]
    place_of_id = np.zeros(len(single))
    place_of_id[tied] = document.iloc[tied].rank(method="dense")
    return np.lexsort((-place_of_id, -single, lists))
