"""Valid orders of the utterances of a conversation: count, enumerate, rank and sample them.

A conversation has n utterances, numbered 0 to n - 1 in the order of its script. A `Structure` says
which orders keep every utterance answerable: the paper's classes (`class_structures`), or any graph
of "must come before" (`GraphStructure`).

An order is an array of n utterance numbers, first uttered first; many orders are stacked, shaped
(orders, n). Orders are ranked lexicographically, from 0 to count - 1. Counts are exact integers of
any size. A set of utterances is one 64-bit word, a mask.

References
----------
permutations: Faggioli, Ferrante, Ferro, Perego, Tonellotto, "A Dependency-Aware Utterances
Permutation Strategy to Improve Conversational Evaluation", section 3.1.
"""

from __future__ import annotations

import math
import random
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.arrays import Booleans, Floats
from equipoise.orders.lattices import LARGEST_INT64, Counts, Lattice, Masks, bits, members

Orders = NDArray[np.intp]

_LARGEST_SIZE = 62  # utterances: a set of them is one 64-bit word
_ROUNDING = 1e-12  # a smaller spread of a score, relative to it, is rounding


def _draw_below(bound: int, size: int, rng: np.random.Generator) -> Counts:
    """Draw integers from 0 to bound - 1, uniformly and independently, for a bound of any size."""
    if bound <= LARGEST_INT64:
        return rng.integers(bound, size=size)
    stream = random.Random(rng.bytes(32))  # noqa: S311 - it draws integers of any size, and nothing secret
    return np.array([stream.randrange(bound) for _ in range(size)], dtype=object)


def _distinct_ranks(bound: int, size: int, dtype: type, rng: np.random.Generator) -> Counts:
    """Different integers from 0 to bound - 1, in random order; of any size if of type object."""
    if dtype is np.int64:
        ranks: Counts = rng.choice(bound, size=size, replace=False).astype(np.int64)
        return ranks
    drawn: dict[int, None] = {}
    # Among so many a repetition is a wonder, and is drawn again.
    while len(drawn) < size:
        more = _draw_below(bound, size - len(drawn), rng)
        drawn.update(dict.fromkeys(more.tolist()))
    return np.array(list(drawn), dtype=object)


@dataclass(frozen=True)
class OrderScores:
    """What a conversation can score over all its valid orders, and orders of the extremes."""

    mean: float
    sd: float
    minimum: float
    maximum: float
    worst: tuple[int, ...]
    best: tuple[int, ...]


