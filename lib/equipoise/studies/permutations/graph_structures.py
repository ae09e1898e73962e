"""The valid orders of any directed acyclic graph of "must come before": its linear extensions.

They are counted by dynamic programming over the sets of utterances that can have been uttered so far (`lattices`).
Counting linear extensions is #P-complete in general, so no method is fast for every large graph.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

import numpy as np

from equipoise.arrays import Booleans, Floats
from equipoise.studies.permutations.lattices import Counts, Masks, members
from equipoise.studies.permutations.structures import Structure


class GraphStructure(Structure):
    """The orders of utterances in which each comes behind all those that it depends on, though not directly.

    ``edges``: pairs (v, u): v must come before u. ``fixed_first``: True keeps utterance 0 in the first place, as the
    paper does. ``limit``: the largest number of utterance sets that dynamic programming may visit.
    """

    def __init__(
        self, size: int, edges: Iterable[tuple[int, int]], *, fixed_first: bool = True, limit: int = 2_000_000
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
        self._needs = np.array([sum(1 << v for v in before[u]) for u in range(size)], dtype=np.uint64)

    @property
    def count(self) -> int:
        """The number of valid orders."""
        return int(self.lattice.ways_from[0])

    def may_follow(self, masks: Masks) -> Booleans:
        """Utterances that have not been uttered, and depend on none that has not."""
        follows: Booleans = ~members(masks, self.size) & (self._needs & ~masks[:, None] == 0)
        return follows

    @cached_property
    def _by_mask(self) -> tuple[Masks, Counts]:
        order = np.argsort(self.lattice.masks)
        return self.lattice.masks[order], self.lattice.ways_from[order]

    def completions(self, masks: Masks) -> Counts:
        """Looked up; of a set that cannot have been uttered, anything."""
        known, ways = self._by_mask
        found: Counts = ways[np.searchsorted(known, masks)]
        return found

    @cached_property
    def _onward(self) -> Counts:
        """Completions of each set of the lattice with each utterance added, 0 where it may not follow."""
        onward: Counts = np.append(self.lattice.ways_from, 0)[self.lattice.after]
        return onward

    def adjacency(self) -> Floats:
        r"""Probability that one utterance directly precedes another in a uniformly drawn valid order, shaped (n, n).

        .. math:: P(vu) = \sum_S \frac{e(S)\, f(S \cup \{v, u\})}{f(\emptyset)}

        over the sets S that v and then u may follow; e counts the beginnings of S and f its completions. The sums are
        exact integers, divided once. Beyond the paper.
        """
        counts = np.zeros((self.size, self.size), dtype=object)
        for v, reached in enumerate(self.lattice.after.T):
            before = reached >= 0
            counts[v] = np.dot(self.lattice.ways_to[before], self._onward[reached[before]])
        return (counts / self.count).astype(np.float64)

    def positions(self) -> Floats:
        r"""Probability of each utterance at each position in a uniformly drawn valid order, shaped (n, n).

        .. math:: P(u \text{ at } i) = \sum_{S : |S| = i} \frac{e(S)\, f(S \cup \{u\})}{f(\emptyset)}

        The sums are exact integers, divided once. Beyond the paper.
        """
        levels = self.lattice.levels[:-1]
        counts = np.array([np.dot(self.lattice.ways_to[here], self._onward[here]) for here in levels], dtype=object)
        return (counts.T / self.count).astype(np.float64)
