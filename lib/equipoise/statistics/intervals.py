"""Bootstrap intervals, and how many units would decide what an interval leaves open."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from equipoise.arrays import Floats, Integers

_ROOM = 2**21  # numbers that resampling holds at once


def finite(values: ArrayLike, what: str) -> Floats:
    """The values as floats; NaN and infinity are refused, ``what`` says of what."""
    array = np.asarray(values, dtype=np.float64)
    if len(wrong := np.flatnonzero(~np.isfinite(array))):
        raise ValueError(
            f"{what}: {len(wrong)} not finite (the first at place {wrong[0]}); leave out or judge them"
        )
    return array


def batches(draws: int, size: int) -> Iterator[int]:
    """How many draws to make at a time, so that what they hold stays bounded; no draw depends on it."""
    most = max(_ROOM // size, 1)
    yield from (min(most, draws - done) for done in range(0, draws, most))


def _ends(columns: Floats, rng: np.random.Generator, level: float, resamples: int) -> Floats:
    """Ends of the intervals of the means of values shaped (columns, units), for all columns from the same draws."""
    found = []
    for size in batches(resamples, columns.shape[1]):
        units = rng.integers(columns.shape[1], size=(size, columns.shape[1]))
        found.append([column.take(units, mode="clip").mean(axis=1) for column in columns])
    outside = 100 * (1 - level) / 2
    ends = np.percentile(np.concatenate(found, axis=1), [outside, 100 - outside], axis=1)
    return np.where(np.ptp(columns, axis=1) == 0, columns[:, 0], ends).T


def bootstrap_interval(
    values: ArrayLike, rng: np.random.Generator, *, level: float = 0.95, resamples: int = 9999
) -> tuple[float, float]:
    """Percentile bootstrap interval of a mean, that of `scipy.stats.bootstrap` from the same draws.

    ``values``: one for each unit that is drawn with replacement (a topic, a conversation), at least
    two and all finite. Where all are equal both ends are that value.

    >>> low, high = bootstrap_interval([0.2, 0.4, 0.4, 0.6], np.random.default_rng(1))
    >>> round(low, 3), round(high, 3)
    (0.25, 0.55)
    """
    data = finite(values, "values")
    if len(data) < 2:
        raise ValueError(f"a bootstrap needs at least two values, found {len(data)}")
    low, high = _ends(data[np.newaxis], rng, level, resamples)[0].tolist()
    return low, high


def bootstrap_intervals(
    columns: Sequence[ArrayLike], seed: int, *, level: float, resamples: int
) -> Floats:
    """`bootstrap_interval` of each of many means, shaped (columns, 2), each as if it were alone.

    NaN for a column of fewer than two values, or with one that is not finite. Every column begins
    with the one seed, so that columns of one length are drawn once.
    """
    data, ends = (
        [np.asarray(column, dtype=np.float64) for column in columns],
        np.full((len(columns), 2), np.nan),
    )
    for units in {len(column) for column in data if len(column) > 1}:
        own = [
            place
            for place, column in enumerate(data)
            if len(column) == units and np.isfinite(column).all()
        ]
        if own:
            whole = np.stack([data[place] for place in own])
            ends[own] = _ends(whole, np.random.default_rng(seed), level, resamples)
    return ends


def resampled(
    statistic: Callable[[Integers], float],
    units: int,
    rng: np.random.Generator,
    *,
    resamples: int = 1999,
) -> tuple[float, float, float]:
    """A statistic and the ends of its 95 % percentile interval, units (questions, topics) drawn with replacement.

    ``statistic`` takes the places of the units drawn, shaped (units,), and returns a number. It
    clusters: whatever was observed of a unit is drawn with it. SciPy's `scipy.stats.bootstrap`.
    """
    places = np.arange(units)
    estimate = float(statistic(places))
    drawn = stats.bootstrap(
        (places,), statistic, n_resamples=resamples, vectorized=False, method="percentile", rng=rng
    )
    low, high = drawn.confidence_interval
    return estimate, min(float(low), estimate), max(float(high), estimate)


def units_to_decide(
    n: int, low: float, high: float, gap: float, *, level: float = 0.95, power: float = 0.8
) -> int:
    """Units with which an effect so far from the edge would be told from it in a share ``power`` of the studies.

    ``low, high``: an interval at the level from n units; it is taken to shrink with the root of the
    units.
    """
    sides = stats.norm.ppf((1 + level) / 2)
    error = (high - low) / (2 * sides)
    return math.ceil(n * ((sides + stats.norm.ppf(power)) * error / gap) ** 2)
