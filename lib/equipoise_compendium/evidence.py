"""Evidence from samples: a bootstrap over units, a null distribution, or no sample at all.

Answers to one question, turns of one conversation or trials of one topic are drawn together: the
unit is what was sampled, and a statistic takes the positions of the drawn units.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from equipoise.arrays import Floats, Integers
from equipoise.statistics import mean_interval, percentile_interval, resampled
from equipoise.statistics.intervals import FEWEST_RESAMPLED
from equipoise_compendium.protocol import Evidence


def bootstrapped(
    statistic: Callable[[Integers], float],
    units: int,
    published: float | None = None,
    *,
    seed: int | np.random.Generator = 0,
    resamples: int = 1999,
) -> Evidence:
    """Compute a statistic of the positions of units, with its interval over resampled units."""
    interval = resampled(statistic, units, np.random.default_rng(seed), resamples=resamples)
    return Evidence(*interval, units, published)


def bootstrapped_mean(
    values: ArrayLike,
    statistic: Callable[[Floats], float] = float,
    published: float | None = None,
    *,
    seed: int = 0,
) -> Evidence:
    """Compute a statistic of the means over units, the first axis; by default the mean itself.

    The mean itself has no interval of fewer than 10 units, and Student's t of fewer than 30.
    """
    array = np.asarray(values, dtype=np.float64)
    if statistic is float and len(array) < FEWEST_RESAMPLED:
        low, high = mean_interval(array, np.random.default_rng(seed))
        if np.isnan(low):
            reason = "so few units have no interval"
            return Evidence(float(array.mean()), n=len(array), published=published, reason=reason)
        return Evidence(float(array.mean()), low, high, len(array), published)

    def of_drawn(drawn: Integers) -> float:
        return float(statistic(array[drawn].mean(axis=0)))

    return bootstrapped(of_drawn, len(array), published, seed=seed)


def from_samples(
    estimate: float, samples: ArrayLike, n: int | None, published: float | None = None
) -> Evidence:
    """Return an estimate with the percentile interval of its values in samples of ``n`` units.

    The interval is widened to contain the estimate.
    """
    low, high = percentile_interval(samples)
    return Evidence(estimate, min(low, estimate), max(high, estimate), n, published)


def minus_chance(
    observed: float, draws: ArrayLike, *, n: int | None = None, published: float | None = None
) -> Evidence:
    """Compute a statistic minus its mean under the null hypothesis, with an interval.

    ``draws``: the statistic under the null hypothesis, shaped (draws,). p-values are shares of the
    draws, with the observed value as one of them, because the null may be skewed. The same mean is
    subtracted from ``published``, the value of the paper.
    """
    values = np.asarray(draws, dtype=np.float64)
    if values.ndim != 1 or len(values) < 40:
        raise ValueError(f"an interval of 95% needs 40 draws, got {values.size}")
    expected = float(values.mean())
    lowest, highest = np.quantile(values, [0.025, 0.975])
    estimate = observed - expected
    return Evidence(
        estimate,
        min(observed - float(highest), estimate),
        max(observed - float(lowest), estimate),
        n,
        None if published is None else published - expected,
        above=(np.count_nonzero(values >= observed) + 1) / (len(values) + 1),
        below=(np.count_nonzero(values <= observed) + 1) / (len(values) + 1),
    )


def not_sampled(
    table: pd.Series | pd.DataFrame,
    reason: str = "nothing is sampled",
    published: pd.Series | None = None,
) -> dict[str, Evidence]:
    """Return each cell of a table as evidence without an interval, named by row and column.

    ``published``: the values of the paper, by the same keys.
    """
    known = {} if published is None else published.to_dict()
    if isinstance(table, pd.DataFrame):
        table = table.stack(future_stack=True)  # noqa: PD013 - row by row
    parts = {}
    for key, value in table.items():
        name = ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)
        parts[name] = Evidence(float(value), published=known.get(key), reason=reason)
    return parts
