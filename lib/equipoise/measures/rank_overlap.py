r"""Overlap of two rankings, weighted to the top: RBO for many pairs of lists at once, and CRBO.

The agreement of two lists at depth d is the share of their first d items that they have in common;
rank-biased overlap (RBO) is its mean over all depths, weighted as a reader sees them who goes on
from each depth with probability p. Lists end: what to assume beyond their end is a named choice.

CRBO is the RBO of what one system returns on a collection and on its counterfactual.

References
----------
Webber, W., Moffat, A., Zobel, J. (2010): A similarity measure for indefinite rankings, ACM TOIS
28(4). thesis section 4.5 (CRBO).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from equipoise.arrays import Floats, Integers, ratio
from equipoise.coverage import Seen, judge, of_runs
from equipoise.declare import measure
from equipoise.measures.ranked_lists import by_rank, spans_by_rank, with_means
from equipoise.measures.tied_scores import blocks_of_orders, linked_places, orders_of_ties
from equipoise.options import (
    AttributeName,
    Beyond,
    Depth,
    LeastSeen,
    RankPersistence,
    TiedScores,
)
from equipoise.tidy import tidy_runs

_declared = partial(
    measure, family="Overlap of rankings", range="0 to 1", ideal="1", direction="higher is better"
)


_CELLS = 1 << 16
"""Cells of one array that are worked on at a time: they stay in the processor's cache."""


_ORDERS = 1 << 17
"""Orders of tied documents that are looked at at a time, of as many pairs of lists as have them."""


def _checked_lists(items: ArrayLike, depth: int, name: str) -> Integers:
    """Item numbers, shaped (pairs, depth), -1 beyond the end of a list."""
    lists = np.asarray(items)
    if not np.issubdtype(lists.dtype, np.integer):
        raise ValueError(f"{name} holds whole numbers, found {lists.dtype}")
    lists = lists.astype(np.int64, copy=False)
    if lists.shape[1] < depth:
        padding = ((0, 0), (0, depth - lists.shape[1]))
        lists = np.pad(lists, padding, constant_values=-1)
    if lists.min(initial=0) < 0:
        lists = np.maximum(lists, -1)
        is_item = lists >= 0
        if (is_item[:, 1:] & ~is_item[:, :-1]).any():
            raise ValueError(
                f"{name} has an item behind an empty place: pad lists with -1 at their end only"
            )
    return lists


def _with_small_numbers(first: Integers, second: Integers) -> tuple[Integers, Integers]:
    """The lists, their items numbered anew where the numbers reach far beyond the items."""
    largest = max(first.max(initial=0), second.max(initial=0))
    if largest < first.size + second.size:
        return first, second
    pairs_of_lists = np.stack([first, second])
    is_item = pairs_of_lists >= 0
    pairs_of_lists[is_item] = pd.factorize(pairs_of_lists[is_item])[0]
    return pairs_of_lists[0], pairs_of_lists[1]


def _ranks_of_items(lists: Integers, rank_of_item: Integers) -> None:
    """Write the rank of each item into a table (pairs, items + 1), the last column for none."""
    depth = lists.shape[1]
    row, rank = np.arange(len(lists))[:, np.newaxis], np.arange(depth)
    rank_of_item[row, lists] = rank
    if ((rank_of_item[row, lists] != rank) & (lists >= 0)).any():
        raise ValueError("a list holds an item twice: keep each once")
    rank_of_item[:, -1] = depth


def _overlaps(first: Integers, second: Integers, rank_of_item: Integers) -> Floats:
    """Size of the overlap of both lists at each depth, shaped (pairs, depth).

    ``rank_of_item``: to work in, (at least as many pairs, items + 1), filled with the depth.
    """
    pairs, depth = first.shape
    row, rank = np.arange(pairs)[:, np.newaxis], np.arange(depth)
    _ranks_of_items(second, rank_of_item)
    rank_of_item[row, second] = depth
    _ranks_of_items(first, rank_of_item)
    rank_in_first = rank_of_item[row, second]
    rank_of_item[row, first] = depth

    # A common item belongs to the overlap from the lower of its two ranks on.
    lower_rank = np.maximum(rank, rank_in_first)  # the depth where the item is not common
    cells = (row * (depth + 1) + lower_rank).ravel()
    n_common = np.bincount(cells, minlength=pairs * (depth + 1)).reshape(pairs, depth + 1)
    return np.cumsum(n_common[:, :depth], axis=1).astype(np.float64)


