"""The sets of utterances that a conversation can pass through, and dynamic programming over them.

These are the order ideals of a structure. What an order scores as a sum over adjacent pairs has a
mean, a spread and extremes over all orders that follow from (set uttered so far, last utterance),
whatever the number of orders.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.arrays import Booleans, Floats

Masks = NDArray[np.uint64]
Counts = NDArray[Any]  # int64 where every count fits, Python integers (dtype object) where not

LARGEST_INT64 = int(np.iinfo(np.int64).max)
_NUMBERS_AT_ONCE = 1_000_000  # bounds the memory of the search for extremes


@cache
def bits(size: int) -> Masks:
    """The masks of the single utterances."""
    return np.left_shift(np.uint64(1), np.arange(size, dtype=np.uint64))


def members(masks: Masks, size: int) -> Booleans:
    """Which utterances are in each set, shaped (sets, n)."""
    inside: Booleans = (masks[:, None] & bits(size)) != 0
    return inside


@dataclass(frozen=True)
class Lattice:
    """Every set of utterances that can have been uttered, by size, and the steps between them.

    ``levels`` holds the bounds of each size; ``after[s, u]`` is the number of the set s with u
    added, -1 where u may not follow; ``ways_from`` counts the completions of s.
    """

    levels: tuple[slice, ...]
    masks: Masks
    after: NDArray[np.int32]
    ways_from: Counts

    @classmethod
    def of(cls, size: int, may_follow: Callable[[Masks], Booleans], limit: int) -> Lattice:
        """Visit every set, the empty one first; ``limit`` is the most that may be visited."""
        level, total = np.zeros(1, dtype=np.uint64), 1
        levels, sets, steps = [slice(0, 1)], [level], []
        for n_uttered in range(1, size + 1):
            follows = may_follow(level)
            # A set of n is reached from n sets at most: there are too many before they are made.
            fewest = -(-int(follows.sum()) // n_uttered)
            if total + fewest > limit:
                raise ValueError(
                    f"{size} utterances allow more than {limit:,} sets of uttered utterances, too"
                    " many to count their orders: add dependencies, or part the conversation"
                )
            with_u = level[:, None] | bits(size)  # (sets, n)
            level = np.unique(with_u[follows])
            number = total + np.searchsorted(level, with_u)
            steps.append(np.where(follows, number, -1).astype(np.int32))
            levels.append(slice(total, total + len(level)))
            sets.append(level)
            total += len(level)
        nothing_follows = np.full((1, size), -1, dtype=np.int32)
        after = np.concatenate([*steps, nothing_follows])

        # One place more than there are sets, which stays 0: where -1 of after leads.
        fits = math.factorial(size) <= LARGEST_INT64
        ways_from = np.zeros(total + 1, dtype=np.int64 if fits else object)
        ways_from[-2] = 1
        for bounds in reversed(levels[:-1]):
            ways_from[bounds] = ways_from[after[bounds]].sum(axis=1)
        return cls(tuple(levels), np.concatenate(sets), after, ways_from[:-1])

    @cached_property
    def ways_to(self) -> Counts:
        """How many beginnings utter exactly each set."""
        # One place more than there are sets, where -1 of after leads.
        n_beginnings = np.zeros(len(self.after) + 1, dtype=self.ways_from.dtype)
        n_beginnings[0] = 1
        for level in self.levels[:-1]:
            # Many sets lead to one; `add.at` adds for each of them.
            np.add.at(n_beginnings, self.after[level], n_beginnings[level, None])
        return n_beginnings[:-1]

    def variance(self, steps: Floats) -> float:
        """Mean square, over all orders, of a sum whose mean is 0.

        ``steps`` (shaped (n + 1, n)): what utterance u contributes directly behind v; in the last
        row, at first.
        """
        # Of each set and last utterance: the sum over all completions, and the sum of its squares.
        # The last row stays 0: where -1 of after leads.
        sums, squares = np.zeros((2, len(self.after), len(steps)))
        n_completions = np.append(self.ways_from.astype(np.float64), 0.0)
        utterance = np.arange(self.after.shape[1])
        onward = np.ascontiguousarray(steps.T)
        onward_squares = np.ascontiguousarray(steps.T**2)
        for level in reversed(self.levels[:-1]):
            with_u = self.after[level]
            n_ways, sums_of_u = n_completions[with_u], sums[with_u, utterance]
            squares_of_u = squares[with_u, utterance].sum(axis=1, keepdims=True)
            sums[level] = sums_of_u.sum(axis=1, keepdims=True) + n_ways @ onward
            # (a + b)^2 = a^2 + 2 a b + b^2, with a what comes later and b the step to u
            squares[level] = squares_of_u + 2 * sums_of_u @ onward + n_ways @ onward_squares
        return float(squares[0, -1] / n_completions[0])

    def lowest(self, steps: Floats) -> tuple[float, tuple[int, ...]]:
        """Lowest sum of any order, and the first order, in lexicographic order, that attains it."""
        n_last, size = steps.shape
        # Of each set and last utterance: the lowest sum of a completion. The last row stays
        # infinite: where -1 of after leads.
        sums = np.full((len(self.after) + 1, n_last), np.inf)
        sums[-2] = 0.0
        utterance, onward = np.arange(size), np.ascontiguousarray(steps.T)
        sets_at_once = max(1, _NUMBERS_AT_ONCE // steps.size)
        for level in reversed(self.levels[:-1]):
            for start in range(level.start, level.stop, sets_at_once):
                block = slice(start, min(start + sets_at_once, level.stop))
                sums_of_u = sums[self.after[block], utterance]  # (sets, n)
                sums[block] = (sums_of_u[:, :, None] + onward).min(axis=1)

        # From the empty set on, the first utterance that attains the lowest sum.
        state, previous, order = 0, -1, []
        for _ in range(size):
            previous = int((sums[self.after[state], utterance] + steps[previous]).argmin())
            order.append(previous)
            state = self.after[state, previous]
        return float(sums[0, -1]), tuple(order)
