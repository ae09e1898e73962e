r"""Overlap of two rankings, weighted to the top: RBO for many pairs of lists at once, and CRBO.

The agreement of two lists at depth d is the share of their first d items that they have in common.
Rank-biased overlap (RBO) is its mean over all depths, weighted by a reader who reads on from each
depth with probability p. Beyond the end of the lists the agreement is extrapolated.

CRBO is the RBO of the rankings of one system on a collection and on its counterfactual.

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
from equipoise.coverage import Seen, judge, runs_seen
from equipoise.declared import measure
from equipoise.measures.ranked_lists import by_rank, spans_by_rank, with_means
from equipoise.measures.tied_scores import linked_spans, orders_of_ties
from equipoise.options import Depth, RankPersistence, TiedScores

_declared = partial(
    measure, family="Overlap of rankings", range="0 to 1", ideal="1", direction="higher is better"
)

_CELLS = 1 << 16
"""Cells of one array that are worked on at a time: they stay in the processor's cache."""


def _items(lists: ArrayLike) -> Integers:
    """Return item numbers, shaped (pairs, ranks); -1 pads a list."""
    items = np.asarray(lists)
    if not np.issubdtype(items.dtype, np.integer):
        raise ValueError(f"lists must have whole numbers, got {items.dtype}")
    return np.maximum(items, -1)


def _columns(items: Integers, depth: int, n_items: int) -> tuple[Integers, Integers]:
    """Return items padded to the depth, with ``n_items`` where there is none, and the lengths."""
    columns = np.full((len(items), depth), n_items)
    columns[:, : items.shape[1]] = np.where(items < 0, n_items, items)
    length = (columns < n_items).sum(axis=1)
    if ((columns < n_items) != (np.arange(depth) < length[:, np.newaxis])).any():
        raise ValueError("lists must be padded with -1 at their end only")
    return columns, length


def _lower_ranks(first: Integers, second: Integers, n_items: int, table: Integers) -> Integers:
    """Return the lower rank of the items of the second lists, from 0; the depth if not common.

    ``first``, ``second``: of `_columns`. ``table``: to work in, of any content, for a cell per pair
    and column.
    """
    pairs, depth = second.shape
    rank, begin = np.arange(depth), np.arange(pairs)[:, np.newaxis] * (n_items + 1)
    cells = first + begin, second + begin
    # The ranks of the second list, from the depth on, are overwritten by those of the first: what
    # is still the depth or more is not common. Only cells that were just written are read.
    for cell, columns, written in ((cells[1], second, rank + depth), (cells[0], first, rank)):
        table[cell] = written
        if ((table[cell] != written) & (columns < n_items)).any():
            raise ValueError("a list has an item twice")
    lower_rank = np.maximum(rank, np.minimum(table[cells[1]], depth))
    lower_rank[second == n_items] = depth
    return lower_rank


def _extrapolated(lower_rank: Integers, short: Integers, long: Integers, p: float) -> Floats:
    """Return RBO from the lower ranks of common items: Webber et al., Eq. 32.

    ``short``, ``long``: lengths of the shorter and the longer list of a pair, shaped (pairs,).
    """
    depth = lower_rank.shape[1]
    d = np.arange(1, depth + 1)
    # Weight of the depths after k, for k from 0: of an overlap, and of an agreement.
    weights = (1 - p) * p ** (d - 1.0) / d
    overlap_weight = np.append(np.cumsum(weights[::-1])[::-1], 0)
    agreement_weight = p ** np.arange(depth + 1.0)
    # A common item belongs to the overlap from the lower of its two ranks on.
    n_common = (lower_rank < depth).sum(axis=1)
    score = overlap_weight.take(lower_rank).sum(axis=1) - n_common * overlap_weight[long]
    # Beyond its end, the short list agrees as it did there.
    end_of_short = ratio((lower_rank < short[:, np.newaxis]).sum(axis=1), short, 0.0)
    beyond = agreement_weight[short] - agreement_weight[long]
    beyond -= short * (overlap_weight[short] - overlap_weight[long])
    rest = ratio(n_common + (long - short) * end_of_short, long, 0.0)
    return np.where(long == 0, np.nan, score + end_of_short * beyond + p**long * rest)