def _at_end(values: Floats, length: Integers) -> Floats:
    """Value at the end of each list, shaped (pairs, 1); zero for an empty one."""
    last_rank = np.maximum(length - 1, 0)
    return np.where(length > 0, np.take_along_axis(values, last_rank, axis=1), 0.0)


def _weighted_overlap(
    overlap: Floats, short: Integers, long: Integers, p: float, beyond: Beyond
) -> Floats:
    """RBO from the overlaps at each depth, shaped (pairs, depth).

    ``short``, ``long``: lengths of the shorter and the longer list of a pair, shaped (pairs, 1).
    """
    depth = overlap.shape[1]
    d = np.arange(1, depth + 1)
    agreement = overlap / d
    end_of_short = _at_end(agreement, short)
    overlap_at_end = _at_end(overlap, long)
    if beyond == "extrapolated":
        # The short list goes on as it agreed at its end.
        agreement = (overlap + np.maximum(d - short, 0) * end_of_short) / d
    elif beyond == "maximum":
        agreement = np.where(d > short, (overlap + d - short) / d, agreement)
    agreement[d > long] = 0.0
    score = (agreement @ ((1 - p) * p ** (d - 1.0)))[:, np.newaxis]

    if beyond == "extrapolated":
        score += p**long * ratio(overlap_at_end + (long - short) * end_of_short, long, 0.0)
    elif beyond in ("minimum", "maximum"):
        # The sum of p^d / d beyond depth n is ln(1 / (1 - p)) less the first n of its terms.
        n = np.arange(1, 2 * depth + 1)
        tail = np.log(1 / (1 - p)) - np.append(0.0, np.cumsum(p**n / n))
        if beyond == "minimum":
            score += (1 - p) / p * overlap_at_end * tail[long]
        else:
            # Each new pair of items agrees until both lists hold the same items, so many:
            n_union = (long + short - overlap_at_end).astype(np.int64)
            score += (
                2 * (p**long - p**n_union)
                + (1 - p) / p * (overlap_at_end - long - short) * (tail[long] - tail[n_union])
                + p**n_union
            )
    return np.where(long == 0, np.nan, score)[:, 0]


