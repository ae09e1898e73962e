"""Valid permutations of the utterances of a conversation: count, sample, and average over them.

A conversation has n utterances, numbered 0 to n - 1 in the original order. A structure says which
permutations keep every utterance answerable: the paper's classes (`ClassStructure`), or any graph
of "must come before" (`GraphStructure`). The first utterance always stays first.

Permutations are stacked, shaped (permutations, n), the utterance that comes first in column 0.

References
----------
permutations: Faggioli, Ferrante, Ferro, Perego, Tonellotto, "A Dependency-Aware Utterances
Permutation Strategy to Improve Conversational Evaluation", section 3.1.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from equipoise.arrays import Booleans, Floats, Integers

Permutations = NDArray[np.intp]

# classes of an utterance: self-explanatory, depends on the first topic, depends on a previous topic
CLASSES = ("SE", "FT", "PT")

_MOST_UTTERANCES = 20  # every subset of the utterances is visited
_LARGEST_INT64 = int(np.iinfo(np.int64).max)
_ROUNDING = 1e-12  # a smaller spread of a score, relative to it, is rounding


class Spread(NamedTuple):
    """What a conversation scores over all its valid permutations."""

    mean: float
    sd: float
    minimum: float
    maximum: float


class Structure(ABC):
    """The valid permutations of one conversation.

    What a permutation scores as a sum over adjacent pairs has a mean, a deviation and extremes that
    follow by dynamic programming over (set uttered so far, last utterance), however many
    permutations there are. A set is the number whose bits are its utterances.
    """

    size: int

    @abstractmethod
    def may_follow(self, sets: Integers) -> Booleans:
        """Which utterances may come next after each set of uttered ones, shaped (sets, n)."""

    @cached_property
    def _after(self) -> Integers:
        """Each set with each utterance added, shaped (sets, n); -1 where it may not follow."""
        if self.size > _MOST_UTTERANCES:
            raise ValueError(
                f"exact values need a conversation of at most {_MOST_UTTERANCES} utterances,"
                f" got {self.size}"
            )
        sets = np.arange(2**self.size)
        return np.where(self.may_follow(sets), sets[:, None] | _bits(self.size), -1)

    @cached_property
    def _levels(self) -> list[Integers]:
        """Sets by their number of utterances, without the complete one."""
        n_uttered = np.bitwise_count(np.arange(2**self.size))
        return [np.flatnonzero(n_uttered == size) for size in range(self.size)]

    @cached_property
    def _completions(self) -> Integers:
        """In how many ways each set can be completed; a last 0 is where -1 leads."""
        ways = np.zeros(2**self.size + 1, dtype=np.int64)
        ways[-2] = 1
        for level in reversed(self._levels):
            ways[level] = ways[self._after[level]].sum(axis=1)
        return ways

    @property
    def count(self) -> int:
        """The number of valid permutations (permutations, section 3.1; Table 1)."""
        return int(self._completions[0])

    def adjacency(self) -> Floats:
        r"""Probability that one utterance directly precedes another, shaped (n, n).

        .. math:: P(vu) = \sum_S \frac{e(S)\, f(S \cup \{v, u\})}{f(\emptyset)}

        over the sets S that v and then u may follow; e counts the beginnings of S and f its
        completions. Row v, column u: v is uttered directly before u.

        Beyond the paper.
        """
        # One set more, to which -1 leads.
        beginnings = np.zeros(2**self.size + 1, dtype=np.int64)
        beginnings[0] = 1
        for level in self._levels:
            # Many sets lead to one; `add.at` adds for each of them.
            np.add.at(beginnings, self._after[level], beginnings[level, None])
        n_permutations = np.zeros((self.size, self.size))
        for v, with_v in enumerate(self._after.T):
            sets = np.flatnonzero(with_v >= 0)
            with_v_and_u = self._after[with_v[sets]]
            n_permutations[v] = beginnings[sets].astype(float) @ self._completions[with_v_and_u]
        return n_permutations / self.count

    def mean(self, scores: ArrayLike) -> float:
        """Compute the exact mean over all valid permutations; ``scores`` as of `spread`."""
        pairs = np.array(scores, dtype=np.float64)
        if pairs.shape != (self.size + 1, self.size):
            raise ValueError(
                f"scores must be shaped ({self.size + 1}, {self.size}), got {pairs.shape}"
            )
        adjacency = self.adjacency()
        meet = adjacency > 0
        mean = float(pairs[-1, 0] + adjacency[meet] @ pairs[:-1][meet])
        if math.isnan(mean):
            raise ValueError("the score of a pair that valid permutations put together is NaN")
        return mean

    def spread(self, scores: ArrayLike) -> Spread:
        r"""Exact mean, deviation, minimum and maximum over all valid permutations.

        .. math:: \bar s = s_{0} + \sum_{v, u} P(v\text{ directly precedes }u)\, s_{vu}

        ``scores`` (shaped (n + 1, n)): row v, column u: what utterance u contributes when v
        directly precedes it; in the last row, when it comes first. A permutation scores the sum
        over its utterances. Pairs that no valid permutation puts next to each other may be NaN.

        Beyond the paper, which samples 100 permutations.
        """
        mean = self.mean(scores)
        # Centred, so that squares do not cancel.
        steps = np.array(scores, dtype=np.float64) - mean / self.size
        steps[np.isnan(steps)] = 0.0  # pairs that never meet
        lowest, highest = self._lowest(steps), -self._lowest(-steps)
        sd = 0.0
        if highest - lowest > _ROUNDING * max(1.0, abs(mean)):
            sd = math.sqrt(self._mean_square(steps))
        return Spread(mean, sd, lowest + mean, highest + mean)

    def _lowest(self, steps: Floats) -> float:
        """Lowest sum of any permutation."""
        # By set and last utterance: the lowest sum of a completion; infinite where -1 leads.
        sums = np.full((2**self.size + 1, self.size + 1), np.inf)
        sums[-2] = 0.0
        for level in reversed(self._levels):
            sums_of_next = sums[self._after[level], np.arange(self.size)]  # (sets, n)
            sums[level] = (sums_of_next[:, None, :] + steps).min(axis=2)
        return float(sums[0, -1])

    def _mean_square(self, steps: Floats) -> float:
        """Mean square, over all permutations, of a sum whose mean is 0."""
        # By set and last utterance: the sum over all completions, and the sum of its squares.
        sums, squares = np.zeros((2, 2**self.size + 1, self.size + 1))
        utterance = np.arange(self.size)
        for level in reversed(self._levels):
            with_next = self._after[level]
            n_ways = self._completions[with_next].astype(np.float64)
            sums_of_next = sums[with_next, utterance]
            squares_of_next = squares[with_next, utterance].sum(axis=1, keepdims=True)
            sums[level] = sums_of_next.sum(axis=1, keepdims=True) + n_ways @ steps.T
            # (a + b)^2 = a^2 + 2 a b + b^2, with a what comes later and b the next step
            squares[level] = squares_of_next + 2 * sums_of_next @ steps.T + n_ways @ steps.T**2
        return float(squares[0, -1] / self.count)


def _bits(size: int) -> Integers:
    """The sets of the single utterances."""
    return np.left_shift(1, np.arange(size, dtype=np.int64))


class GraphStructure(Structure):
    """Permutations in which each utterance comes somewhere after all that it depends on.

    ``edges`` are pairs (v, u); v must come before u.
    """

    def __init__(self, size: int, edges: Iterable[tuple[int, int]]) -> None:
        self.size = size
        self.edges = {(0, u) for u in range(1, size)} | set(edges)
        before: dict[int, set[int]] = {u: set() for u in range(size)}
        for v, u in self.edges:
            if not (0 <= v < size and 0 <= u < size):
                raise ValueError(f"edges must join utterances 0 to {size - 1}, got ({v}, {u})")
            before[u].add(v)
        try:
            TopologicalSorter(before).prepare()
        except CycleError as error:
            circle = " -> ".join(str(u) for u in error.args[1])
            raise ValueError(f"the dependencies must not form a circle: {circle}") from None
        self._needs = np.array([sum(1 << v for v in before[u]) for u in range(size)])

    def may_follow(self, sets: Integers) -> Booleans:
        """Utterances that have not been uttered, and depend on none that has not."""
        uttered = (sets[:, None] & _bits(self.size)) != 0
        misses_nothing = (self._needs & ~sets[:, None]) == 0
        return misses_nothing & ~uttered


class ClassStructure(Structure):
    """Blocks of utterances after a first utterance that stays where it is.

    The first block opens the conversation. The other blocks follow in any order. Within every block
    the head comes first and its followers come directly after it, in any order. With b blocks after
    the first and f followers in each block, there are b! * product of f! permutations.

    ``blocks`` are utterance numbers, in each block the head first. Together they are 0 to n - 1,
    each once, and the first block starts with utterance 0.
    """

    def __init__(self, blocks: Sequence[Sequence[int]]) -> None:
        self.blocks = tuple(tuple(block) for block in blocks)
        utterances = [u for block in self.blocks for u in block]
        self.size = len(utterances)
        has_each_once = sorted(utterances) == list(range(self.size))
        if not has_each_once or not all(self.blocks) or self.blocks[0][0] != 0:
            raise ValueError(
                f"blocks must contain the utterances 0 to {self.size - 1} once each, and start"
                f" with 0, got {self.blocks}"
            )
        self.block = np.zeros(self.size, dtype=np.intp)
        for number, block in enumerate(self.blocks):
            self.block[list(block)] = number
        self.head = np.array([block[0] for block in self.blocks])[self.block]
        self.is_head = self.head == np.arange(self.size)

    @classmethod
    def from_classes(
        cls, classes: Sequence[str], *, pt_after: Literal["FT", "SE"] = "FT"
    ) -> ClassStructure:
        """Structure of a conversation from the class of each of its utterances.

        An SE opens a block, an FT is a block of one, and a PT joins the block of the utterance that
        it depends on.

        ``classes`` are "SE", "FT" or "PT" in the original order; the first must be "SE".
        ``pt_after`` is the block of a PT that has an FT between it and the last SE. It is the FT in
        the authors' program, and the SE in the paper's wording. The wording can make the
        original order invalid (the FT would separate the PT from its SE).

        permutations, section 3.1.
        """
        if not len(classes) or classes[0] != "SE":
            raise ValueError("the first utterance must be self-explanatory (SE)")
        blocks: list[list[int]] = []
        home = 0  # the block that a PT follows
        for u, name in enumerate(classes):
            if name not in CLASSES:
                raise ValueError(f"class of utterance {u + 1} must be SE, FT or PT, got {name!r}")
            if name == "PT":
                blocks[home].append(u)
                continue
            blocks.append([u])
            if name == "SE" or pt_after == "FT":
                home = len(blocks) - 1
        return cls(blocks)

    @property
    def count(self) -> int:
        """The number of valid permutations: (blocks after the first)! times each (followers)!."""
        orders_of_blocks = math.factorial(len(self.blocks) - 1)
        return orders_of_blocks * math.prod(math.factorial(len(block) - 1) for block in self.blocks)

    def may_follow(self, sets: Integers) -> Booleans:
        """Followers of a block whose head has been uttered; if none are left, other heads."""
        return self._may_follow((sets[:, None] & _bits(self.size)) != 0)

    def _may_follow(self, uttered: Booleans) -> Booleans:
        followers: Booleans = uttered[:, self.head] & ~uttered & ~self.is_head
        is_first = np.arange(self.size) == 0
        heads = self.is_head & ~uttered & (uttered[:, :1] | is_first)
        return np.where(followers.any(axis=1, keepdims=True), followers, heads)

    def adjacency(self) -> Floats:
        """Probability that one utterance directly precedes another, in closed form.

        In a block with f followers each of its other utterances directly precedes a follower with
        probability 1 / f. With b blocks after the first, the end of any other block directly
        precedes a head with probability 1 / b.
        """
        n_followers = np.bincount(self.block)[self.block] - 1
        same_block = self.block[:, None] == self.block
        # A block ends with a follower, or with its head where it has none.
        can_end_block = self.is_head != (n_followers > 0)
        before_head = can_end_block[:, None] & ~same_block & (self.block > 0)
        share_of_end = 1 / np.maximum(n_followers, 1)
        n_later_blocks = max(len(self.blocks) - 1, 1)
        heads = before_head * share_of_end[:, None] / n_later_blocks
        probability = np.where(self.is_head, heads, same_block * share_of_end)
        np.fill_diagonal(probability, 0.0)
        return probability

    @property
    def keeps_original_order(self) -> bool:
        """Whether the original order is a valid permutation: then it is the first of all."""
        return [u for block in self.blocks for u in block] == list(range(self.size))

    def permutations(self) -> Permutations:
        """Every valid permutation, in lexicographic order."""
        return self.unrank(np.arange(self.count))

    def unrank(self, ranks: ArrayLike) -> Permutations:
        """Permutations by their rank in lexicographic order, from 0; shaped (ranks, n)."""
        remaining = np.array(ranks, dtype=np.int64)
        rows = np.arange(len(remaining))
        permutations = np.empty((len(remaining), self.size), dtype=np.intp)
        uttered = np.zeros(permutations.shape, dtype=bool)
        n_completions = np.full(len(remaining), self.count)
        for position in range(self.size):
            # Each utterance that may follow has as many completions as any other.
            may_follow = self._may_follow(uttered)
            n_completions //= may_follow.sum(axis=1)
            choice, remaining = np.divmod(remaining, n_completions)
            utterance = (may_follow.cumsum(axis=1) > choice[:, None]).argmax(axis=1)
            permutations[:, position] = utterance
            uttered[rows, utterance] = True
        return permutations

    def sample(self, size: int, rng: np.random.Generator) -> Permutations:
        """Draw valid permutations uniformly and independently."""
        # Random keys sort the blocks, and the utterances in each; the lowest key stays first.
        key_of_block = rng.random((size, len(self.blocks)))
        key_in_block = rng.random((size, self.size))
        key_of_block[:, 0] = -1.0
        key_in_block[:, self.is_head] = -1.0
        return np.lexsort((key_in_block, key_of_block[:, self.block]))

    def sample_others(self, size: int, rng: np.random.Generator) -> Permutations:
        """Draw different valid permutations other than the original order, in random order.

        All of them where there are fewer (permutations, section 4.3).
        """
        if self.count > _LARGEST_INT64:
            # Among so many, none is drawn twice.
            return self.sample(size, rng)
        n_others = self.count - 1
        # The original order has rank 0.
        return self.unrank(1 + rng.choice(n_others, min(size, n_others), replace=False))


def class_structures(
    utterances: pd.DataFrame, *, pt_after: Literal["FT", "SE"] = "FT"
) -> dict[str, ClassStructure]:
    """Structure of each conversation by topic, in the order of first appearance.

    ``utterances``: columns topic, turn, class.
    """
    structures = {}
    for topic, turns in utterances.groupby("topic", sort=False):
        classes = turns.sort_values("turn", kind="stable")["class"].tolist()
        try:
            structures[str(topic)] = ClassStructure.from_classes(classes, pt_after=pt_after)
        except ValueError as error:
            raise ValueError(f"topic {topic}: {error}") from None
    return structures


def sampled_permutations(
    structures: Mapping[str, ClassStructure], size: int, seed: int
) -> dict[str, Permutations]:
    """Different permutations of each conversation by topic, row 0 the original order.

    ``size`` is the number of permutations in addition to the original order, or all if fewer exist.
    """
    permutations = {}
    for topic, structure in structures.items():
        if not structure.keeps_original_order:
            raise ValueError(f"topic {topic}: the original order is not valid in its own structure")
        original = np.arange(structure.size)[None, :]
        # A stream per conversation: leaving one out does not change the others.
        stream = np.random.default_rng([seed, *topic.encode()])
        drawn = structure.sample_others(size, stream)
        permutations[topic] = np.concatenate([original, drawn])
    return permutations
