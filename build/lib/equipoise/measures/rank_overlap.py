r"""Overlap of two rankings, weighted to the top: RBO for many pairs of lists at once, and CRBO.

The agreement of two lists at depth d is the share of their first d items that they have in common; rank-biased overlap
(RBO) is its mean over all depths, weighted as a reader sees them who goes on from each depth with probability p.
Lists end, and may hold ties: what to assume beyond their end and within a tie are named choices.

CRBO is the RBO of what one system returns on a collection and on its counterfactual.

References
----------
Webber, W., Moffat, A., Zobel, J. (2010): A similarity measure for indefinite rankings, ACM TOIS 28(4).
Corsi, M., Urbano, J. (2024): The Treatment of Ties in Rank-Biased Overlap, SIGIR 2024. thesis section 4.5 (CRBO).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from equipoise.arrays import Floats, Integers

Beyond = Literal["extrapolated", "truncated", "minimum", "maximum"]
Ties = Literal["order", "equal", "average", "corrected"]

_BLOCK = (
    1 << 17
)  # cells of one array worked on at a time: they stay in the processor's cache, whatever the number of pairs


@dataclass(frozen=True)
class _Lists:
    """Lists as rows of item numbers, with the span of ranks (from 0) that each place is tied over."""

    items: Integers  # (pairs, depth), -1 beyond the end
    length: Integers  # (pairs,)
    top: Integers  # (pairs, depth), first rank of the tie
    bottom: Integers  # (pairs, depth), last rank of the tie

    def block(self, rows: slice) -> _Lists:
        return _Lists(self.items[rows], self.length[rows], self.top[rows], self.bottom[rows])

    def where(self, chosen: NDArray[np.bool_], other: _Lists) -> _Lists:
        wide = chosen[:, np.newaxis]
        return _Lists(
            np.where(wide, self.items, other.items),
            np.where(chosen, self.length, other.length),
            np.where(wide, self.top, other.top),
            np.where(wide, self.bottom, other.bottom),
        )


def _lists(items: ArrayLike, scores: ArrayLike | None, depth: int, ties: Ties, name: str) -> _Lists:
    given = np.asarray(items)
    if given.ndim != 2 or not np.issubdtype(given.dtype, np.integer):
        raise ValueError(f"{name} holds whole numbers shaped (pairs, depth), found {given.dtype} shaped {given.shape}")
    whole = np.full((given.shape[0], depth), -1, dtype=np.int64)
    whole[:, : given.shape[1]] = given[:, :depth]
    held = whole >= 0
    length = held.sum(axis=1)
    if (held[:, 1:] & ~held[:, :-1]).any():
        raise ValueError(f"{name} has an item behind an empty place: pad lists with -1 at their end only")
    place = np.broadcast_to(np.arange(depth), whole.shape)
    if ties == "order":
        return _Lists(whole, length, place, place)
    if scores is None:
        raise ValueError(f"ties={ties!r} needs the scores of {name}, to know which items are tied")
    worth = np.asarray(scores, dtype=np.float64)
    if worth.shape != given.shape:
        raise ValueError(f"scores of {name} are shaped {worth.shape}, wanted {given.shape}")
    tied = np.zeros(whole.shape, dtype=np.bool_)
    width = min(depth, given.shape[1])
    falls = worth[:, 1:width] - worth[:, : width - 1]
    if (falls[held[:, 1:width]] > 0).any():
        raise ValueError(f"scores of {name} rise along a list: give the best item first")
    tied[:, 1:width] = (falls == 0) & held[:, 1:width]
    top = np.maximum.accumulate(np.where(tied, 0, place), axis=1)
    goes_on = np.zeros_like(tied)
    goes_on[:, :-1] = tied[:, 1:]
    bottom = np.minimum.accumulate(np.where(goes_on, depth, place)[:, ::-1], axis=1)[:, ::-1]
    return _Lists(whole, length, top, bottom)


def _matches(first: _Lists, second: _Lists) -> tuple[Integers, Integers, Integers]:
    """Row and places of every item that both lists of a pair hold; equal items meet in one sort of each row."""
    pairs, depth = first.items.shape
    bits = max(depth - 1, 1).bit_length()
    highest = max(int(first.items.max(initial=0)), int(second.items.max(initial=0)))
    small = (highest + 1) << (bits + 1) < np.iinfo(np.int32).max  # half the bytes sort twice as fast
    code = np.empty((pairs, 2 * depth), dtype=np.int32 if small else np.int64)
    code[:, :depth], code[:, depth:] = first.items, second.items
    code <<= bits + 1
    code[:, :depth] |= np.arange(depth, dtype=code.dtype)
    code[:, depth:] |= np.arange(depth, dtype=code.dtype) | (1 << bits)
    code.sort(axis=1)
    item = code >> (bits + 1)
    meeting = np.zeros(item.shape, dtype=np.bool_)
    np.logical_and(item[:, 1:] == item[:, :-1], item[:, 1:] >= 0, out=meeting[:, :-1])
    row, at = np.divmod(np.flatnonzero(meeting), 2 * depth)
    left, right = code[row, at], code[row, at + 1]
    if ((left ^ right) >> bits & 1 == 0).any():
        raise ValueError("a list holds an item twice: keep each once")
    mask = (1 << bits) - 1
    return row.astype(np.int64), (left & mask).astype(np.int64), (right & mask).astype(np.int64)


def _share(lists: _Lists, row: Integers, place: Integers, depth: int) -> Floats:
    """How much of an item lies within each depth, where a tie is spread over its ranks; shaped (items, depths)."""
    top, bottom = lists.top[row, place][:, np.newaxis], lists.bottom[row, place][:, np.newaxis]
    share: Floats = np.clip((np.arange(depth) - top + 1) / (bottom - top + 1), 0.0, 1.0)
    return share


def _sum_rows(values: Floats, row: Integers, rows: int) -> Floats:
    total = np.zeros((rows, values.shape[1]))
    np.add.at(total, row, values)
    return total


def _block(short: _Lists, long: _Lists, p: float, beyond: Beyond, ties: Ties) -> Floats:
    pairs, depth = short.items.shape
    row, at_short, at_long = _matches(short, long)
    d = np.arange(1, depth + 1)
    s, most = short.length[:, np.newaxis], long.length[:, np.newaxis]
    spread = np.ones((pairs, depth))
    if ties in ("order", "equal"):
        meet = np.maximum(short.top[row, at_short], long.top[row, at_long])
        common = np.cumsum(np.bincount(row * depth + meet, minlength=pairs * depth).reshape(pairs, depth), axis=1)
        overlap = common.astype(np.float64)
    else:
        overlap = _sum_rows(_share(short, row, at_short, depth) * _share(long, row, at_long, depth), row, pairs)
    if ties == "equal":
        within_short = np.where(d <= s, short.bottom + 1, d)
        size = (within_short + long.bottom + 1) / 2
    elif ties == "corrected":
        squares = []
        for lists in (short, long):
            r, place = np.nonzero(lists.items >= 0)
            squares.append(_sum_rows(_share(lists, r, place, depth) ** 2, r, pairs))
        size = np.sqrt(np.where(d <= s, squares[0], d) * squares[1])
    else:
        size = np.broadcast_to(d.astype(np.float64), overlap.shape)
    if ties in ("average", "corrected") and beyond == "extrapolated":
        alone = long.items >= 0
        alone[row, at_long] = False
        r, place = np.nonzero(alone)
        share = _share(long, r, place, depth)
        begun = _sum_rows((share > 0).astype(np.float64), r, pairs)
        spread = np.divide(_sum_rows(share, r, pairs), begun, out=np.ones_like(begun), where=begun > 0)

    def last(values: Floats, length: Integers) -> Floats:
        """Value at the end of the list; zero for an empty one."""
        taken = np.take_along_axis(values, np.maximum(length - 1, 0), axis=1)
        return np.where(length > 0, taken, 0.0)

    # some treatments of ties give places beyond the long list a size of zero
    agreement = np.divide(overlap, size, out=np.zeros_like(overlap), where=size > 0)
    end = last(agreement, s)  # agreement where the short list ends
    reached = last(overlap, most)  # overlap where the long list ends
    if (s < most).any():
        if beyond == "extrapolated":
            unseen = np.where(d > s, (d - s) * end * spread, 0.0)
            agreement = np.divide(overlap + unseen, size, out=np.zeros_like(overlap), where=size > 0)
        elif beyond == "maximum":
            agreement = np.where(d > s, (overlap + d - s) / d, agreement)
    agreement[d > most] = 0.0
    weights = (1 - p) * p ** (d - 1.0)
    score = (agreement @ weights)[:, np.newaxis]
    if beyond == "extrapolated":
        score += p**most * np.divide(reached + (most - s) * end, most, out=np.zeros_like(end), where=most > 0)
    elif beyond in ("minimum", "maximum"):
        # the tail sum of p^d / d beyond depth n is ln(1 / (1 - p)) less the first n of its terms
        tail = np.log(1 / (1 - p)) - np.append(
            0.0, np.cumsum(p ** np.arange(1, 2 * depth + 1) / np.arange(1, 2 * depth + 1))
        )
        ratio = (1 - p) / p
        if beyond == "minimum":
            score += ratio * reached * tail[most]
        else:
            # every new pair of items agrees until both lists hold the same f items
            f = (most + s - reached).astype(np.int64)
            score += 2 * (p**most - p**f) + ratio * (reached - most - s) * (tail[most] - tail[f]) + p**f
    empty = (most == 0)[:, 0]
    result: Floats = np.where(empty, np.nan, score[:, 0])
    return result


def rbo(
    first: ArrayLike,
    second: ArrayLike,
    p: float = 0.9,
    *,
    beyond: Beyond = "extrapolated",
    ties: Ties = "order",
    first_scores: ArrayLike | None = None,
    second_scores: ArrayLike | None = None,
) -> Floats:
    r"""Rank-biased overlap of many pairs of lists.

    .. math:: RBO(S, T, p) = (1 - p) \sum_{d=1}^{\infty} p^{d-1} \frac{|S_{:d} \cap T_{:d}|}{d}

    Parameters
    ----------
    first, second : array_like of int, shaped (pairs, depth)
        Item numbers, best first; -1 pads lists at their end. The depths may differ, and so may the lengths of the two
        lists of a pair.
    p : float, default 0.9
        Persistence, within (0, 1); the value of the thesis.
    beyond : {"extrapolated", "truncated", "minimum", "maximum"}, default "extrapolated"
        What the sum takes for the depths beyond the end of the lists: the agreement goes on as it was (Eq. 32 of Webber
        et al.), so that equal lists have 1; nothing (the sum stops); no further item in common (Eq. 11); every further
        item in common (the minimum plus the residual of Eq. 30; for lists without ties).
    ties : {"order", "equal", "average", "corrected"}, default "order"
        Items of equal score: their order stands; they share the first rank of the tie (:math:`RBO^w`, Webber et al.);
        the mean over all their orders (:math:`RBO^a`, Corsi and Urbano); that mean, corrected for the ties so that a
        list agrees fully with itself (:math:`RBO^b`).
    first_scores, second_scores : array_like, shaped as their lists, optional
        Scores, not rising along a list; wanted by every treatment of ties but "order".

    Returns
    -------
    ndarray, shaped (pairs,)
        Between 0 (disjoint) and 1. One empty list has nothing in common with the other, 0; for two empty lists nan.

    Raises
    ------
    ValueError
        If p is out of its bounds, a list holds an item twice, is padded before its end or has rising scores, scores are
        wanted and absent, or the shapes do not fit.

    Notes
    -----
    Webber et al. (2010); Corsi and Urbano (2024) for ties, uneven lists with ties included.

    Examples
    --------
    >>> rbo([[1, 2, 3], [1, 2, 3]], [[1, 2, 3], [4, 5, -1]])
    array([1., 0.])
    >>> rbo([[1, 2]], [[2, 1]], p=0.5, beyond="truncated")
    array([0.25])
    """
    if not 0 < p < 1:
        raise ValueError(f"the persistence p lies between 0 and 1, found {p}")
    if beyond not in ("extrapolated", "truncated", "minimum", "maximum"):
        raise ValueError(f"beyond is 'extrapolated', 'truncated', 'minimum' or 'maximum', found {beyond!r}")
    if ties not in ("order", "equal", "average", "corrected"):
        raise ValueError(f"ties is 'order', 'equal', 'average' or 'corrected', found {ties!r}")
    if beyond == "maximum" and ties != "order":
        raise ValueError("the maximum is defined for lists without ties: use ties='order'")
    shapes = [np.shape(first), np.shape(second)]
    if any(len(shape) != 2 for shape in shapes) or shapes[0][0] != shapes[1][0]:
        raise ValueError(f"lists are shaped {shapes[0]} and {shapes[1]}, wanted (pairs, depth) with the same pairs")
    depth = max(shapes[0][1], shapes[1][1], 1)
    one = _lists(first, first_scores, depth, ties, "the first list")
    two = _lists(second, second_scores, depth, ties, "the second list")
    pairs = shapes[0][0]
    scores = np.empty(pairs)
    # items spread over ties need a cell for each item and depth, the others one for each rank
    cells = 2 * depth if ties in ("order", "equal") else depth * depth
    step = max(1, _BLOCK // cells)
    for start in range(0, pairs, step):
        rows = slice(start, start + step)
        a, b = one.block(rows), two.block(rows)
        swap = a.length > b.length
        if swap.any():
            a, b = b.where(swap, a), a.where(swap, b)
        scores[rows] = _block(a, b, p, beyond, ties)
    return np.clip(scores, 0.0, 1.0)


def crbo(
    original: pd.DataFrame,
    counterfactual: pd.DataFrame,
    p: float = 0.9,
    *,
    depth: int = 10,
    beyond: Beyond = "extrapolated",
    attribute: str = "",
) -> pd.DataFrame:
    """Counterfactually estimated rank-biased overlap: what a system returns on a collection and on its counterfactual.

    Parameters
    ----------
    original, counterfactual : DataFrame
        Columns ``run, topic, document, rank``: the same runs and topics on both; a document keeps its id.
    p : float, default 0.9
        Persistence.
    depth : int, default 10
        Ranks that are compared; the thesis compares the first ten.
    beyond : {"extrapolated", "truncated", "minimum", "maximum"}, default "extrapolated"
        What `rbo` takes for the depths beyond the lists. Equal lists have 1 only by extrapolation.
    attribute : str
        Name of the attribute set, for the column ``attribute``.

    Returns
    -------
    DataFrame
        Columns ``run, topic, attribute, measure, value``, measure ``CRBO(p=0.9)@10``; topic ``all`` is the mean.

    Raises
    ------
    ValueError
        If a run and topic stands on one side only, a list holds a document twice, or an argument is out of its bounds.

    Notes
    -----
    thesis section 4.5 (iii).

    Examples
    --------
    >>> before = pd.DataFrame({"run": "bm25", "topic": "1", "document": ["d1", "d2"], "rank": [1, 2]})
    >>> after = before.assign(rank=[2, 1])
    >>> crbo(before, after)["value"].round(4).tolist()
    [0.9, 0.9]
    """
    if depth < 1:
        raise ValueError(f"the depth is a whole number from 1, found {depth}")
    sides = [table.sort_values(["run", "topic", "rank"], kind="stable") for table in (original, counterfactual)]
    sides = [table[table.groupby(["run", "topic"]).cumcount() < depth] for table in sides]
    keys = [pd.MultiIndex.from_frame(table[["run", "topic"]]) for table in sides]
    lists = keys[0].unique().sort_values()
    one_sided = lists.symmetric_difference(keys[1].unique())
    if len(one_sided):
        raise ValueError(f"{len(one_sided)} lists stand on one side only, such as run and topic {one_sided[0]}")
    numbers, _ = pd.factorize(pd.concat([table["document"] for table in sides], ignore_index=True))
    ends = len(sides[0])
    matrices = []
    for table, key, number in zip(sides, keys, (numbers[:ends], numbers[ends:]), strict=True):
        matrix = np.full((len(lists), depth), -1, dtype=np.int64)
        matrix[lists.get_indexer(key), table.groupby(["run", "topic"]).cumcount().to_numpy()] = number
        matrices.append(matrix)
    values = lists.to_frame(index=False).assign(value=rbo(matrices[0], matrices[1], p, beyond=beyond))
    means = values.groupby("run", sort=True)[["value"]].mean(skipna=False).reset_index().assign(topic="all")
    table = pd.concat([values, means], ignore_index=True)
    table = table.assign(attribute=attribute, measure=f"CRBO(p={p:g})@{depth}")
    return table[["run", "topic", "attribute", "measure", "value"]]
