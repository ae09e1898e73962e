"""Intervals of means, bootstraps, and how many units would decide what an interval leaves open."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import scipy  # which loads scipy.stats, a second of imports, at its first use
from numpy.typing import ArrayLike

from equipoise.arrays import Floats, Integers, ratio

FEWEST_UNITS, FEWEST_RESAMPLED = 10, 30
"""Units from which on a mean has an interval, and from which on it is a bootstrap interval."""
_BATCH = 2**21  # numbers that resampling holds at once


def finite(values: ArrayLike, what: str) -> Floats:
    """Return the values as floats; raise ValueError on NaN and infinity."""
    array = np.asarray(values, dtype=np.float64)
    places = np.flatnonzero(~np.isfinite(array))
    if len(places):
        raise ValueError(
            f"{what} must be finite, got {len(places)} values that are not, the first at index "
            f"{places[0]}; leave them out, or judge them"
        )
    return array


def batches(draws: int, size: int) -> Iterator[int]:
    """How many draws to make at a time, to bound what they hold; no draw depends on it."""
    most = max(_BATCH // size, 1)
    for start in range(0, draws, most):
        yield min(most, draws - start)


def percentile_interval(samples: ArrayLike, level: float = 0.95) -> tuple[float, float]:
    """Percentile interval of a statistic from its values in resamples, shaped (resamples,).

    A resample in which the statistic is not defined (NaN) is left out; NaN where it is in none.

    >>> percentile_interval([1, 2, 3, 4, 5, float("nan")], level=0.5)
    (2.0, 4.0)
    """
    values = np.asarray(samples, dtype=np.float64)
    defined = values[~np.isnan(values)]
    if defined.size == 0:
        return math.nan, math.nan
    tail = 100 * (1 - level) / 2
    low, high = np.percentile(defined, [tail, 100 - tail]).tolist()
    return low, high


def drawn_counts(units: int, rng: np.random.Generator, resamples: int) -> Iterator[Floats]:
    """How often a resample has each unit, in blocks shaped (some of the resamples, units)."""
    # Of many units, too: for each block a caller reads the values of all.
    for size in batches(resamples, min(units, _BATCH // 32)):
        counts = np.empty((size, units))
        # Few are counted at a time, in memory that a processor keeps close.
        few = max(2**16 // units, 1)
        for begin in range(0, size, few):
            rows = counts[begin : begin + few]
            drawn = rng.integers(units, size=rows.shape, dtype=np.uint32)
            places = np.arange(len(rows))[:, np.newaxis] * units + drawn
            rows[:] = np.bincount(places.ravel(), minlength=rows.size).reshape(rows.shape)
        yield counts


def mean_interval(
    values: ArrayLike, rng: np.random.Generator, *, level: float = 0.95, resamples: int = 9999
) -> tuple[float, float]:
    """Confidence interval of a mean over units, each with one finite value.

    - Fewer than 10 units have no interval: both ends are NaN.
    - 10 to 29 units have that of Student's t. In simulated samples of skewed scores, 95% intervals
      contain the mean in 91 to 92% of samples of 10 units, and in 92 to 93% of 20.
    - 30 and more have the percentile bootstrap interval, that of `scipy.stats.bootstrap` from the
      same draws: 93 to 94% of samples of 30.

    ``data/outputs/intervals`` has the simulation. Where all values are equal both ends are that
    value. An interval by t can end beyond the range of a measure.

    >>> low, high = mean_interval(np.arange(10) / 10, np.random.default_rng(1))
    >>> round(low, 3), round(high, 3)
    (0.233, 0.667)
    >>> mean_interval([0.2, 0.4, 0.4, 0.6], np.random.default_rng(1))
    (nan, nan)
    """
    columns = finite(values, "values")[np.newaxis]
    low, high = _intervals_of_one_length(columns, rng, level, resamples)[0].tolist()
    return low, high


def intervals_of_means(
    columns: Sequence[ArrayLike], seed: int, *, level: float, resamples: int
) -> Floats:
    """`mean_interval` of each of many means, shaped (columns, 2), each as if it were alone.

    NaN for a column with a value that is not finite. Every column begins with the one seed, so that
    columns of one length are drawn once.
    """
    ends = np.full((len(columns), 2), np.nan)
    places_by_length: dict[int, list[int]] = {}
    data = [np.asarray(column, dtype=np.float64) for column in columns]
    for place, column in enumerate(data):
        if np.isfinite(column).all():
            places_by_length.setdefault(len(column), []).append(place)
    for places in places_by_length.values():
        same_length = np.stack([data[place] for place in places])
        rng = np.random.default_rng(seed)
        ends[places] = _intervals_of_one_length(same_length, rng, level, resamples)
    return ends


def _intervals_of_one_length(
    columns: Floats, rng: np.random.Generator, level: float, resamples: int
) -> Floats:
    """Intervals, shaped (columns, 2), of the means of (columns, units), from the same draws."""
    units = columns.shape[1]
    if units < FEWEST_UNITS:
        return np.full((len(columns), 2), np.nan)
    if units < FEWEST_RESAMPLED:
        reach = scipy.stats.t.isf((1 - level) / 2, units - 1) * scipy.stats.sem(columns, axis=1)
        ends = columns.mean(axis=1) + np.outer([-1, 1], reach)
    else:
        tail = 100 * (1 - level) / 2
        sums = [counts @ columns.T for counts in drawn_counts(units, rng, resamples)]
        ends = np.percentile(np.concatenate(sums) / units, [tail, 100 - tail], axis=0)
    # Equal values have that mean in every resample; summing them may round it.
    equal = np.ptp(columns, axis=1) == 0
    return np.where(equal, columns[:, 0], ends).T


def resampled(
    statistic: Callable[[Integers], float],
    units: int,
    rng: np.random.Generator,
    *,
    level: float = 0.95,
    resamples: int = 1999,
) -> tuple[float, float, float]:
    """A statistic and its percentile interval, units (questions, topics) drawn with replacement.

    ``statistic`` takes the positions of the drawn units, shaped (units,), and returns a number, or
    NaN if the draw has none. This is a cluster bootstrap: all observations of a unit are drawn with
    it. The interval is widened to contain the statistic. Draws are as in `scipy.stats.bootstrap`.
    """
    estimate = float(statistic(np.arange(units)))
    samples = np.empty(resamples)
    for number in range(resamples):
        samples[number] = statistic(rng.integers(units, size=units))
    low, high = percentile_interval(samples, level)
    return estimate, min(low, estimate), max(high, estimate)


def resampled_ratios(numerators: Floats, denominators: Floats, seed: int, resamples: int) -> Floats:
    """Ratios of sums over units that are drawn with replacement, shaped (resamples, columns).

    ``numerators, denominators``: shaped (units, columns). NaN where the denominator of a resample
    is 0.
    """
    units = len(numerators)
    ratios = []
    for counts in drawn_counts(units, np.random.default_rng(seed), resamples):
        ratios.append(ratio(counts @ numerators, counts @ denominators, np.nan))
    return np.concatenate(ratios)


def units_to_decide(
    n: int, low: float, high: float, gap: float, *, level: float = 0.95, power: float = 0.8
) -> int:
    """Return the units that distinguish an effect from a bound ``gap`` away, with this power.

    ``low, high`` is an interval at the level from n units. Its width is assumed to shrink with the
    square root of n.
    """
    sides = scipy.stats.norm.ppf((1 + level) / 2)
    error = (high - low) / (2 * sides)
    return math.ceil(n * ((sides + scipy.stats.norm.ppf(power)) * error / gap) ** 2)
