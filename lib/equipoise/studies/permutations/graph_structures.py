"""The valid orders of any directed acyclic graph of "must come before": its linear extensions.

They are counted by dynamic programming over the sets of utterances that can have been uttered so far (`lattices`).
Counting linear extensions is #P-complete in general, so no method is fast for every large graph.
"""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter

import numpy as np

from equipoise.arrays import Booleans
from equipoise.studies.permutations.lattices import Masks, members
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

    def may_follow(self, masks: Masks) -> Booleans:
        """Utterances that have not been uttered, and depend on none that has not."""
        follows: Booleans = ~members(masks, self.size) & (self._needs & ~masks[:, None] == 0)
        return follows
