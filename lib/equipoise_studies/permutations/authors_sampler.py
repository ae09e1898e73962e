"""The sampler of the authors' public program, which is not uniform, described here and drawn anew.

The program picks what is uttered next among all that is open: any block but those of FT utterances,
which open only once the first utterance is uttered. Followers come directly behind their head, in
random order. Then the first utterance is moved to the front. So FT utterances tend to stand late,
and some orders are seldom drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from equipoise.orders.class_structures import ClassStructure
from equipoise.orders.conversations import Conversation
from equipoise.orders.structures import Orders


def authors_sample(
    structure: ClassStructure, classes: Sequence[str], size: int, rng: np.random.Generator
) -> Orders:
    """Orders as the program draws them, shaped (size, n); ``classes``: of the utterances, in the script's order."""
    heads = np.array([block[0] for block in structure.blocks])
    locked = np.array([classes[head] == "FT" for head in heads])
    waiting = np.ones((size, len(heads)), dtype=bool)
    turn = np.empty((size, len(heads)))
    rows = np.arange(size)
    for step in range(len(heads)):
        chances = rng.random(waiting.shape)
        is_open = waiting & ~(locked & waiting[:, :1])
        chosen = np.where(is_open, chances, -1.0).argmax(axis=1)
        waiting[rows, chosen], turn[rows, chosen] = False, step
    turn[:, 0] = -1.0
    within = np.where(structure.is_head, -1.0, rng.random((size, structure.size)))
    return np.lexsort((within, turn[:, structure.block]))


def distinct_orders(
    made: Sequence[Conversation],
    judged: pd.DataFrame,
    printed: pd.DataFrame,
    draws: int,
    repeats: int,
    seed: int,
) -> pd.DataFrame:
    """Distinct orders among many draws of the program's sampler, where the printed count is not the exact one.

    ``made`` have class structures. Returns columns conversation, exact, printed, lowest, highest,
    within: the last of the repeats.
    """
    counts = printed.set_index("Conv. id")["unique perm."].astype(int)
    classes, rows = judged.groupby("topic", sort=False)["class"].agg(list), []
    for one in made:
        if one.structure.count == counts[one.topic] or not isinstance(
            one.structure, ClassStructure
        ):
            continue
        stream = np.random.default_rng([seed, *one.topic.encode()])
        drawn = (
            authors_sample(one.structure, classes[one.topic], draws, stream) for _ in range(repeats)
        )
        shape = (one.structure.size,) * one.structure.size  # of these conversations it fits 64 bits
        found = [len(np.unique(np.ravel_multi_index(tuple(orders.T), shape))) for orders in drawn]
        within = str(min(found) <= counts[one.topic] <= max(found))
        rows.append(
            (one.topic, one.structure.count, counts[one.topic], min(found), max(found), within)
        )
    return pd.DataFrame(
        rows, columns=["conversation", "exact", "printed", "lowest", "highest", "within"]
    )
