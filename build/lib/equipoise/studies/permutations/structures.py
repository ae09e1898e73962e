"""Valid orders of the utterances of a scripted conversation: count, enumerate, rank, sample, and average over them.

A conversation has n utterances, numbered 0 to n - 1 in the order of its script. A `Structure` says which orders keep
every utterance answerable. `ClassStructure` is the paper's: utterances are self-explanatory (SE), depend on the first
topic (FT) or on a previous topic (PT); everything about it is known in closed form. `GraphStructure` is any directed
acyclic graph of "must come before"; it is solved by dynamic programming over the sets of utterances that can have been
uttered so far (the order ideals of the graph).

An order is an array of n utterance numbers, first uttered first; many orders are stacked, shaped (orders, n). Orders
are ranked lexicographically, from 0 to count - 1. Counts are exact integers of any size.

References
----------
permutations: Faggioli, Ferrante, Ferro, Perego, Tonellotto, "A Dependency-Aware Utterances Permutation Strategy to
Improve Conversational Evaluation", section 3.1.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.arrays import Floats
from equipoise.studies.permutations.data import CLASSES

Orders = NDArray[np.intp]
Masks = NDArray[np.uint64]
Counts = NDArray[Any]  # int64 where every count fits, Python integers (dtype object) where not

_LARGEST_SIZE = 62  # utterances: a set of them is one 64-bit word
_ROUNDING = 1e-12  # a smaller spread of a score, relative to it, is rounding
_LARGEST_INT64 = int(np.iinfo(np.int64).max)


def _bit(utterance: int) -> np.uint64:
    return np.uint64(1 << utterance)


def _mask(utterances: Iterable[int]) -> np.uint64:
    return np.uint64(sum(1 << u for u in set(utterances)))


def _has(masks: Masks, utterance: int) -> NDArray[np.bool_]:
    has: NDArray[np.bool_] = (masks & _bit(utterance)) != 0
    return has


def _factorials(largest: int, dtype: type) -> Counts:
    return np.array([math.factorial(k) for k in range(largest + 1)], dtype=dtype)


def _below(bound: int, size: int, rng: np.random.Generator) -> Counts:
    """Draw integers from 0 to bound - 1, uniformly and independently, for a bound of any size."""
    if bound <= _LARGEST_INT64:
        return rng.integers(bound, size=size)
    length = (bound.bit_length() + 7) // 8
    surplus = 8 * length - bound.bit_length()
    drawn: list[int] = []
    while len(drawn) < size:
        candidate = int.from_bytes(rng.bytes(length), "little") >> surplus
        if candidate < bound:
            drawn.append(candidate)
    return np.array(drawn, dtype=object)


@dataclass(frozen=True)
class _Lattice:
    """Every set of utterances that can have been uttered, and the steps between them.

    Sets are sorted by size, `levels` holds the bounds of each size; `after[s, u]` is the number of the set s with u
    added, -1 where u may not follow; `ways_to` counts the beginnings that utter exactly s, `ways_from` the completions.
    """

    levels: tuple[slice, ...]
    masks: Masks
    after: NDArray[np.int32]
    ways_to: Counts
    ways_from: Counts


@dataclass(frozen=True)
class OrderScores:
    """What the score of a conversation can be, over all its valid orders.

    ``mean``, ``sd``: Mean and standard deviation of the score of a uniformly drawn valid order. ``minimum``,
    ``maximum``: the lowest and the highest score of any valid order. ``worst``, ``best``: an order that attains the
    minimum, and one that attains the maximum.
    """

    mean: float
    sd: float
    minimum: float
    maximum: float
    worst: tuple[int, ...]
    best: tuple[int, ...]


class Structure(ABC):
    """The valid orders of one conversation; see `ClassStructure` and `GraphStructure`.

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
        """The number of valid orders, an exact integer."""

    @abstractmethod
    def _available(self, masks: Masks) -> Masks:
        """Utterances that may come next, once those of each mask have been uttered."""

    @abstractmethod
    def _completions(self, masks: Masks) -> Counts:
        """Count the ways to finish a conversation in which each mask has been uttered."""

    @abstractmethod
    def adjacency(self) -> Floats:
        """Probability that one utterance directly precedes another in a uniformly drawn valid order.

        Returns ndarray, shaped (n, n): Row v, column u: the probability that v is uttered directly before u.
        Column sums are 1 minus the probability that u comes first. Closed form for classes, dynamic programming
        for graphs.

        Beyond the paper: with the score of u after v, it gives the mean over all orders (`mean_score`).
        """

    @abstractmethod
    def positions(self) -> Floats:
        """Probability of each utterance at each position in a uniformly drawn valid order.

        Returns ndarray, shaped (n, n): Row u, column i: the probability that utterance u stands at position i
        (from 0). Rows and columns sum to 1.

        Beyond the paper.
        """

    @property
    def _dtype(self) -> type:
        return np.int64 if self.count <= _LARGEST_INT64 else object

    def _as_orders(self, orders: ArrayLike) -> Orders:
        stacked = np.asarray(orders)
        if stacked.ndim != 2 or stacked.shape[1] != self.size or stacked.dtype.kind not in "iu":
            raise ValueError(
                f"orders are utterance numbers shaped (orders, {self.size}), found {stacked.dtype} {stacked.shape}"
            )
        return stacked.astype(np.intp, copy=False)

    def is_valid(self, orders: ArrayLike) -> NDArray[np.bool_]:
        """Whether each order respects the structure.

        ``orders`` (shaped (orders, n)): Utterance numbers, first uttered first. Returns ndarray of bool, shaped
        (orders,).

        permutations, section 3.1.
        """
        stacked = self._as_orders(orders)
        valid = np.asarray(((stacked >= 0) & (stacked < self.size)).all(axis=1))
        masks = np.zeros(len(stacked), dtype=np.uint64)
        for position in range(self.size):
            step = np.left_shift(np.uint64(1), np.clip(stacked[:, position], 0, self.size - 1).astype(np.uint64))
            allowed = np.zeros(len(stacked), dtype=bool)  # what may follow an invalid beginning is not asked for
            allowed[valid] = (self._available(masks[valid]) & step[valid]) != 0
            valid = allowed
            masks |= step
        return valid

    def rank(self, orders: ArrayLike) -> Counts:
        """Place of each order among all valid orders, sorted lexicographically.

        ``orders`` (shaped (orders, n)): Valid orders. Returns ndarray of int, shaped (orders,): From 0 to count
        - 1; int64, or Python integers where count does not fit.

        The rank is the sum, over positions, of the completions of every smaller utterance allowed there.
        """
        stacked = self._as_orders(orders)
        wrong = np.flatnonzero(~self.is_valid(stacked))
        if len(wrong):
            raise ValueError(f"order number {wrong[0]} is not valid here: {stacked[wrong[0]].tolist()}")
        masks = np.zeros(len(stacked), dtype=np.uint64)
        ranks: Counts = np.zeros(len(stacked), dtype=self._dtype)
        for position in range(self.size):
            free = self._available(masks)
            for u in range(self.size):
                skipped = _has(free, u) & (u < stacked[:, position])
                ranks[skipped] += self._completions(masks[skipped] | _bit(u))
            masks |= np.left_shift(np.uint64(1), stacked[:, position].astype(np.uint64))
        return ranks

    def unrank(self, ranks: ArrayLike) -> Orders:
        """Orders by their rank: the inverse of `rank`.

        ``ranks`` (shaped (orders,)): From 0 to count - 1. Returns ndarray of int, shaped (orders, n).

        See `rank`.
        """
        rest: Counts = np.array(ranks, dtype=self._dtype, ndmin=1)
        if len(rest) and not (rest.min() >= 0 and rest.max() < self.count):
            raise ValueError(f"ranks run from 0 to {self.count - 1}, found {rest.min()} to {rest.max()}")
        orders = np.full((len(rest), self.size), -1, dtype=np.intp)
        masks = np.zeros(len(rest), dtype=np.uint64)
        for position in range(self.size):
            free = self._available(masks)
            open_rows = np.arange(len(rest))
            for u in range(self.size):
                candidates = open_rows[_has(free[open_rows], u)]
                completions = self._completions(masks[candidates] | _bit(u))
                taken = rest[candidates] < completions
                rest[candidates[~taken]] -= completions[~taken]
                orders[candidates[taken], position] = u
                open_rows = open_rows[orders[open_rows, position] < 0]
            masks |= np.left_shift(np.uint64(1), orders[:, position].astype(np.uint64))
        return orders

    def orders(self, limit: int = 1_000_000) -> Orders:
        """Every valid order, in lexicographic order.

        ``limit``: the largest number of orders to enumerate. Returns ndarray of int, shaped (count, n).

        permutations, section 3.1 and Table 1.
        """
        if self.count > limit:
            raise ValueError(f"{self.count} valid orders are more than the limit of {limit}: sample them instead")
        return self.unrank(np.arange(self.count))

    def sample(
        self,
        size: int,
        rng: np.random.Generator,
        *,
        distinct: bool = False,
        exclude: ArrayLike | None = None,
    ) -> Orders:
        """Draw valid orders uniformly; nothing is rejected, so the cost does not depend on how few are valid.

        ``size``: how many. ``rng``: the source of randomness; the same state gives the same orders.
        ``distinct``: False draws independently; True draws a uniform set of different orders, in random order,
        as the paper does. ``exclude`` (shaped (orders, n)): Valid orders that may not be drawn (the original
        one, for example); needs `distinct`. Returns ndarray of int, shaped (size, n).

        permutations, section 4.3 (100 different orders of each conversation).
        """
        if not distinct:
            if exclude is not None:
                raise ValueError("orders are excluded from distinct samples only: pass distinct=True")
            return self._draw(size, rng)
        barred = np.unique(self.rank(exclude)) if exclude is not None else np.zeros(0, dtype=self._dtype)
        left = self.count - len(barred)
        if size > left:
            raise ValueError(f"{size} different orders wanted, but there are only {left}")
        if left <= _LARGEST_INT64:
            ranks: Counts = rng.choice(left, size=size, replace=False).astype(self._dtype)
        else:
            kept: dict[int, None] = {}
            while len(kept) < size:  # a repetition among so many is a wonder, and is drawn again
                kept.update(dict.fromkeys(_below(left, size - len(kept), rng).tolist()))
            ranks = np.array(list(kept), dtype=object)
        for place in barred:  # ascending: each barred rank moves those at or above it by one
            ranks[ranks >= place] += 1
        return self.unrank(ranks)

    def _draw(self, size: int, rng: np.random.Generator) -> Orders:
        return self.unrank(_below(self.count, size, rng))

    @cached_property
    def _lattice(self) -> _Lattice:
        level = np.zeros(1, dtype=np.uint64)
        levels, sets, steps, total = [slice(0, 1)], [level], [], 1
        for _ in range(self.size):
            free = self._available(level)
            grown = [(u, np.flatnonzero(_has(free, u))) for u in range(self.size)]
            nexts = [level[rows] | _bit(u) for u, rows in grown]
            following = np.unique(np.concatenate(nexts))
            if total + len(following) > self.limit:
                raise ValueError(
                    f"this structure of {self.size} utterances allows more than {self.limit} sets of uttered "
                    "utterances: too many for dynamic programming; raise the limit or add dependencies"
                )
            after = np.full((len(level), self.size), -1, dtype=np.int32)
            for (u, rows), reached in zip(grown, nexts, strict=True):
                after[rows, u] = total + np.searchsorted(following, reached)
            steps.append(after)
            levels.append(slice(total, total + len(following)))
            sets.append(following)
            level, total = following, total + len(following)
        steps.append(np.full((len(level), self.size), -1, dtype=np.int32))
        after = np.concatenate(steps)
        dtype = np.int64 if math.factorial(self.size) <= _LARGEST_INT64 else object
        ways_to, ways_from = np.zeros(total, dtype=dtype), np.zeros(total, dtype=dtype)
        ways_to[0] = ways_from[-1] = 1
        for here in levels:
            for u in range(self.size):
                rows = here.start + np.flatnonzero(after[here, u] >= 0)
                ways_to[after[rows, u]] += ways_to[rows]  # adding u to different sets gives different sets
        for here in reversed(levels):
            for u in range(self.size):
                rows = here.start + np.flatnonzero(after[here, u] >= 0)
                ways_from[rows] += ways_from[after[rows, u]]
        return _Lattice(tuple(levels), np.concatenate(sets), after, ways_to, ways_from)

    def _pair_scores(self, scores: ArrayLike, first: ArrayLike | None) -> tuple[Floats, Floats]:
        pairs = np.asarray(scores, dtype=np.float64)
        alone = np.zeros(self.size) if first is None else np.asarray(first, dtype=np.float64)
        if pairs.shape != (self.size, self.size) or alone.shape != (self.size,):
            raise ValueError(
                f"scores are shaped ({self.size}, {self.size}) and first ({self.size},), "
                f"found {pairs.shape} and {alone.shape}"
            )
        return pairs, alone

    def mean_score(self, scores: ArrayLike, first: ArrayLike | None = None) -> float:
        r"""Exact mean, over all valid orders, of a score that depends on the directly preceding utterance only.

        .. math:: \sum_u P(u\text{ first})\, f_u + \sum_{v, u} P(v\text{ directly precedes }u)\, s_{vu}

        ``scores`` (shaped (n, n)): row v, column u: what utterance u contributes when v directly precedes it.
        Pairs that no valid order puts side by side are not looked at; they may be NaN. ``first`` (shaped (n,)):
        what u contributes when it comes first; 0 where not given. Returns: The mean of the sums over
        utterances, in the unit of the scores.

        Beyond the paper, which samples 100 orders; no order is drawn here.
        """
        pairs, alone = self._pair_scores(scores, first)
        adjacency, opening = self.adjacency(), self.positions()[:, 0]
        used, begins = adjacency > 0, opening > 0
        mean = float(adjacency[used] @ pairs[used] + opening[begins] @ alone[begins])
        if math.isnan(mean):
            raise ValueError("the score of a pair that valid orders put side by side is NaN")
        return mean

    def score_range(self, scores: ArrayLike, first: ArrayLike | None = None) -> OrderScores:
        """Exact mean, standard deviation, minimum and maximum over all valid orders of a score of adjacent pairs.

        Dynamic programming over (set uttered so far, last utterance): the cost grows with the number of such sets, not
        with the number of orders.

        ``scores`` (shaped (n, n)): row v, column u: what utterance u contributes when v directly precedes it.
        Pairs that no valid order puts side by side are not looked at; they may be NaN. ``first`` (shaped (n,)):
        what u contributes when it comes first; 0 where not given. Returns: Of the sums over utterances.

        Beyond the paper. Of equally good orders, the one returned has the smallest numbers from its end backwards.
        """
        pairs, alone = self._pair_scores(scores, first)
        lattice = self._lattice
        centre = self.mean_score(pairs, alone) / self.size  # taken off every utterance, so that squares do not cancel
        pairs, alone = pairs - centre, alone - centre
        shape = (len(lattice.after), self.size)
        ways, sums, squares = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
        low_from, high_from = np.zeros(shape, dtype=np.int8), np.zeros(shape, dtype=np.int8)
        for u in np.flatnonzero(lattice.after[0] >= 0).tolist():
            target = lattice.after[0, u]
            ways[target, u], sums[target, u], squares[target, u] = 1.0, alone[u], alone[u] ** 2
            low[target, u] = high[target, u] = alone[u]
        for here in lattice.levels[1:]:
            for u in range(self.size):
                rows = here.start + np.flatnonzero(lattice.after[here, u] >= 0)
                target = lattice.after[rows, u]
                step = np.where(ways[rows] > 0, pairs[:, u], 0.0)
                ways[target, u] = ways[rows].sum(axis=1)
                sums[target, u] = (sums[rows] + ways[rows] * step).sum(axis=1)
                squares[target, u] = (squares[rows] + 2 * sums[rows] * step + ways[rows] * step**2).sum(axis=1)
                lows, highs = low[rows] + step, high[rows] + step
                low[target, u], high[target, u] = lows.min(axis=1), highs.max(axis=1)
                low_from[target, u], high_from[target, u] = lows.argmin(axis=1), highs.argmax(axis=1)
        mean = sums[-1].sum() / ways[-1].sum()
        variance = squares[-1].sum() / ways[-1].sum() - mean**2
        shift = centre * self.size
        varies = high[-1].max() - low[-1].min() > _ROUNDING * max(1.0, abs(shift))
        return OrderScores(
            mean=float(mean + shift),
            sd=float(np.sqrt(max(variance, 0.0))) if varies else 0.0,
            minimum=float(low[-1].min() + shift),
            maximum=float(high[-1].max() + shift),
            worst=self._backwards(low_from, int(low[-1].argmin())),
            best=self._backwards(high_from, int(high[-1].argmax())),
        )

    def _backwards(self, previous: NDArray[np.int8], last: int) -> tuple[int, ...]:
        """Read an order from the predecessors that dynamic programming kept."""
        lattice, order, state = self._lattice, [last], len(self._lattice.masks) - 1
        for level in lattice.levels[self.size - 1 : 0 : -1]:
            before = lattice.masks[state] ^ _bit(order[-1])
            order.append(int(previous[state, order[-1]]))
            state = level.start + int(np.searchsorted(lattice.masks[level], before))
        return tuple(reversed(order))


