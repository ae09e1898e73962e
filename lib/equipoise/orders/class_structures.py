"""The paper's valid orders: of utterances that are self-explanatory (SE), or depend on a topic.

Everything but the extremes of a score is known in closed form.

References
----------
permutations, section 3.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from equipoise.arrays import Booleans, Floats
from equipoise.orders.lattices import Counts, Masks, members
from equipoise.orders.structures import Orders, Structure

# classes of an utterance: self-explanatory, depends on the first topic, depends on a previous topic
CLASSES = ("SE", "FT", "PT")


class ClassStructure(Structure):
    """Blocks of utterances behind a first utterance that stays where it is.

    The first block opens the conversation. The other blocks follow in any order; within every block
    the head comes first and its followers come directly behind it, in any order. With b blocks
    behind the first and f followers in each block, there are b! * product of f! orders.

    ``blocks``: Utterance numbers; in each block the head first. Together they are 0 to n - 1, each
    once, and the first block starts with utterance 0. ``limit``: the largest number of utterance
    sets that `score_range` may visit.
    """

    def __init__(self, blocks: Sequence[Sequence[int]], limit: int = 2_000_000) -> None:
        self.blocks = tuple(tuple(int(u) for u in block) for block in blocks)
        line = [u for block in self.blocks for u in block]
        super().__init__(len(line), limit)
        has_each_once = sorted(line) == list(range(self.size))
        if not has_each_once or not all(self.blocks) or self.blocks[0][0] != 0:
            raise ValueError(
                f"blocks must hold the utterances 0 to {self.size - 1} once each, and open with 0,"
                f" found {self.blocks}"
            )
        heads = [block[0] for block in self.blocks]
        self.block = np.zeros(self.size, dtype=np.intp)
        for number, block in enumerate(self.blocks):
            self.block[list(block)] = number
        self.head = np.array(heads)[self.block]
        self.is_head = self.head == np.arange(self.size)
        # The utterances of a group can change places: followers of a block, and heads.
        self.exchangeable = [*(block[1:] for block in self.blocks), heads[1:]]

    @classmethod
    def from_classes(
        cls, classes: Sequence[str], *, pt_behind_ft: Literal["ft", "se"] = "ft"
    ) -> ClassStructure:
        """Structure of a conversation from the class of each of its utterances.

        The first utterance stays in its place; an SE opens a block; an FT is a block of one; a PT
        follows the block of the utterance that it depends on.

        ``classes``: "SE", "FT" or "PT", in the order of the script; the first must be "SE".
        ``pt_behind_ft``: where a PT goes whose script has an FT between it and the last SE: with
        that FT, as in the authors' program, or with that SE, as in the paper's wording. The wording
        can make the script itself an invalid order (the FT would part the PT from its SE), so the
        program's reading is the default.

        permutations, section 3.1.
        """
        if pt_behind_ft not in ("ft", "se"):
            raise ValueError(f"pt_behind_ft is 'ft' or 'se', found {pt_behind_ft!r}")
        _check_classes(classes)
        blocks: list[list[int]] = []
        home = 0  # the block that a PT follows
        for u, name in enumerate(classes):
            if name == "PT":
                blocks[home].append(u)
                continue
            blocks.append([u])
            if name == "SE" or pt_behind_ft == "ft":
                home = len(blocks) - 1
        return cls(blocks)

    @property
    def count(self) -> int:
        """The number of valid orders: (blocks behind the first)! times each (followers)!."""
        return math.prod(math.factorial(len(group)) for group in self.exchangeable)

    def may_follow(self, masks: Masks) -> Booleans:
        """Followers of a block whose head has been uttered; if none are left, other heads."""
        uttered = members(masks, self.size)
        followers: Booleans = uttered[:, self.head] & ~uttered & ~self.is_head
        is_first = np.arange(self.size) == 0
        opened = uttered[:, :1] | is_first
        heads = self.is_head & ~uttered & opened
        return np.where(followers.any(axis=1, keepdims=True), followers, heads)

    def completions(self, masks: Masks) -> Counts:
        """The product of the factorials of what is left of each group that can change places."""
        largest_group = max(map(len, self.exchangeable))
        factorials = [math.factorial(k) for k in range(largest_group + 1)]
        group_masks = [sum(1 << u for u in group) for group in self.exchangeable]
        remaining = np.array(group_masks, dtype=np.uint64)[:, None] & ~masks  # (groups, sets)
        n_remaining = np.bitwise_count(remaining)
        n_completions: Counts = np.array(factorials, dtype=self._dtype)[n_remaining].prod(axis=0)
        return n_completions

    def _draw(self, size: int, rng: np.random.Generator) -> Orders:
        # Random keys sort the blocks, and the utterances in each; the lowest key stays first.
        key_of_block = rng.random((size, len(self.blocks)))
        key_in_block = rng.random((size, self.size))
        key_of_block[:, 0] = -1.0
        key_in_block[:, self.is_head] = -1.0
        return np.lexsort((key_in_block, key_of_block[:, self.block]))

    def adjacency(self) -> Floats:
        """Probability that one utterance directly precedes another, in closed form.

        In a block with f followers each of its other utterances directly precedes a follower with
        probability 1 / f; with b blocks behind the first, the end of any other block (the opening
        included) directly precedes a head with probability 1 / b. Row v, column u: v is uttered
        directly before u. Beyond the paper.
        """
        n_followers = np.bincount(self.block)[self.block] - 1
        same_block = self.block[:, None] == self.block
        among = np.maximum(n_followers, 1)
        # A block ends with a follower, or with its head where it has none.
        can_end_block = self.is_head != (n_followers > 0)
        before_head = can_end_block[:, None] & ~same_block & (self.block > 0)
        n_blocks_behind = max(len(self.blocks) - 1, 1)
        of_heads = before_head / n_blocks_behind / among[:, None]
        probability = np.where(self.is_head, of_heads, same_block / among)
        np.fill_diagonal(probability, 0.0)
        return probability

    def opening(self) -> Floats:
        """Probability of each utterance to come first: utterance 0 always does."""
        return (np.arange(self.size) == 0).astype(np.float64)

    def positions(self) -> Floats:
        """Probability of each utterance at each position, in closed form.

        The head of a block stands behind a uniformly drawn set of other blocks: a knapsack
        recursion counts the sets by their number of blocks and of utterances. Row u, column i: u
        stands at position i, from 0. Beyond the paper.
        """
        probability = np.zeros((self.size, self.size))
        for number, (head, *followers) in enumerate(self.blocks):
            # Blocks that may stand before this one, behind the first.
            lengths = []
            if number:
                lengths = [len(block) for block in self.blocks[1:number]]
                lengths += [len(block) for block in self.blocks[number + 1 :]]
            # Sets of them, by [number of blocks, number of utterances].
            n_sets = np.zeros((len(lengths) + 1, self.size))
            n_sets[0, 0] = 1.0
            for length in lengths:
                n_sets[1:, length:] += n_sets[:-1, :-length].copy()
            # Each number of blocks before this one is as likely as any other.
            n_choices = [math.comb(len(lengths), n_blocks) for n_blocks in range(len(lengths) + 1)]
            start = (n_sets / np.array(n_choices)[:, None]).mean(axis=0)
            if number:
                start = np.roll(start, len(self.blocks[0]))
            probability[head] = start
            for offset in range(1, len(followers) + 1):
                probability[followers, offset:] += start[:-offset] / len(followers)
        return probability


def _check_classes(classes: Sequence[str]) -> None:
    if not len(classes):
        raise ValueError(
            "a conversation without a first utterance has no orders: no classes were given"
        )
    unknown = []
    for place, name in enumerate(classes, 1):
        if name not in CLASSES:
            unknown.append(f"{name!r} at utterance {place}")
    if unknown:
        raise ValueError(
            f"unknown utterance class {', '.join(unknown)}; the classes are {', '.join(CLASSES)}"
        )
    if classes[0] != "SE":
        raise ValueError(f"the first utterance must be self-explanatory (SE), found {classes[0]}")
