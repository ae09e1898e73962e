"""Valid orders of the utterances of a scripted conversation: count, enumerate, rank and sample them.

A conversation has n utterances, numbered 0 to n - 1 in the order of its script. A `Structure` says which orders keep
every utterance answerable: the paper's classes (`class_structures`), or any graph of "must come before"
(`graph_structures`).

An order is an array of n utterance numbers, first uttered first; many orders are stacked, shaped (orders, n). Orders
are ranked lexicographically, from 0 to count - 1. Counts are exact integers of any size. A set of utterances is one
64-bit word, a mask.

References
----------
permutations: Faggioli, Ferrante, Ferro, Perego, Tonellotto, "A Dependency-Aware Utterances Permutation Strategy to
Improve Conversational Evaluation", section 3.1.
"""

from __future__ import annotations

import math
import random
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.arrays import Booleans, Floats
from equipoise.studies.permutations.lattices import LARGEST_INT64, Counts, Lattice, Masks, bits

Orders = NDArray[np.intp]

_LARGEST_SIZE = 62  # utterances: a set of them is one 64-bit word
_ROUNDING = 1e-12  # a smaller spread of a score, relative to it, is rounding


def _draw_below(bound: int, size: int, rng: np.random.Generator) -> Counts:
    """Draw integers from 0 to bound - 1, uniformly and independently, for a bound of any size."""
    if bound <= LARGEST_INT64:
        return rng.integers(bound, size=size)
    stream = random.Random(rng.bytes(32))  # noqa: S311 - it draws integers of any size, and nothing secret
    return np.array([stream.randrange(bound) for _ in range(size)], dtype=object)


@dataclass(frozen=True)
class OrderScores:
    """What the score of a conversation can be, over all its valid orders, and orders that attain the extremes."""

    mean: float
    sd: float
    minimum: float
    maximum: float
    worst: tuple[int, ...]
    best: tuple[int, ...]


