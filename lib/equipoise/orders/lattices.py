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
    """Every set of utterances that can have been uttered, sorted by size, and the steps between them.

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
        for _ in range(size):
            follows = may_follow(level)
            reached = level[:, None] | bits(size)
            level = np.unique(reached[follows])
            if total + len(level) > limit:
                found = f"{size} utterances allow more than {limit} sets of uttered utterances"
                raise ValueError(
                    f"{found}, too many for dynamic programming: raise the limit or add dependencies"
                )
            steps.append(
                np.where(follows, total + np.searchsorted(level, reached), -1).astype(np.int32)
            )
            levels.append(slice(total, total + len(level)))
            sets.append(level)
            total += len(level)
        after = np.concatenate([*steps, np.full((1, size), -1, dtype=np.int32)])
        # one place more than there are sets, and last: where no step leads, after has -1
        ways_from = np.zeros(
            total + 1, dtype=np.int64 if math.factorial(size) <= LARGEST_INT64 else object
        )
        ways_from[-2] = 1
        for here in reversed(levels[:-1]):
            ways_from[here] = ways_from[after[here]].sum(axis=1)
        return cls(tuple(levels), np.concatenate(sets), after, ways_from[:-1])

    @cached_property
    def ways_to(self) -> Counts:
        """How many beginnings utter exactly each set."""
        ways = np.zeros(
            len(self.after) + 1, dtype=self.ways_from.dtype
        )  # the last: where no step leads
        ways[0] = 1
        for here in self.levels[:-1]:
            np.add.at(
                ways, self.after[here], ways[here, None]
            )  # adding u to different sets gives different sets
        return ways[:-1]

    def variance(self, steps: Floats) -> float:
        """Mean square, over all orders, of a sum whose mean is 0.

        ``steps`` (shaped (n + 1, n)): what utterance u contributes directly behind v; in the last
        row, at first.
        """
        sums, squares = np.zeros(
            (2, len(self.after), len(steps))
        )  # the last row, of all, is where no step leads too
        ways, each = (
            np.append(self.ways_from.astype(np.float64), 0.0),
            np.arange(self.after.shape[1]),
        )
        onward, onward_squares = np.ascontiguousarray(steps.T), np.ascontiguousarray(steps.T**2)
        for here in reversed(self.levels[:-1]):
            reached = self.after[here]
            way, total, square = (
                ways[reached],
                sums[reached, each],
                squares[reached, each].sum(axis=1, keepdims=True),
            )
            sums[here] = total.sum(axis=1, keepdims=True) + way @ onward
            squares[here] = square + 2 * total @ onward + way @ onward_squares
        return float(squares[0, -1] / ways[0])

    def lowest(self, steps: Floats) -> tuple[float, tuple[int, ...]]:
        """Lowest sum of any order, and the first order, in lexicographic order, that attains it."""
        last, size = steps.shape
        sums = np.full((len(self.after) + 1, last), np.inf)  # the last row: where no step leads
        sums[-2], each, onward = 0.0, np.arange(size), np.ascontiguousarray(steps.T)
        rows = max(1, _NUMBERS_AT_ONCE // steps.size)
        for here in reversed(self.levels[:-1]):
            for start in range(here.start, here.stop, rows):
                some = slice(start, min(start + rows, here.stop))
                sums[some] = (sums[self.after[some], each][:, :, None] + onward).min(axis=1)
        state, order = 0, [-1]
        for _ in range(size):
            order.append(int((sums[self.after[state], each] + steps[order[-1]]).argmin()))
            state = self.after[state, order[-1]]
        return float(sums[0, -1]), tuple(order[1:])