class ClassStructure(Structure):
    """The paper's dependency structure: blocks of utterances behind a first utterance that stays where it is.

    The first block opens the conversation. The other blocks follow in any order; within every block the head comes
    first and its followers come directly behind it, in any order.

    ``blocks``: Utterance numbers; in each block the head first. Together they are 0 to n - 1, each once, and the
    first block starts with utterance 0. ``limit``: the largest number of utterance sets that `score_range` may
    visit.

    permutations, section 3.1. With b blocks behind the first and f followers in each block, there are
    b! * product of f! orders.
    """

    def __init__(self, blocks: Sequence[Sequence[int]], limit: int = 2_000_000) -> None:
        self.blocks = tuple(tuple(int(u) for u in block) for block in blocks)
        members = [u for block in self.blocks for u in block]
        super().__init__(len(members), limit)
        if sorted(members) != list(range(self.size)) or not all(self.blocks) or self.blocks[0][0] != 0:
            raise ValueError(
                f"blocks must hold the utterances 0 to {self.size - 1} once each and open with 0, found {self.blocks}"
            )
        self._heads = _mask(block[0] for block in self.blocks[1:])
        self._followers = [_mask(block[1:]) for block in self.blocks]

    @classmethod
    def from_classes(
        cls,
        classes: Sequence[str],
        *,
        pt_behind_ft: Literal["ft", "se"] = "ft",
        limit: int = 2_000_000,
    ) -> ClassStructure:
        """Structure of a conversation from the class of each of its utterances.

        The first utterance stays in its place; an SE opens a block; an FT is a block of one; a PT follows the block
        of the utterance that it depends on.

        ``classes``: "SE", "FT" or "PT", in the order of the script; the first must be "SE". ``pt_behind_ft``:
        where a PT goes whose script has an FT between it and the last SE: with that FT, as in the authors'
        program, or with that SE, as in the paper's wording. The wording can make the script itself an invalid
        order (the FT would part the PT from its SE), so the program's reading is the default. ``limit``: the
        largest number of utterance sets that `score_range` may visit.

        permutations, section 3.1.
        """
        if pt_behind_ft not in ("ft", "se"):
            raise ValueError(f"pt_behind_ft is 'ft' or 'se', found {pt_behind_ft!r}")
        if not len(classes):
            raise ValueError("a conversation without a first utterance has no orders: no classes were given")
        unknown = [f"{name!r} at utterance {place}" for place, name in enumerate(classes, 1) if name not in CLASSES]
        if unknown:
            raise ValueError(f"unknown utterance class {', '.join(unknown)}; the classes are {', '.join(CLASSES)}")
        if classes[0] != "SE":
            raise ValueError(
                f"the first utterance must be self-explanatory (SE), found {classes[0]}: "
                "it has no earlier utterance to depend on"
            )
        blocks: list[list[int]] = []
        home = 0
        for u, name in enumerate(classes):
            if name == "PT":
                blocks[home].append(u)
                continue
            blocks.append([u])
            if name == "SE" or pt_behind_ft == "ft":
                home = len(blocks) - 1
        return cls(blocks, limit=limit)

    @property
    def count(self) -> int:
        """The number of valid orders: (blocks behind the first)! times the product of (followers)!.

        permutations, section 3.1; Table 1.
        """
        return math.factorial(len(self.blocks) - 1) * math.prod(math.factorial(len(b) - 1) for b in self.blocks)

    def _available(self, masks: Masks) -> Masks:
        begun = [block[0] for block in self.blocks]
        unfinished = np.zeros_like(masks)
        for head, followers in zip(begun, self._followers, strict=True):
            unfinished |= np.where(_has(masks, head), followers & ~masks, np.uint64(0))
        opened = np.where(unfinished != 0, unfinished, self._heads & ~masks)
        return np.where(masks == 0, _bit(0), opened)

    def _completions(self, masks: Masks) -> Counts:
        factorial = _factorials(self.size, self._dtype)
        ways: Counts = factorial[np.bitwise_count(self._heads & ~masks)]
        for followers in self._followers:
            ways = ways * factorial[np.bitwise_count(followers & ~masks)]
        return ways

    def _draw(self, size: int, rng: np.random.Generator) -> Orders:
        lengths = np.array([len(block) for block in self.blocks])
        places = np.arange(len(self.blocks))
        shuffled = rng.permuted(np.broadcast_to(places[1:], (size, len(places) - 1)), axis=1)
        ends = np.cumsum(lengths[shuffled], axis=1) + lengths[0]
        starts = np.zeros((size, len(places)), dtype=np.intp)
        np.put_along_axis(starts, shuffled, ends - lengths[shuffled], axis=1)
        orders = np.empty((size, self.size), dtype=np.intp)
        rows = np.arange(size)[:, None]
        for place, block in enumerate(self.blocks):
            followers = rng.permuted(
                np.broadcast_to(np.array(block[1:], dtype=np.intp), (size, len(block) - 1)), axis=1
            )
            orders[rows, starts[:, [place]]] = block[0]
            orders[rows, starts[:, [place]] + np.arange(1, len(block))] = followers
        return orders

    def adjacency(self) -> Floats:
        """Probability that one utterance directly precedes another in a uniformly drawn valid order, in closed form.

        In a block with f followers each of its other utterances directly precedes a follower with probability 1 / f;
        with b blocks behind the first, the end of any other block (the opening included) directly precedes a head with
        probability 1 / b.

        Returns ndarray, shaped (n, n): Row v, column u: the probability that v is uttered directly before u.

        Beyond the paper.
        """
        probability = np.zeros((self.size, self.size))
        heads = np.array([block[0] for block in self.blocks[1:]], dtype=np.intp)
        for block in self.blocks:
            followers = np.array(block[1:], dtype=np.intp)
            ends = followers if len(followers) else np.array(block[:1])
            probability[np.ix_(ends, heads[heads != block[0]])] = 1 / max(len(heads), 1) / len(ends)
            probability[np.ix_(np.array(block), followers)] = 1 / max(len(followers), 1)
        np.fill_diagonal(probability, 0.0)
        return probability

    def positions(self) -> Floats:
        """Probability of each utterance at each position in a uniformly drawn valid order, in closed form.

        The head of a block stands behind a uniformly drawn set of other blocks: a knapsack recursion counts the sets
        by their number of blocks and of utterances.

        Returns ndarray, shaped (n, n): Row u, column i: the probability that utterance u stands at position i
        (from 0).

        Beyond the paper.
        """
        probability = np.zeros((self.size, self.size))
        lengths = [len(block) for block in self.blocks]
        for place, block in enumerate(self.blocks):
            start = np.zeros(self.size + 1)
            if place == 0:
                start[0] = 1.0
            else:
                others = [length for other, length in enumerate(lengths) if other not in (0, place)]
                sets = np.zeros((len(others) + 1, self.size + 1))  # [number of blocks, number of utterances]
                sets[0, 0] = 1.0
                for length in others:
                    sets[1:, length:] += sets[:-1, :-length].copy()
                ahead = np.array([math.comb(len(others), blocks) for blocks in range(len(others) + 1)])
                start[lengths[0] :] = (sets / ahead[:, None]).sum(axis=0)[: -lengths[0]] / len(ahead)
            probability[block[0]] = start[:-1]
            followers = len(block) - 1
            for offset in range(1, followers + 1):
                probability[block[1:], offset:] += start[:-1][:-offset] / followers
        return probability