class Structure(ABC):
    """The valid orders of one conversation.

    ``size``: number of utterances, 1 to 62. ``limit``: the largest number of utterance sets that dynamic
    programming may visit.
    """

    def __init__(self, size: int, limit: int) -> None:
        if not 1 <= size <= _LARGEST_SIZE:
            raise ValueError(f"a conversation has 1 to {_LARGEST_SIZE} utterances, found {size}")
        self.size = size
        self.limit = limit

    @property
    @abstractmethod
    def count(self) -> int:
        """The number of valid orders, an exact integer (permutations, section 3.1; Table 1)."""

    @abstractmethod
    def may_follow(self, masks: Masks) -> Booleans:
        """Which utterances may come next, once those of each set have been uttered, shaped (sets, n)."""

    @abstractmethod
    def completions(self, masks: Masks) -> Counts:
        """How many ways there are to finish a conversation in which each set of utterances has been uttered."""

    @abstractmethod
    def adjacency(self) -> Floats:
        """Probability that one utterance directly precedes another in a uniformly drawn valid order, shaped (n, n).

        Row v, column u: v is uttered directly before u. Column sums are 1 minus the probability that u comes first.

        Beyond the paper: with the score of u after v, it gives the mean over all orders (`mean_score`).
        """

    @abstractmethod
    def positions(self) -> Floats:
        """Probability of each utterance at each position in a uniformly drawn valid order, shaped (n, n).

        Row u, column i: utterance u stands at position i, from 0. Beyond the paper.
        """

    @cached_property
    def lattice(self) -> Lattice:
        """Every set of utterances that can have been uttered, and the steps between them."""
        return Lattice.of(self.size, self.may_follow, self.limit)

    @property
    def _dtype(self) -> type:
        return np.int64 if self.count <= LARGEST_INT64 else object

    def _ways(self, masks: Masks) -> Counts:
        """Completions of each set by the utterance that comes next, 0 where it may not, shaped (sets, n)."""
        follows = self.may_follow(masks)
        ways: Counts = np.zeros(follows.shape, dtype=self._dtype)
        ways[follows] = self.completions((masks[:, None] | bits(self.size))[follows])
        return ways

    def _as_orders(self, orders: ArrayLike) -> Orders:
        stacked = np.asarray(orders)
        if stacked.ndim != 2 or stacked.shape[1] != self.size or stacked.dtype.kind not in "iu":
            found = f"{stacked.dtype} {stacked.shape}"
            raise ValueError(f"orders are utterance numbers shaped (orders, {self.size}), found {found}")
        return stacked.astype(np.intp, copy=False)

    def is_valid(self, orders: ArrayLike) -> Booleans:
        """Whether each order, shaped (orders, n), respects the structure (permutations, section 3.1)."""
        stacked = self._as_orders(orders)
        valid: Booleans = np.all((stacked >= 0) & (stacked < self.size), axis=1)
        masks, rows = np.zeros(len(stacked), dtype=np.uint64), np.arange(len(stacked))
        for following in np.clip(stacked, 0, self.size - 1).T:
            valid &= self.may_follow(masks)[rows, following]
            masks |= bits(self.size)[following]
        return valid

    def rank(self, orders: ArrayLike) -> Counts:
        """Place of each valid order, shaped (orders, n), among all of them, sorted lexicographically; from 0.

        The rank is the sum, over positions, of the completions of every smaller utterance allowed there. int64, or
        Python integers where `count` does not fit.
        """
        stacked = self._as_orders(orders)
        wrong = np.flatnonzero(~self.is_valid(stacked))
        if len(wrong):
            raise ValueError(f"order number {wrong[0]} is not valid here: {stacked[wrong[0]].tolist()}")
        masks = np.zeros(len(stacked), dtype=np.uint64)
        ranks: Counts = np.zeros(len(stacked), dtype=self._dtype)
        for following in stacked.T:
            ranks += np.where(np.arange(self.size) < following[:, None], self._ways(masks), 0).sum(axis=1)
            masks |= bits(self.size)[following]
        return ranks

    def unrank(self, ranks: ArrayLike) -> Orders:
        """Orders by their rank, shaped (orders, n): the inverse of `rank`."""
        rest: Counts = np.array(ranks, dtype=self._dtype, ndmin=1)
        if len(rest) and not (rest.min() >= 0 and rest.max() < self.count):
            raise ValueError(f"ranks run from 0 to {self.count - 1}, found {rest.min()} to {rest.max()}")
        orders = np.empty((len(rest), self.size), dtype=np.intp)
        masks, rows = np.zeros(len(rest), dtype=np.uint64), np.arange(len(rest))
        for position in range(self.size):
            ways = self._ways(masks)
            passed = np.cumsum(ways, axis=1)
            following = orders[:, position] = (passed <= rest[:, None]).sum(axis=1)
            rest -= (passed - ways)[rows, following]
            masks |= bits(self.size)[following]
        return orders

    def orders(self, limit: int = 1_000_000) -> Orders:
        """Every valid order, in lexicographic order, shaped (count, n); refused where there are more than the limit."""
        if self.count > limit:
            raise ValueError(f"{self.count} valid orders are more than the limit of {limit}: sample them instead")
        return self.unrank(np.arange(self.count))

    def sample(
        self, size: int, rng: np.random.Generator, *, distinct: bool = False, exclude: ArrayLike | None = None
    ) -> Orders:
        """Draw valid orders uniformly; nothing is rejected, so the cost does not depend on how few are valid.

        ``distinct``: False draws independently; True draws a uniform set of different orders, in random order, as
        the paper does (section 4.3). ``exclude``: valid orders that may not be drawn, such as that of the script;
        needs `distinct`.
        """
        if not distinct:
            if exclude is not None:
                raise ValueError("orders are excluded from distinct samples only: pass distinct=True")
            return self._draw(size, rng)
        barred = np.unique(self.rank(exclude)) if exclude is not None else np.zeros(0, dtype=self._dtype)
        left = self.count - len(barred)
        if size > left:
            raise ValueError(f"{size} different orders wanted, but there are only {left}")
        if left <= LARGEST_INT64:
            ranks: Counts = rng.choice(left, size=size, replace=False).astype(self._dtype)
        else:
            kept: dict[int, None] = {}
            while len(kept) < size:  # a repetition among so many is a wonder, and is drawn again
                kept.update(dict.fromkeys(_draw_below(left, size - len(kept), rng).tolist()))
            ranks = np.array(list(kept), dtype=object)
        for place in barred:  # ascending: each barred rank moves those at or above it by one
            ranks[ranks >= place] += 1
        return self.unrank(ranks)

    def _draw(self, size: int, rng: np.random.Generator) -> Orders:
        return self.unrank(_draw_below(self.count, size, rng))

    def mean_score(self, scores: ArrayLike, first: ArrayLike | None = None) -> float:
        r"""Exact mean, over all valid orders, of a score that depends on the directly preceding utterance only.

        .. math:: \sum_u P(u\text{ first})\, f_u + \sum_{v, u} P(v\text{ directly precedes }u)\, s_{vu}

        ``scores`` (shaped (n, n)): row v, column u: what utterance u contributes when v directly precedes it.
        Pairs that no valid order puts side by side are not looked at; they may be NaN. ``first`` (shaped (n,)):
        what u contributes when it comes first; 0 where not given. Returns the mean of the sums over utterances.

        Beyond the paper, which samples 100 orders; no order is drawn here.
        """
        pairs = np.asarray(scores, dtype=np.float64)
        alone = np.zeros(self.size) if first is None else np.asarray(first, dtype=np.float64)
        if pairs.shape != (self.size, self.size) or alone.shape != (self.size,):
            found = f"{pairs.shape} and {alone.shape}"
            raise ValueError(f"scores are shaped ({self.size}, {self.size}) and first ({self.size},), found {found}")
        adjacency, opening = self.adjacency(), self.positions()[:, 0]
        used, begins = adjacency > 0, opening > 0
        mean = float(adjacency[used] @ pairs[used] + opening[begins] @ alone[begins])
        if math.isnan(mean):
            raise ValueError("the score of a pair that valid orders put side by side is NaN")
        return mean

    def score_range(self, scores: ArrayLike, first: ArrayLike | None = None) -> OrderScores:
        """Exact mean, standard deviation, minimum and maximum over all valid orders of a score of adjacent pairs.

        Dynamic programming over (set uttered so far, last utterance): the cost grows with the number of such sets, not
        with the number of orders. Takes what `mean_score` takes. Beyond the paper.
        """
        mean = self.mean_score(scores, first)
        alone = np.zeros(self.size) if first is None else np.asarray(first)
        steps = np.vstack([scores, alone]) - mean / self.size  # centred, so that squares do not cancel
        (low, worst), (high, best) = self.lattice.lowest(steps), self.lattice.lowest(-steps)
        varies = -high - low > _ROUNDING * max(1.0, abs(mean))
        sd = math.sqrt(self.lattice.variance(steps)) if varies else 0.0
        return OrderScores(mean, sd, low + mean, mean - high, worst, best)
