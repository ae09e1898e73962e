"""Simulate how often 95% intervals of a mean contain it, and write ``coverage.csv``.

2,000 samples of each size from three families of skewed scores. ``mean_interval`` uses Student's t
below 30 units and the percentile bootstrap from there on.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import scipy

from equipoise.statistics.intervals import resampled_ratios

SAMPLES, RESAMPLES, LEVEL = 2000, 1999, 0.95


def draw(family: str, rng: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    """Draw scores of one of the families."""
    if family == "beta(0.5, 2)":
        return rng.beta(0.5, 2, size)
    if family == "exponential":
        return rng.exponential(1, size)
    return rng.random(size) * (rng.random(size) < 0.5)


rows = []
for family, mean in {"beta(0.5, 2)": 0.2, "exponential": 1.0, "half zeros": 0.25}.items():
    for units in (5, 10, 20, 30):
        scores = draw(family, np.random.default_rng(units), (units, SAMPLES))
        means = resampled_ratios(scores, np.ones((units, 1)), 0, RESAMPLES)
        low, high = np.percentile(means, [50 * (1 - LEVEL), 50 * (1 + LEVEL)], axis=0)
        reach = scipy.stats.t.isf((1 - LEVEL) / 2, units - 1) * scipy.stats.sem(scores)
        is_reached = np.abs(scores.mean(axis=0) - mean) <= reach
        shares = {"percentile": ((low <= mean) & (mean <= high)).mean(), "t": is_reached.mean()}
        for interval, share in shares.items():
            rows.append((family, units, interval, SAMPLES, round(float(share), 3)))
columns = ["scores", "units", "interval", "samples", "coverage"]
pd.DataFrame(rows, columns=columns).to_csv(Path(__file__).with_name("coverage.csv"), index=False)
