"""Bootstrap intervals, and how many units would decide what an interval leaves open."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from equipoise.arrays import Floats, Integers


def finite(values: ArrayLike, what: str) -> Floats:
    """The values as floats; NaN and infinity are refused, ``what`` says of what."""
    array = np.asarray(values, dtype=np.float64)
    if len(wrong := np.flatnonzero(~np.isfinite(array))):
        raise ValueError(f"{what}: {len(wrong)} not finite (the first at place {wrong[0]}); leave out or judge them")
    return array


def bootstrap_interval(
    values: ArrayLike,
    rng: np.random.Generator,
    *,
    level: float = 0.95,
    resamples: int = 9999,
    method: Literal["percentile", "basic", "BCa"] = "percentile",
) -> tuple[float, float]:
    """Bootstrap confidence interval of a mean.

    Parameters
    ----------
    values : array_like, shaped (n,)
        One value per unit that is drawn with replacement (a topic, a conversation).
    rng : numpy.random.Generator
        The source of randomness.
    level : float
        Confidence level, between 0 and 1.
    resamples : int
        Number of bootstrap samples.
    method : {"percentile", "basic", "BCa"}
        How the interval is read from them.

    Returns
    -------
    (float, float)
        Lower and upper end, in the unit of the values; equal to the value where all are equal.

    Raises
    ------
    ValueError
        If a value is not finite, or there are fewer than two.

    Notes
    -----
    SciPy's `scipy.stats.bootstrap`, with memory bounded by resampling in batches.

    Examples
    --------
    >>> low, high = bootstrap_interval([0.2, 0.4, 0.4, 0.6], np.random.default_rng(1))
    >>> round(low, 3), round(high, 3)
    (0.25, 0.55)
    """
    data = finite(values, "values")
    if len(data) < 2:
        raise ValueError(f"a bootstrap needs at least two values, found {len(data)}")
    if np.ptp(data) == 0:
        return float(data[0]), float(data[0])
    interval = stats.bootstrap(
        (data,), np.mean, confidence_level=level, n_resamples=resamples, method=method, batch=1000, rng=rng
    ).confidence_interval
    return float(interval.low), float(interval.high)


def resampled(
    statistic: Callable[[Integers], float], units: int, rng: np.random.Generator, *, resamples: int = 1999
) -> tuple[float, float, float]:
    """A statistic and the ends of its 95 % percentile interval, units (questions, topics) drawn with replacement.

    ``statistic`` takes the places of the units drawn, shaped (units,), and returns a number. It clusters: whatever was
    observed of a unit is drawn with it. SciPy's `scipy.stats.bootstrap`.
    """
    places = np.arange(units)
    estimate = float(statistic(places))
    drawn = stats.bootstrap((places,), statistic, n_resamples=resamples, vectorized=False, method="percentile", rng=rng)
    low, high = drawn.confidence_interval
    return estimate, min(float(low), estimate), max(float(high), estimate)


def units_to_decide(n: int, low: float, high: float, gap: float, *, level: float = 0.95, power: float = 0.8) -> int:
    """Units with which an effect so far from the edge would be told from it in a share ``power`` of the studies.

    ``low, high``: an interval at the level from n units; it is taken to shrink with the root of the units.
    """
    sides = stats.norm.ppf((1 + level) / 2)
    error = (high - low) / (2 * sides)
    return math.ceil(n * ((sides + stats.norm.ppf(power)) * error / gap) ** 2)
