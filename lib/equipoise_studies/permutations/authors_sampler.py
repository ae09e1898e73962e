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
    """Orders as the program draws them, shaped (size, n); ``classes``: by utterance, in order."""
    heads = np.array([block[0] for block in structure.blocks])
    is_first_topic = np.array([classes[head] == "FT" for head in heads])
    waiting = np.ones((size, len(heads)), dtype=bool)
    step_of_block = np.empty((size, len(heads)))
    rows = np.arange(size)
    for step in range(len(heads)):
        # FT blocks are closed as long as the first block waits.
        is_open = waiting & ~(is_first_topic & waiting[:, :1])
        chances = np.where(is_open, rng.random(waiting.shape), -1.0)
        chosen = chances.argmax(axis=1)
        waiting[rows, chosen] = False
        step_of_block[rows, chosen] = step
    step_of_block[:, 0] = -1.0
    within_block = np.where(structure.is_head, -1.0, rng.random((size, structure.size)))
    return np.lexsort((within_block, step_of_block[:, structure.block]))


def distinct_orders(
    scripts: Sequence[Conversation],
    utterances: pd.DataFrame,
    printed: pd.DataFrame,
    draws: int,
    repeats: int,
    seed: int,
) -> pd.DataFrame:
    """Distinct orders among many draws of that sampler, where the printed count is not exact.

    ``scripts`` with class structures. Returns columns conversation, exact, printed, lowest,
    highest, within: the last of the repeats.
    """
    printed_counts = printed.set_index("Conv. id")["unique perm."].astype(int)
    classes = utterances.groupby("topic", sort=False)["class"].agg(list)
    rows = []
    for script in scripts:
        structure, printed_count = script.structure, printed_counts[script.topic]
        if structure.count == printed_count or not isinstance(structure, ClassStructure):
            continue
        rng = np.random.default_rng([seed, *script.topic.encode()])
        # An order as one number, in base n: of these conversations it fits 64 bits.
        base = (structure.size,) * structure.size
        counts = []
        for _ in range(repeats):
            orders = authors_sample(structure, classes[script.topic], draws, rng)
            counts.append(len(np.unique(np.ravel_multi_index(tuple(orders.T), base))))
        lowest, highest = min(counts), max(counts)
        within = str(lowest <= printed_count <= highest)
        rows.append((script.topic, structure.count, printed_count, lowest, highest, within))
    columns = ["conversation", "exact", "printed", "lowest", "highest", "within"]
    return pd.DataFrame(rows, columns=columns)