class GraphStructure(Structure):
    """The valid orders of any directed acyclic graph of "must come before".

    ``size``: number of utterances, 1 to 62. ``edges``: Pairs (v, u): v must come before u, though not directly.
    ``fixed_first``: True keeps utterance 0 in the first place, as the paper does. ``limit``: the largest number of
    utterance sets (order ideals) that dynamic programming may visit.

    permutations, section 3.1 (dependencies); the paper's related work models conversations as graphs.
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
        strangers = sorted({u for pair in pairs for u in pair if not 0 <= u < size})
        if strangers:
            raise ValueError(f"edges between the utterances 0 to {size - 1} are wanted, found {strangers}")
        if fixed_first:
            pairs |= {(0, u) for u in range(1, size)}
        self.edges = frozenset(pairs)
        before: dict[int, list[int]] = {u: sorted(v for v, w in pairs if w == u) for u in range(size)}
        try:
            TopologicalSorter(before).prepare()
        except CycleError as error:
            circle = " -> ".join(str(u) for u in error.args[1])
            raise ValueError(f"the dependencies run in a circle: {circle}") from None
        self._needed = [_mask(before[u]) for u in range(size)]

    @property
    def count(self) -> int:
        """The number of valid orders (linear extensions), by dynamic programming over order ideals.

        Counting linear extensions is #P-complete in general, so no method is fast for every large graph.
        """
        return int(self._lattice.ways_from[0])

    def _available(self, masks: Masks) -> Masks:
        free = np.zeros_like(masks)
        for u, needed in enumerate(self._needed):
            free |= np.where(((masks & needed) == needed) & ~_has(masks, u), _bit(u), np.uint64(0))
        return free

    @cached_property
    def _by_mask(self) -> tuple[Masks, Counts]:
        order = np.argsort(self._lattice.masks)
        return self._lattice.masks[order], self._lattice.ways_from[order]

    def _completions(self, masks: Masks) -> Counts:
        known, ways = self._by_mask
        found: Counts = ways[np.searchsorted(known, masks)]
        return found

    def adjacency(self) -> Floats:
        r"""Probability that one utterance directly precedes another in a uniformly drawn valid order.

        .. math:: P(vu) = \sum_S \frac{e(S)\, f(S \cup \{v, u\})}{f(\emptyset)}

        over the order ideals S that v and then u may follow; e counts the beginnings of S and f its completions.

        Returns ndarray, shaped (n, n): Row v, column u: the probability that v is uttered directly before u.

        Beyond the paper. The sums are exact integers, divided once.
        """
        lattice, counts = self._lattice, np.zeros((self.size, self.size), dtype=object)
        for v in range(self.size):
            start = np.flatnonzero(lattice.after[:, v] >= 0)
            middle = lattice.after[start, v]
            for u in range(self.size):
                end = lattice.after[middle, u]
                there = end >= 0
                counts[v, u] = int(np.dot(lattice.ways_to[start[there]], lattice.ways_from[end[there]]))
        return (counts / self.count).astype(np.float64)

    def positions(self) -> Floats:
        r"""Probability of each utterance at each position in a uniformly drawn valid order.

        .. math:: P(u \text{ at } i) = \sum_{S : |S| = i} \frac{e(S)\, f(S \cup \{u\})}{f(\emptyset)}

        Returns ndarray, shaped (n, n): Row u, column i: the probability that utterance u stands at position i
        (from 0).

        Beyond the paper. The sums are exact integers, divided once.
        """
        lattice, counts = self._lattice, np.zeros((self.size, self.size), dtype=object)
        for position, level in enumerate(lattice.levels[:-1]):
            for u in range(self.size):
                start = level.start + np.flatnonzero(lattice.after[level, u] >= 0)
                end = lattice.after[start, u]
                counts[u, position] = int(np.dot(lattice.ways_to[start], lattice.ways_from[end]))
        return (counts / self.count).astype(np.float64)
