"""Evidence of the claims of gfrc that rest on harvested conversations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from equipoise.arrays import Integers
from equipoise.statistics import resampled
from equipoise_compendium.claims import Evidence


def clustered_mean(
    values: pd.DataFrame, said: str, weights: str = "", by: Sequence[str] = ("topic",)
) -> Evidence:
    """Estimate the mean of the column ``value`` with a bootstrap interval over clusters.

    ``by`` names the columns that identify a cluster, which is resampled as a whole. ``weights``
    names a column of weights, for a ratio of sums.
    """
    table = values[list(by)].copy()
    table["weight"] = values[weights] if weights else 1.0
    table["weighted"] = values["value"] * table["weight"]
    sums = table.groupby(list(by), sort=False)[["weighted", "weight"]].sum().to_numpy(dtype=float)

    def mean(drawn: Integers) -> float:
        weighted, weight = sums[drawn].sum(axis=0)
        return float(weighted / weight)

    return Evidence(said, *resampled(mean, len(sums), np.random.default_rng(0)), n=len(sums))