class Structure(ABC):
    """The valid orders of one conversation.

    ``size``: number of utterances, 1 to 62. ``limit``: the largest number of utterance sets that
    dynamic programming may visit.
    """

    def __init__(self, size: int, limit: int) -> None:
        if not 1 <= size <= _LARGEST_SIZE:
            raise ValueError(f"a conversation has 1 to {_LARGEST_SIZE} utterances, found {size}")
        self.size = size
        self.limit = limit

    @abstractmethod
    def may_follow(self, masks: Masks) -> Booleans:
        """Which utterances may come next behind each set of uttered ones, shaped (sets, n)."""

    @cached_property
    def lattice(self) -> Lattice:
        """Every set of utterances that can have been uttered, and the steps between them."""
        return Lattice.of(self.size, self.may_follow, self.limit)

    @property
    def count(self) -> int:
        """The number of valid orders, an exact integer (permutations, section 3.1; Table 1)."""
        return int(self.lattice.ways_from[0])

    def completions(self, masks: Masks) -> Counts:
        """How many ways there are to go on from each set of uttered utterances, all of one size."""
        size = int(np.bitwise_count(masks).max(initial=0))
        level = self.lattice.levels[size]
        places = np.searchsorted(self.lattice.masks[level], masks)
        n_completions: Counts = self.lattice.ways_from[level][places]
        return n_completions

    @property
    def _onward(self) -> Counts:
        """Completions of each set with each utterance added, 0 where it may not follow."""
        # The 0 at the end is where -1 leads.
        onward: Counts = np.append(self.lattice.ways_from, 0)[self.lattice.after]
        return onward

    def adjacency(self) -> Floats:
        r"""Probability that one utterance directly precedes another, shaped (n, n).

        .. math:: P(vu) = \sum_S \frac{e(S)\, f(S \cup \{v, u\})}{f(\emptyset)}

        over the sets S that v and then u may follow; e counts the beginnings of S and f its
        completions. The sums are exact integers, divided once. Row v, column u: v is uttered
        directly before u. Column sums are 1 minus the probability that u comes first.

        Beyond the paper: with the score of u after v, it gives the mean over all orders
        (`mean_score`).
        """
        counts = np.zeros((self.size, self.size), dtype=object)
        onward = self._onward
        for v, set_with_v in enumerate(self.lattice.after.T):
            v_may_follow = set_with_v >= 0
            beginnings = self.lattice.ways_to[v_may_follow]
            counts[v] = np.dot(beginnings, onward[set_with_v[v_may_follow]])
        return (counts / self.count).astype(np.float64)

    def positions(self) -> Floats:
        r"""Probability of each utterance at each position, shaped (n, n).

        .. math:: P(u \text{ at } i) = \sum_{S : |S| = i} \frac{e(S)\, f(S \cup
        \{u\})}{f(\emptyset)}

        The sums are exact integers, divided once. Row u, column i: u stands at position i, from 0.
        Beyond the paper.
        """
        onward = self._onward
        counts = np.zeros((self.size, self.size), dtype=object)
        for position, level in enumerate(self.lattice.levels[:-1]):
            counts[:, position] = np.dot(self.lattice.ways_to[level], onward[level])
        return (counts / self.count).astype(np.float64)

    def opening(self) -> Floats:
        """Probability of each utterance to come first: the first column of `positions`."""
        return (self._onward[0] / self.count).astype(np.float64)

    @property
    def _dtype(self) -> type:
        return np.int64 if self.count <= LARGEST_INT64 else object

    def _ways_below(self, masks: Masks) -> Counts:
        """How many completions of each set go on below u, shaped (sets, n + 1)."""
        follows = self.may_follow(masks)
        n_completions: Counts = np.zeros((len(masks), self.size + 1), dtype=self._dtype)
        sets_with_u = masks[:, None] | bits(self.size)
        n_completions[:, 1:][follows] = self.completions(sets_with_u[follows])
        return np.cumsum(n_completions, axis=1)

    def _walk(self, orders: Orders) -> Iterator[tuple[Masks, Orders, Orders]]:
        """By position: the sets uttered before it, which of them each order has, what follows."""
        masks = np.zeros(len(orders), dtype=np.uint64)
        for utterance in orders.T:
            distinct_sets, set_of_order = np.unique(masks, return_inverse=True)
            yield distinct_sets, set_of_order, utterance
            masks |= bits(self.size)[utterance]

    def is_valid(self, orders: ArrayLike) -> Booleans:
        """Whether each order, shaped (orders, n), respects the structure."""
        stacked = np.asarray(orders)
        if stacked.ndim != 2 or stacked.shape[1] != self.size or stacked.dtype.kind not in "iu":
            raise ValueError(
                f"orders are utterance numbers shaped (orders, {self.size}),"
                f" found {stacked.dtype} {stacked.shape}"
            )
        valid: Booleans = np.all((stacked >= 0) & (stacked < self.size), axis=1)
        in_range = np.clip(stacked, 0, self.size - 1)
        for masks, set_of_order, utterance in self._walk(in_range):
            valid &= self.may_follow(masks)[set_of_order, utterance]
        return valid

    def rank(self, orders: ArrayLike) -> Counts:
        """Place of each valid order, shaped (orders, n), in lexicographic order; from 0.

        The rank is the sum, over positions, of the completions of every smaller utterance allowed
        there. int64, or Python integers where `count` does not fit.
        """
        stacked = np.asarray(orders)
        invalid = np.flatnonzero(~self.is_valid(orders))
        if len(invalid):
            raise ValueError(
                f"order number {invalid[0]} is not valid here: {stacked[invalid[0]].tolist()}"
            )
        ranks: Counts = np.zeros(len(stacked), dtype=self._dtype)
        for masks, set_of_order, utterance in self._walk(stacked):
            ranks += self._ways_below(masks)[set_of_order, utterance]
        return ranks

    def unrank(self, ranks: ArrayLike) -> Orders:
        """Orders by their rank, shaped (orders, n): the inverse of `rank`."""
        remainder: Counts = np.array(ranks, dtype=self._dtype, ndmin=1)
        if len(remainder) and not (remainder.min() >= 0 and remainder.max() < self.count):
            raise ValueError(
                f"ranks run from 0 to {self.count - 1},"
                f" found {remainder.min()} to {remainder.max()}"
            )
        orders = np.empty((len(remainder), self.size), dtype=np.intp)
        for masks, set_of_order, utterance in self._walk(orders):
            below = self._ways_below(masks)
            # The largest utterance with no more completions below it than remain. It is written
            # into a column of the orders, which the walk reads when it goes on.
            utterance[:] = (below[set_of_order, 1:] <= remainder[:, None]).sum(axis=1)
            remainder -= below[set_of_order, utterance]
        return orders

    def orders(self, limit: int = 1_000_000) -> Orders:
        """Every valid order, in lexicographic order, shaped (count, n); no more than the limit."""
        if self.count > limit:
            raise ValueError(
                f"{self.count} valid orders are more than the limit of {limit}: sample them instead"
            )
        return self.unrank(np.arange(self.count))

    def sample(
        self,
        size: int,
        rng: np.random.Generator,
        *,
        distinct: bool = False,
        exclude: ArrayLike | None = None,
    ) -> Orders:
        """Draw valid orders uniformly; nothing is rejected, however few are valid.

        ``distinct``: False draws independently; True draws a uniform set of different orders, in
        random order, as the paper does (section 4.3). ``exclude``: valid orders that may not be
        drawn, such as that of the script; needs `distinct`.
        """
        if not distinct:
            if exclude is not None:
                raise ValueError(
                    "orders are excluded from distinct samples only: pass distinct=True"
                )
            return self._draw(size, rng)
        excluded: Counts = np.zeros(0, dtype=self._dtype)
        if exclude is not None:
            excluded = np.unique(self.rank(exclude))
        n_available = self.count - len(excluded)
        if size > n_available:
            raise ValueError(f"{size} different orders wanted, but there are only {n_available}")
        ranks = _distinct_ranks(n_available, size, self._dtype, rng)
        # In ascending order, each excluded rank moves those at or above it by one.
        for excluded_rank in excluded:
            ranks[ranks >= excluded_rank] += 1
        return self.unrank(ranks)

    def _draw(self, size: int, rng: np.random.Generator) -> Orders:
        return self.unrank(_draw_below(self.count, size, rng))

    def mean_score(self, scores: ArrayLike, first: ArrayLike | None = None) -> float:
        r"""Exact mean, over all valid orders, of a score of directly preceding utterances.

        .. math:: \sum_u P(u\text{ first})\, f_u + \sum_{v, u} P(v\text{ directly precedes }u)\,
        s_{vu}

        ``scores`` (shaped (n, n)): row v, column u: what utterance u contributes when v directly
        precedes it. Pairs that no valid order puts side by side are not looked at; they may be NaN.
        ``first`` (shaped (n,)): what u contributes when it comes first; 0 where not given. Returns
        the mean of the sums over utterances.

        Beyond the paper, which samples 100 orders; no order is drawn here.
        """
        pairs = np.asarray(scores, dtype=np.float64)
        alone = np.zeros(self.size)
        if first is not None:
            alone = np.asarray(first, dtype=np.float64)
        if pairs.shape != (self.size, self.size) or alone.shape != (self.size,):
            raise ValueError(
                f"scores are shaped ({self.size}, {self.size}) and first ({self.size},),"
                f" found {pairs.shape} and {alone.shape}"
            )
        # Pairs that never meet may be NaN: they are left out of the sums.
        adjacency, opening = self.adjacency(), self.opening()
        meet, opens = adjacency > 0, opening > 0
        mean = float(adjacency[meet] @ pairs[meet] + opening[opens] @ alone[opens])
        if math.isnan(mean):
            raise ValueError("the score of a pair that valid orders put side by side is NaN")
        return mean

    def score_range(self, scores: ArrayLike, first: ArrayLike | None = None) -> OrderScores:
        """Exact mean, deviation, minimum and maximum over all valid orders of a score of pairs.

        Dynamic programming over (set uttered so far, last utterance): the cost grows with the
        number of such sets, not with the number of orders. Takes what `mean_score` takes. Beyond
        the paper.
        """
        mean = self.mean_score(scores, first)
        alone = np.zeros(self.size) if first is None else np.asarray(first)
        # Centred, so that squares do not cancel.
        steps = np.vstack([scores, alone]) - mean / self.size
        steps[np.isnan(steps)] = 0.0  # of pairs that never meet
        lowest, worst = self.lattice.lowest(steps)
        lowest_of_negative, best = self.lattice.lowest(-steps)
        highest = -lowest_of_negative
        sd = 0.0
        if highest - lowest > _ROUNDING * max(1.0, abs(mean)):
            sd = math.sqrt(self.lattice.variance(steps))
        return OrderScores(mean, sd, lowest + mean, highest + mean, worst, best)


