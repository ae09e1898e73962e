"""Scores of systems drawn at random, for the tests of statistics."""

import numpy as np
import pandas as pd


def random_scores(seed: int, sizes: list[int], models: int, missing: int = 0) -> pd.DataFrame:
    """Scores of every model on sizes[i] permutations of topic i; some rows are taken out."""
    rng = np.random.default_rng(seed)
    rows = [
        (f"t{i}", str(j), f"m{k}", i / 3 + 0.2 * k + rng.normal())
        for i, size in enumerate(sizes)
        for j in range(size)
        for k in range(models)
    ]
    table = pd.DataFrame(rows, columns=["topic", "permutation", "run", "value"])
    keep = np.sort(rng.permutation(len(table))[missing:])
    return table.iloc[keep].reset_index(drop=True)
