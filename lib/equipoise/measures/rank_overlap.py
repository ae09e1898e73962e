r"""Overlap of two rankings, weighted to the top: RBO for many pairs of lists at once, and CRBO.

The agreement of two lists at depth d is the share of their first d items that they have in common;
rank-biased overlap (RBO) is its mean over all depths, weighted as a reader sees them who goes on
from each depth with probability p. Lists end, and may hold ties: what to assume beyond their end
and within a tie are named choices.

CRBO is the RBO of what one system returns on a collection and on its counterfactual.

References
----------
Webber, W., Moffat, A., Zobel, J. (2010): A similarity measure for indefinite rankings, ACM TOIS
28(4). Corsi, M., Urbano, J. (2024): The Treatment of Ties in Rank-Biased Overlap, SIGIR 2024.
thesis section 4.5 (CRBO).
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
from equipoise.measures.tied_scores import tied_spans
from equipoise.options import (
    AttributeName,
    Beyond,
    Depth,
    LeastSeen,
    RankPersistence,
    TiedScores,
    Ties,
)
from equipoise.tidy import tidy_runs

# cells of one array worked on at a time: they stay in the processor's cache, whatever the number of
# pairs
_BLOCK = 1 << 17

_TABLE = 40
"""Items for each rank up to which pairs are compared by a table of all items, and not by sorting."""

_PAIRS = 500
"""Orders of tied documents that are drawn, each with its reverse."""

_RANKED = ("order", "equal")
"""Treatments of ties that keep each item at one rank."""

_declared = partial(
    measure, family="Overlap of rankings", range="0 to 1", ideal="1", direction="higher is better"
)


def _lists(
    items: ArrayLike, scores: ArrayLike | None, depth: int, ties: Ties, name: str
) -> tuple[Integers, Integers]:
    """Items, -1 beyond the end, and with ties the first and last rank (from 0) of each place's, each (pairs, depth).

    Then the length of each list, shaped (pairs, 1).
    """
    given = np.asarray(items)
    if not np.issubdtype(given.dtype, np.integer):
        raise ValueError(f"{name} holds whole numbers, found {given.dtype}")
    beyond = ((0, 0), (0, depth - given.shape[1]))
    whole = given.astype(np.int64, copy=False)
    whole = np.pad(whole, beyond, constant_values=-1) if given.shape[1] < depth else whole
    length = np.full((len(whole), 1), depth)
    if whole.min(initial=0) < 0:
        whole, held = np.maximum(whole, -1), whole >= 0
        length = held.sum(axis=1, keepdims=True)
        if (held[:, 1:] & ~held[:, :-1]).any():
            raise ValueError(
                f"{name} has an item behind an empty place: pad lists with -1 at their end only"
            )
    if ties == "order":
        return whole[np.newaxis], length
    if scores is None:
        raise ValueError(f"ties={ties!r} needs the scores of {name}, to know which items are tied")
    if np.shape(scores) != given.shape:
        raise ValueError(f"scores of {name} are shaped {np.shape(scores)}, wanted {given.shape}")
    padded = np.where(whole >= 0, np.pad(np.asarray(scores, dtype=np.float64), beyond), np.nan)
    return np.stack([whole, *tied_spans(padded, name)]), length


def _matches(first: Integers, second: Integers) -> tuple[Integers, Integers, Integers]:
    """Row and places of every item that both lists of a pair hold; equal items meet in one sort of each row."""
    place = np.arange(first.shape[1])
    bits = (len(place) - 1).bit_length()
    code = np.concatenate([first, second], axis=1) << (bits + 1) | np.concatenate(
        [place, place | 1 << bits]
    )
    if code.max(initial=0) <= np.iinfo(np.int32).max:
        code = code.astype(np.int32)  # half the bytes sort twice as fast
    code.sort(axis=1)
    item = code >> (bits + 1)
    meeting = (item[:, 1:] == item[:, :-1]) & (item[:, 1:] >= 0)
    row, at = np.divmod(np.flatnonzero(meeting), meeting.shape[1])
    left, right = code[row, at].astype(np.int64), code[row, at + 1].astype(np.int64)
    if ((left ^ right) >> bits & 1 == 0).any():
        raise ValueError("a list holds an item twice: keep each once")
    mask = (1 << bits) - 1
    return row, left & mask, right & mask


def _counted(row: Integers, place: Integers, shape: tuple[int, ...]) -> Integers:
    return np.bincount(row * shape[1] + place, minlength=shape[0] * shape[1]).reshape(shape)


def _meetings(first: Integers, second: Integers, held: tuple[int, int]) -> Integers:
    """How many of the items that both lists of a pair hold have each depth as the lower of their two ranks.

    ``held``: how many items the lists of each side have in all.
    """
    pairs, depth = first.shape
    items = int(max(first.max(initial=0), second.max(initial=0))) + 1
    if items > _TABLE * depth:  # a table of them all would not stay in the cache
        row, one, other = _matches(first, second)
        return _counted(row, np.maximum(one, other), first.shape)
    place = np.broadcast_to(
        np.arange(depth, dtype=np.int16 if depth < 2**15 else np.int32), first.shape
    ).ravel()
    beyond = np.arange(
        0, pairs * (items + 1), items + 1
    )  # of each row, what lies beyond the end of a list: item -1
    one, two = ((lists + (beyond + 1)[:, np.newaxis]).ravel() for lists in (first, second))
    rank, later = np.empty(pairs * (items + 1), dtype=place.dtype), []
    for own, other, size, follows in (
        (two, one, held[1], np.less_equal),
        (one, two, held[0], np.less),
    ):
        rank.fill(depth)
        rank[own] = place
        rank[beyond] = depth
        if np.count_nonzero(rank < depth) < size:
            raise ValueError("a list holds an item twice: keep each once")
        later.append(
            follows(rank.take(other), place)
        )  # the other list has this one's item at a higher rank
    return np.add(*later, dtype=np.int64).reshape(first.shape)


def _share(lists: Integers, row: Integers, place: Integers) -> Floats:
    """How much of an item lies within each depth, where a tie is spread over its ranks; shaped (items, depths)."""
    top, bottom = (span[row, place][:, np.newaxis] for span in lists[1:])
    return np.clip((np.arange(lists.shape[2]) - top + 1) / (bottom - top + 1), 0.0, 1.0)


def _sum_rows(values: ArrayLike, row: Integers, lists: Integers) -> Floats:
    total = np.zeros(lists.shape[1:])
    np.add.at(total, row, np.asarray(values, dtype=np.float64))
    return total


def _squares(lists: Integers) -> Floats:
    row, place = np.nonzero(lists[0] >= 0)
    return _sum_rows(_share(lists, row, place) ** 2, row, lists)


def _spread(lists: Integers, shared_row: Integers, shared_place: Integers) -> Floats:
    """Mean share, within each depth, of the items of a list that the other one lacks; 1 where there is none."""
    own = lists[0] >= 0
    own[shared_row, shared_place] = False
    row, place = np.nonzero(own)
    share = _share(lists, row, place)
    return ratio(_sum_rows(share, row, lists), _sum_rows(share > 0, row, lists), 1.0)


def _last(values: Floats, length: Integers) -> Floats:
    """Value at the end of the list; zero for an empty one."""
    return np.where(length > 0, np.take_along_axis(values, np.maximum(length - 1, 0), axis=1), 0.0)


def _block(
    short: Integers,
    long: Integers,
    s: Integers,
    most: Integers,
    p: float,
    beyond: Beyond,
    ties: Ties,
) -> Floats:
    _, pairs, depth = short.shape
    d = np.arange(1, depth + 1)
    if ties != "order":
        row, at_short, at_long = _matches(short[0], long[0])
    if ties == "order":
        common = _meetings(short[0], long[0], (int(s.sum()), int(most.sum())))
    elif ties == "equal":
        common = _counted(
            row, np.maximum(short[1, row, at_short], long[1, row, at_long]), (pairs, depth)
        )
    if ties in _RANKED:
        overlap = np.cumsum(common, axis=1).astype(np.float64)
    else:
        overlap = _sum_rows(_share(short, row, at_short) * _share(long, row, at_long), row, short)
    size: Floats = d.astype(np.float64)
    if ties == "equal":
        size = (np.where(d <= s, short[2] + 1, d) + long[2] + 1) / 2
    elif ties == "corrected":
        size = np.sqrt(np.where(d <= s, _squares(short), d) * _squares(long))

    # some treatments of ties give places beyond the long list a size of zero, where nothing agrees
    agreement = overlap / size if ties in _RANKED else ratio(overlap, size, 0.0)
    end = _last(agreement, s)  # agreement where the short list ends
    reached = _last(overlap, most)  # overlap where the long list ends
    if beyond == "extrapolated" and (s < most).any():
        spread = 1.0 if ties in _RANKED else _spread(long, row, at_long)
        agreement = ratio(overlap + np.where(d > s, (d - s) * end * spread, 0.0), size, 0.0)
    elif beyond == "maximum":
        agreement = np.where(d > s, (overlap + d - s) / d, agreement)
    if (most < depth).any():
        agreement[d > most] = 0.0
    score = (agreement @ ((1 - p) * p ** (d - 1.0)))[:, np.newaxis]
    if beyond == "extrapolated":
        score += p**most * ratio(reached + (most - s) * end, most, 0.0)
    elif beyond in ("minimum", "maximum"):
        # the tail sum of p^d / d beyond depth n is ln(1 / (1 - p)) less the first n of its terms
        n = np.arange(1, 2 * depth + 1)
        tail = np.log(1 / (1 - p)) - np.append(0.0, np.cumsum(p**n / n))
        if beyond == "minimum":
            score += (1 - p) / p * reached * tail[most]
        else:
            # every new pair of items agrees until both lists hold the same f items
            f = (most + s - reached).astype(np.int64)
            score += (
                2 * (p**most - p**f)
                + (1 - p) / p * (reached - most - s) * (tail[most] - tail[f])
                + p**f
            )
    return np.where(most == 0, np.nan, score)[:, 0]


@_declared("RBO", sources=("webber2010", "corsi2024"))
def rbo(
    first: ArrayLike,
    second: ArrayLike,
    p: RankPersistence = 0.9,
    *,
    beyond: Beyond = "extrapolated",
    ties: Ties = "order",
    first_scores: ArrayLike | None = None,
    second_scores: ArrayLike | None = None,
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
    first_scores, second_scores : array_like, shaped as their lists, optional
        Scores, not rising along a list; wanted by every treatment of ties but "order".

    Returns
    -------
    ndarray, shaped (pairs,)
        Between 0 (disjoint) and 1; equal lists have 1 by extrapolation only. One empty list has
        nothing in common with the other, 0; for two empty lists nan.

    Raises
    ------
    ValueError
        If a list holds an item twice, is padded before its end or has rising scores, scores are
        wanted and absent, the shapes do not fit, or the maximum is wanted of lists with ties.

    Notes
    -----
    Webber et al. (2010); Corsi and Urbano (2024) for ties, uneven lists with ties included.

    Of Webber et al., Eq. 32 extrapolates, Eq. 11 is the minimum, and the residual of Eq. 30 makes
    it the maximum.

    Examples
    --------
    >>> rbo([[1, 2, 3], [1, 2, 3]], [[1, 2, 3], [4, 5, -1]])
    array([1., 0.])
    >>> rbo([[1, 2]], [[2, 1]], p=0.5, beyond="truncated")
    array([0.25])
    """
    if beyond == "maximum" and ties != "order":
        raise ValueError("the maximum is defined for lists without ties: use ties='order'")
    shapes = [np.shape(first), np.shape(second)]
    if any(len(shape) != 2 for shape in shapes) or shapes[0][0] != shapes[1][0]:
        raise ValueError(
            f"lists are shaped {shapes[0]} and {shapes[1]}, wanted (pairs, depth) with the same pairs"
        )
    depth = max(shapes[0][1], shapes[1][1], 1)
    one, length = _lists(first, first_scores, depth, ties, "the first list")
    two, other = _lists(second, second_scores, depth, ties, "the second list")
    swap, values = length > other, np.empty(shapes[0][0])
    # items spread over ties need a cell for each item and depth, the others one for each rank
    step = max(1, _BLOCK // (2 * depth if ties in _RANKED else depth * depth))
    for start in range(0, len(values), step):
        part = slice(start, start + step)
        short, long = one[:, part], two[:, part]
        if swap[part].any():
            short, long = np.where(swap[part], long, short), np.where(swap[part], short, long)
        lengths = np.minimum(length[part], other[part]), np.maximum(length[part], other[part])
        values[part] = _block(short, long, *lengths, p, beyond, ties)
    return np.clip(values, 0.0, 1.0)


def _originals(original: pd.DataFrame, counterfactual: pd.DataFrame) -> list[Seen]:
    """For each run, of how many documents that it ranks on the counterfactual collection it ranks the original too."""
    known, ranked = (
        runs[["run", "document"]].drop_duplicates() for runs in (original, counterfactual)
    )
    found = (ranked.merge(known, how="left", indicator=True)["_merge"] == "both").to_numpy()
    run, names = pd.factorize(ranked["run"])
    lacking = ranked["document"].to_numpy(dtype=object)
    whole = np.bincount(run, minlength=len(names)), np.bincount(run[~found], minlength=len(names))
    return of_runs(
        "a rank on the original collection",
        list(names),
        whole[0] - whole[1],
        whole[0],
        lambda number: lacking[(run == number) & ~found],
        known["document"],
        pd.Index(ranked["document"].unique()),
    )


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
    r"""Counterfactually estimated rank-biased overlap: what a system returns on a collection and on its counterfactual.

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
        its id. With ``score`` where the mean over the orders of ties is wanted: in each of 1,000
        orders drawn, one order of the documents breaks the ties of both lists, so that a list with
        ties agrees fully with itself.

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
    >>> before = pd.DataFrame({"run": "bm25", "topic": "1", "document": ["d1", "d2"], "rank": [1, 2]})
    >>> after = before.assign(rank=[2, 1])
    >>> crbo(before, after)["value"].round(4).tolist()
    [0.9, 0.9]
    """
    original, counterfactual = tidy_runs(original), tidy_runs(counterfactual)
    documents = pd.Index(
        pd.concat([original["document"], counterfactual["document"]]).unique(), dtype="str"
    )
    worlds, tied = (original, counterfactual), tied_scores == "expected"
    sides = [by_rank(runs, documents, np.inf if tied else depth) for runs in worlds]
    one_sided = sides[0].index.symmetric_difference(sides[1].index)
    if len(one_sided):
        raise ValueError(
            f"{len(one_sided)} lists stand on one side only, such as run and topic {one_sided[0]}"
        )
    judge(_originals(original, counterfactual), least_seen)
    before, after = (side.fillna(-1).to_numpy(dtype=np.int64) for side in sides)
    value = rbo(before[:, :depth], after[:, :depth], p, beyond=beyond)
    if tied:
        (first, last), (other, end) = map(spans_by_rank, worlds)
        moved = (first < last).any(axis=1) | (other < end).any(axis=1)
        keys, found = np.random.default_rng(0).random((_PAIRS, len(documents))), []
        for key in (*keys, *-keys):
            pair = ((before[moved], first[moved]), (after[moved], other[moved]))
            one, two = (
                np.take_along_axis(items, np.lexsort((key[items], tie)), 1)[:, :depth]
                for items, tie in pair
            )
            found.append(rbo(one, two, p, beyond=beyond))
        value[moved] = np.mean(found, axis=0)
    values = sides[0].index.to_frame(index=False).assign(value=value)
    table = with_means(values, ["value"]).assign(
        attribute=attribute, measure=f"CRBO(p={p:g})@{depth}"
    )
    return table[["run", "topic", "attribute", "measure", "value"]]