class GraphStructure(Structure):
    """The linear extensions of a graph: each utterance comes behind all that it depends on.

    ``edges``: pairs (v, u): v must come before u. ``fixed_first``: True keeps utterance 0 in the
    first place, as the paper does. ``limit``: the largest number of utterance sets that dynamic
    programming may visit. Counting linear extensions is #P-complete in general, so no method is
    fast for every large graph.
    """

    def __init__(
        self,
        size: int,
        edges: Iterable[tuple[int, int]],
        *,
        fixed_first: bool = True,
        limit: int = 2_000_000,
    ) -> None:
        super().__init__(size, limit)
        pairs = {(int(v), int(u)) for v, u in edges}
        unknown = sorted({u for pair in pairs for u in pair if not 0 <= u < size})
        if unknown:
            raise ValueError(
                f"edges between the utterances 0 to {size - 1} are wanted, found {unknown}"
            )
        if fixed_first:
            pairs |= {(0, u) for u in range(1, size)}
        self.edges = frozenset(pairs)
        before: dict[int, list[int]] = {u: [] for u in range(size)}
        for v, u in sorted(pairs):
            before[u].append(v)
        try:
            TopologicalSorter(before).prepare()
        except CycleError as error:
            circle = " -> ".join(str(u) for u in error.args[1])
            raise ValueError(f"the dependencies run in a circle: {circle}") from None
        self._needs = np.zeros(size, dtype=np.uint64)
        for v, u in pairs:
            self._needs[u] |= bits(size)[v]

    def may_follow(self, masks: Masks) -> Booleans:
        """Utterances that have not been uttered, and depend on none that has not."""
        not_uttered = ~members(masks, self.size)
        lacks_nothing = self._needs & ~masks[:, None] == 0
        follows: Booleans = not_uttered & lacks_nothing
        return follows