@_declared("RBO", sources=("webber2010",))
def rbo(
    first: ArrayLike,
    second: ArrayLike,
    p: RankPersistence = 0.9,
    *,
    beyond: Beyond = "extrapolated",
) -> Floats:
    r"""Rank-biased overlap of many pairs of lists.

    .. math:: RBO(S, T, p) = (1 - p) \sum_{d=1}^{\infty} p^{d-1} \frac{|S_{:d} \cap T_{:d}|}{d}

    - :math:`S, T`: two rankings
    - :math:`p`: persistence: the probability of going on to the next rank
    - :math:`d`: depth; the bars hold the first d documents of each

    Parameters
    ----------
    first, second : array_like of int, shaped (pairs, depth)
        Item numbers, best first; -1 pads lists at their end. The depths may differ, and so may the
        lengths of the two lists of a pair.

    Returns
    -------
    ndarray, shaped (pairs,)
        Between 0 (disjoint) and 1; equal lists have 1 by extrapolation only. One empty list has
        nothing in common with the other, 0; for two empty lists nan.

    Raises
    ------
    ValueError
        If a list holds an item twice or is padded before its end, or the shapes do not fit.

    Notes
    -----
    Webber et al. (2010): Eq. 32 extrapolates, Eq. 11 is the minimum, and the residual of Eq. 30
    makes it the maximum.

    Examples
    --------
    >>> rbo([[1, 2, 3], [1, 2, 3]], [[1, 2, 3], [4, 5, -1]])
    array([1., 0.])
    >>> rbo([[1, 2]], [[2, 1]], p=0.5, beyond="truncated")
    array([0.25])
    """
    shapes = [np.shape(first), np.shape(second)]
    if any(len(shape) != 2 for shape in shapes) or shapes[0][0] != shapes[1][0]:
        raise ValueError(
            f"lists are shaped {shapes[0]} and {shapes[1]},"
            " wanted (pairs, depth) with the same pairs"
        )
    depth = max(shapes[0][1], shapes[1][1], 1)
    first_lists, second_lists = _with_small_numbers(
        _checked_lists(first, depth, "the first list"),
        _checked_lists(second, depth, "the second list"),
    )
    n_items = max(first_lists.max(initial=0), second_lists.max(initial=0)) + 1
    pairs = len(first_lists)
    values = np.empty(pairs)
    step = max(1, _CELLS // max(n_items + 1, depth))
    rank_of_item = np.full((min(step, pairs), n_items + 1), depth)
    for start in range(0, pairs, step):
        block = slice(start, start + step)
        length_of_one = (first_lists[block] >= 0).sum(axis=1, keepdims=True)
        length_of_other = (second_lists[block] >= 0).sum(axis=1, keepdims=True)
        values[block] = _weighted_overlap(
            _overlaps(first_lists[block], second_lists[block], rank_of_item),
            np.minimum(length_of_one, length_of_other),
            np.maximum(length_of_one, length_of_other),
            p,
            beyond,
        )
    return np.clip(values, 0.0, 1.0)


def _originals_seen(original: pd.DataFrame, counterfactual: pd.DataFrame) -> list[Seen]:
    """For each run, of how many documents of its counterfactual lists it ranks the original too."""
    keys = ["run", "document"]
    originals = original[keys].drop_duplicates()
    ranked = counterfactual[keys].drop_duplicates()
    joined = ranked.merge(originals, how="left", indicator=True)
    has_original = (joined["_merge"] == "both").to_numpy()
    run, names = pd.factorize(ranked["run"])
    n_ranked = np.bincount(run, minlength=len(names))
    n_with_original = np.bincount(run[has_original], minlength=len(names))
    documents = ranked["document"].to_numpy(dtype=object)

    def lacking(number: int) -> Any:
        return documents[(run == number) & ~has_original]

    return of_runs(
        "a rank on the original collection",
        list(names),
        n_with_original,
        n_ranked,
        lacking,
        originals["document"],
        pd.Index(ranked["document"].unique()),
    )


def _mean_over_orders(
    before: Integers,
    after: Integers,
    spans_before: tuple[Integers, Integers],
    spans_after: tuple[Integers, Integers],
    depth: int,
    p: float,
    beyond: Beyond,
) -> Floats:
    """Mean RBO of pairs of lists over the orders of their ties, shaped (pairs,).

    One order of all documents breaks the ties of both lists of a pair, so that equal lists stay
    equal. ``spans_before``, ``spans_after``: of `spans_by_rank`.
    """
    # What is tied beyond the depth does not come into it.
    lists_and_spans = []
    for lists, (first_of_tie, last_of_tie) in ((before, spans_before), (after, spans_after)):
        n_ranks = int(last_of_tie[:, :depth].max(initial=0)) + 1
        lists_and_spans.append((lists[:, :n_ranks], first_of_tie[:, :n_ranks]))
    last_place, places_of_lists = linked_places([before, after], [spans_before, spans_after], depth)
    means = np.empty(len(before))
    for block in blocks_of_orders(last_place, _ORDERS):
        number, places = orders_of_ties(last_place[block], last_place[block], last_place.shape[1])
        # In each order, where each place has come to; all that is not linked stays as it is.
        position = np.zeros((len(number), last_place.shape[1] + 1), dtype=np.int64)
        np.put_along_axis(position, places, np.arange(places.shape[1])[np.newaxis], axis=1)
        pair = block[number]
        ordered = []
        for (lists, first_of_tie), place in zip(lists_and_spans, places_of_lists, strict=True):
            by_order = np.take_along_axis(position, place[pair, : lists.shape[1]], axis=1)
            ranked = np.lexsort((by_order, first_of_tie[pair]))[:, :depth]
            ordered.append(np.take_along_axis(lists[pair], ranked, axis=1))
        values = rbo(ordered[0], ordered[1], p, beyond=beyond)
        means[block] = np.bincount(number, values) / np.bincount(number)
    return means


@_declared("CRBO", sources=("thesis-ch4", "thesis"))
def crbo(
    original: Any,
    counterfactual: Any,
    p: RankPersistence = 0.9,
    *,
    depth: Depth = 10,
    beyond: Beyond = "extrapolated",
    tied_scores: TiedScores = "ranked",
    attribute: AttributeName = "",
    least_seen: LeastSeen = 0.5,
) -> pd.DataFrame:
    r"""Counterfactually estimated rank-biased overlap of a collection and its counterfactual.

    .. math:: CRBO(q) = RBO\bigl(L_q(\text{collection}),\, L_q(\text{counterfactual}),\, p\bigr)

    - :math:`q`: a query
    - :math:`L_q`: its ranking of the collection, and of the collection with the terms of the
      groups exchanged
    - :math:`collection, counterfactual`: the texts as they are, and with the groups' terms
      exchanged
    - :math:`p`: persistence of RBO
    - :math:`RBO`: rank-biased overlap above

    Parameters
    ----------
    original, counterfactual : DataFrame
        Columns ``run, topic, document, rank``: the same runs and topics on both; a document keeps
        its id. With ``score`` where the mean over the orders of ties is wanted: one order of the
        documents breaks the ties of both lists, so that a list with ties agrees fully with itself.
        It is the mean over all orders, up to 20,000 of a pair of lists, else over 1,000 drawn.

    Returns
    -------
    DataFrame
        Columns ``run, topic, attribute, measure, value``, measure such as ``CRBO(p=0.9)@10``; an
        empty topic is the mean.

    Raises
    ------
    ValueError
        If a run and topic stands on one side only, or a list holds a document twice.
    InputError
        If a run ranks no document on both collections: then their ids are not the same.

    Notes
    -----
    thesis section 4.5 (iii), which compares the first ten ranks at p = 0.9.

    Examples
    --------
    >>> ranked = {"document": ["d1", "d2"], "rank": [1, 2]}
    >>> before = pd.DataFrame({"run": "bm25", "topic": "1", **ranked})
    >>> after = before.assign(rank=[2, 1])
    >>> crbo(before, after)["value"].round(4).tolist()
    [0.9, 0.9]
    """
    original, counterfactual = tidy_runs(original), tidy_runs(counterfactual)
    every_document = pd.concat([original["document"], counterfactual["document"]])
    documents = pd.Index(every_document.unique(), dtype="str")
    tied = tied_scores == "expected"
    # Which documents come into the first ranks depends on how ties are broken.
    laid_depth = np.inf if tied else depth
    lists_before = by_rank(original, documents, laid_depth)
    lists_after = by_rank(counterfactual, documents, laid_depth)
    one_sided = lists_before.index.symmetric_difference(lists_after.index)
    if len(one_sided):
        raise ValueError(
            f"{len(one_sided)} lists stand on one side only, such as run and topic {one_sided[0]}"
        )
    judge(_originals_seen(original, counterfactual), least_seen)
    before = lists_before.fillna(-1).to_numpy(dtype=np.int64)
    after = lists_after.fillna(-1).to_numpy(dtype=np.int64)
    values = rbo(before[:, :depth], after[:, :depth], p, beyond=beyond)
    if tied:
        spans_before, spans_after = spans_by_rank(original), spans_by_rank(counterfactual)
        tied_before = (spans_before[0] < spans_before[1]).any(axis=1)
        tied_after = (spans_after[0] < spans_after[1]).any(axis=1)
        lists = tied_before | tied_after
        values[lists] = _mean_over_orders(
            before[lists],
            after[lists],
            (spans_before[0][lists], spans_before[1][lists]),
            (spans_after[0][lists], spans_after[1][lists]),
            depth,
            p,
            beyond,
        )
    by_topic = lists_before.index.to_frame(index=False).assign(value=values)
    table = with_means(by_topic, ["value"])
    table = table.assign(attribute=attribute, measure=f"CRBO(p={p:g})@{depth}")
    return table[["run", "topic", "attribute", "measure", "value"]]