@_declared("RBO", sources=("webber2010",))
def rbo(first: ArrayLike, second: ArrayLike, p: RankPersistence = 0.9) -> Floats:
    r"""Compute the rank-biased overlap of many pairs of lists.

    .. math:: RBO(S, T, p) = (1 - p) \sum_{d=1}^{\infty} p^{d-1} \frac{|S_{:d} \cap T_{:d}|}{d}

    - :math:`S, T`: two rankings
    - :math:`p`: persistence: the probability of reading on to the next rank
    - :math:`d`: depth; the bars count the first d documents of each

    Parameters
    ----------
    first, second : array_like of int, shaped (pairs, depth)
        Item numbers, best first; -1 pads lists at their end. The depths may differ, and so may the
        lengths of the two lists of a pair.

    Returns
    -------
    ndarray, shaped (pairs,)
        Between 0 (disjoint) and 1. One empty list has nothing in common with the other, 0; for two
        empty lists NaN.

    Raises
    ------
    ValueError
        If a list has an item twice or is padded before its end, or the shapes do not fit.

    Notes
    -----
    Webber et al. (2010), Eq. 32, extrapolates beyond the end of the lists.

    Examples
    --------
    >>> rbo([[1, 2, 3], [1, 2, 3]], [[1, 2, 3], [4, 5, -1]])
    array([1., 0.])
    """
    shapes = [np.shape(first), np.shape(second)]
    if any(len(shape) != 2 for shape in shapes) or shapes[0][0] != shapes[1][0]:
        raise ValueError(f"lists must be shaped (pairs, depth), got {shapes[0]} and {shapes[1]}")
    depth, pairs = max(shapes[0][1], shapes[1][1], 1), shapes[0][0]
    lists = [_items(first), _items(second)]
    n_items = 1 + max(int(items.max(initial=0)) for items in lists)
    if n_items > 2 * pairs * depth:
        # Small numbers keep the table of ranks small.
        flat = np.concatenate([items.ravel() for items in lists])
        flat[flat >= 0] = pd.factorize(flat[flat >= 0])[0]
        lists = [
            part.reshape(shape)
            for part, shape in zip(np.split(flat, [lists[0].size]), shapes, strict=True)
        ]
        n_items = 1 + int(flat.max(initial=0))
    values = np.empty(pairs)
    step = max(1, _CELLS // max(n_items + 1, depth))
    table = np.empty(min(step, pairs) * (n_items + 1), dtype=np.int32)
    for start in range(0, pairs, step):
        block = slice(start, start + step)
        columns, length = _columns(lists[0][block], depth, n_items)
        other_columns, other_length = _columns(lists[1][block], depth, n_items)
        lower_rank = _lower_ranks(columns, other_columns, n_items, table)
        short, long = np.minimum(length, other_length), np.maximum(length, other_length)
        values[block] = _extrapolated(lower_rank, short, long, p)
    return np.clip(values, 0.0, 1.0)


def _originals_seen(original: pd.DataFrame, counterfactual: pd.DataFrame) -> list[Seen]:
    """Count, for each run, the documents of its counterfactual lists that it ranks originally."""
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

    return runs_seen(
        "a rank on the original collection",
        list(names),
        n_with_original,
        n_ranked,
        lacking,
        originals["document"],
        pd.Index(ranked["document"].unique()),
    )


def _mean_over_orders(
    documents: tuple[Integers, Integers],
    first_ranks: tuple[Integers, Integers],
    depth: int,
    p: float,
) -> float:
    """Return the mean RBO of one pair of lists over the orders of their ties.

    One order of all documents breaks the ties of both lists, so that equal lists stay equal.
    ``first_ranks``: of the tie of each rank.
    """
    linked, first_place, last_place = linked_spans(documents, first_ranks, depth)
    _, places = orders_of_ties(first_place, last_place, len(linked))
    # In each order, the position of each linked document; the others are in ties of their own.
    position = np.empty_like(places)
    np.put_along_axis(position, places, np.arange(len(linked))[np.newaxis], axis=1)
    ordered = []
    for all_ranked, all_first_ranks in zip(documents, first_ranks, strict=True):
        # Only ties that begin within the depth decide which documents are there.
        is_read = all_first_ranks < depth
        ranked, first_rank = all_ranked[is_read], all_first_ranks[is_read]
        place = pd.Index(linked).get_indexer(pd.Index(ranked))
        by_order = np.where(place >= 0, position[:, place], 0)  # (orders, ranks)
        ranks = np.lexsort((by_order, np.broadcast_to(first_rank, by_order.shape)))[:, :depth]
        ordered.append(ranked[ranks])
    return float(rbo(ordered[0], ordered[1], p).mean())


@_declared("CRBO", sources=("thesis-ch4", "thesis"))
def crbo(
    original: pd.DataFrame,
    counterfactual: pd.DataFrame,
    p: RankPersistence = 0.9,
    *,
    depth: Depth = 10,
    tied_scores: TiedScores = "ranked",
) -> pd.DataFrame:
    r"""Compute the counterfactually estimated rank-biased overlap of two collections.

    .. math:: CRBO(q) = RBO\bigl(L_q(\text{collection}),\, L_q(\text{counterfactual}),\, p\bigr)

    - :math:`q`: a query
    - :math:`L_q`: its ranking of the collection, and of the collection with the terms of the
      groups exchanged
    - :math:`collection, counterfactual`: the texts as they are, and with the groups' terms
      exchanged
    - :math:`p`: persistence of RBO
    - :math:`RBO`: rank-biased overlap

    Parameters
    ----------
    original, counterfactual : DataFrame
        Columns ``run, topic, document, rank``: the same runs and topics on both; a document keeps
        its id. With ``score`` for the mean over the orders of ties: one order of the documents
        breaks the ties of both lists, so that a list with ties agrees fully with itself. It is the
        mean over all orders, up to 20,000 of a pair of lists, else over 1,000 random ones.

    Returns
    -------
    DataFrame
        Columns ``run, topic, attribute, measure, value``, measure such as ``CRBO(p=0.9)@10``; an
        empty topic is the mean.

    Raises
    ------
    ValueError
        If a run and topic is on one side only, or a list has a document twice.
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
    tables = original, counterfactual
    documents = pd.Index(pd.concat([table["document"] for table in tables]).unique(), dtype="str")
    is_expected = tied_scores == "expected"
    # Which documents are in the first ranks depends on how ties are broken.
    before, after = (
        by_rank(table, documents, np.inf if is_expected else depth) for table in tables
    )
    one_sided = before.index.symmetric_difference(after.index)
    if len(one_sided):
        run, topic = one_sided[0]
        raise ValueError(
            f"run {run}: must rank topic {topic} on both collections, got it on one"
            f" ({len(one_sided)} rankings are on one side only)"
        )
    seen = judge(_originals_seen(*tables))
    lists = [side.fillna(-1).to_numpy(dtype=np.int64) for side in (before, after)]
    values = rbo(lists[0][:, :depth], lists[1][:, :depth], p)
    if is_expected:
        spans = [spans_by_rank(table) for table in tables]
        tied_before, tied_after = ((first < last)[:, :depth].any(axis=1) for first, last in spans)
        is_tied = np.asarray(tied_before) | np.asarray(tied_after)
        for pair in np.flatnonzero(is_tied):
            ranked = lists[0][pair], lists[1][pair]
            first_ranks = spans[0][0][pair], spans[1][0][pair]
            values[pair] = _mean_over_orders(ranked, first_ranks, depth, p)
    table = with_means(before.index.to_frame(index=False).assign(value=values), ["value"])
    table = table.assign(attribute="", measure=f"CRBO(p={p:g})@{depth}")
    table = table[["run", "topic", "attribute", "measure", "value"]]
    table.attrs["seen"] = seen
    return table
