"""Comparing systems: paired tests corrected over the comparisons of a table, and bootstrap intervals.

Scores come as a tidy table with one row per system and unit of observation; distributions and resampling are SciPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from equipoise.arrays import Floats, Integers
from equipoise.problems import need_columns


def finite(values: ArrayLike, what: str) -> Floats:
    """The values as floats; NaN and infinity are refused, ``what`` says of what."""
    array = np.asarray(values, dtype=np.float64)
    if len(wrong := np.flatnonzero(~np.isfinite(array))):
        raise ValueError(f"{what}: {len(wrong)} not finite (the first at place {wrong[0]}); leave out or judge them")
    return array


def corrected(p: ArrayLike, method: Literal["bonferroni", "holm", "none"] = "bonferroni") -> Floats:
    r"""p-values corrected for the number of comparisons.

    .. math:: \text{Bonferroni: } \min(1, m p_i), \quad \text{Holm: } \min(1, \max_{j \le i} (m - j + 1) p_{(j)})

    Parameters
    ----------
    p : array_like, shaped (m,)
        p-values of one family of comparisons.
    method : {"bonferroni", "holm", "none"}
        The correction; the thesis uses Bonferroni.

    Returns
    -------
    ndarray, shaped (m,)

    Raises
    ------
    ValueError
        If a p-value is not between 0 and 1, or the method is unknown.

    Notes
    -----
    thesis, chapter 2.

    Examples
    --------
    >>> corrected([0.01, 0.02, 0.6]), corrected([0.01, 0.02, 0.6], "holm")
    (array([0.03, 0.06, 1.  ]), array([0.03, 0.04, 0.6 ]))
    """
    values = np.asarray(p, dtype=np.float64)
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"p-values lie between 0 and 1, found {values.tolist()}")
    if method == "none":
        return values
    if method == "bonferroni":
        return np.minimum(values * len(values), 1.0)
    if method == "holm":
        order = np.argsort(values, kind="stable")
        steps = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
        return np.minimum(steps, 1.0)[np.argsort(order)]
    raise ValueError(f"no correction named {method!r}; there are bonferroni, holm, none")


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


def compare_pairs(
    scores: pd.DataFrame,
    *,
    run: str = "run",
    unit: str = "topic",
    baseline: str | None = None,
    test: Literal["t", "permutation"] = "t",
    correction: Literal["bonferroni", "holm", "none"] = "bonferroni",
    level: float = 0.95,
    resamples: int = 9999,
    rng: np.random.Generator | None = None,
) -> pd.DataFrame:
    """Paired comparison of systems over the units that all of them are scored on.

    Parameters
    ----------
    scores : DataFrame
        One row per system and unit; the score is the column ``value``.
    run, unit : str
        Names of the columns: the system, what pairs the scores (a topic, a query).
    baseline : str, optional
        Compare every other system with this one; without it, every pair.
    test : {"t", "permutation"}
        Paired t-test, as in the thesis, or the randomisation test that exchanges the scores within units (every
        exchange where there are no more than `resamples` of them).
    correction : {"bonferroni", "holm", "none"}
        Over the comparisons of the returned table.
    level : float
        Confidence level of the interval of the mean difference (t distribution), uncorrected.
    resamples : int
        Number of random exchanges of the randomisation test.
    rng : numpy.random.Generator, optional
        Needed by the randomisation test.

    Returns
    -------
    DataFrame
        One row per comparison, sorted: ``a, b, units, difference, low, high, statistic, p, p_corrected, effect``.
        Difference is the mean of a minus the mean of b (the baseline); effect is Cohen's d of the pairs; statistic is
        t, or the mean difference for the randomisation test.

    Raises
    ------
    ValueError
        If a column is missing, a score is missing, repeated or not finite, the baseline is unknown, or there are fewer
        than two systems or units.

    Notes
    -----
    thesis, chapter 2: paired t-test with Bonferroni correction.

    Examples
    --------
    >>> scores = pd.DataFrame({"topic": list("abcabc"), "run": list("xxxyyy"), "value": [1, 2, 3, 2, 3, 5]})
    >>> compare_pairs(scores)[["a", "b", "difference", "statistic", "p_corrected"]].round(4)
       a  b  difference  statistic  p_corrected
    0  x  y     -1.3333       -4.0       0.0572
    """
    need_columns(scores, ["value", run, unit])
    if (repeated := scores.duplicated([run, unit])).any():
        cell = scores.loc[repeated, [run, unit]].iloc[0].to_dict()
        raise ValueError(f"{int(repeated.sum())} pairs of system and unit are scored twice; the first is {cell}")
    wide = scores.pivot_table(index=unit, columns=run, values="value", aggfunc="first", sort=True, observed=True)
    columns = wide.to_numpy(dtype=np.float64)
    absent = np.argwhere(~np.isfinite(columns))
    if len(absent) or len(wide) < scores[unit].nunique():
        place = f"{run} {wide.columns[absent[0][1]]}, {unit} {wide.index[absent[0][0]]}" if len(absent) else f"a {unit}"
        raise ValueError(f"{max(len(absent), 1)} scores are missing or not finite; the first: {place}")
    names = [str(name) for name in wide.columns]
    if len(names) < 2 or len(wide) < 2:
        raise ValueError(f"at least two systems and two units are wanted, found {len(names)} and {len(wide)}")
    if baseline is not None and baseline not in names:
        raise ValueError(f"no system named {baseline!r}; there are {', '.join(names)}")
    first, second = np.triu_indices(len(names), 1)
    if baseline is not None:
        first = np.delete(np.arange(len(names)), names.index(baseline))
        second = np.full_like(first, names.index(baseline))
    gaps = columns[:, first] - columns[:, second]
    mean, units = gaps.mean(axis=0), len(gaps)
    error = gaps.std(axis=0, ddof=1) / np.sqrt(units)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(mean == 0, 0.0, mean / error)
    if test == "t":
        statistic, p = t, 2 * stats.t.sf(np.abs(t), units - 1)
    elif test != "permutation":
        raise ValueError(f"test is 't' or 'permutation', found {test!r}")
    elif rng is None:
        raise ValueError("the randomisation test draws at random: pass rng")
    else:
        exchanged = stats.permutation_test(
            (gaps, np.zeros_like(gaps)),
            lambda a, b, axis: np.mean(a - b, axis=axis),
            permutation_type="samples",
            vectorized=True,
            n_resamples=resamples,
            batch=1000,
            rng=rng,
        )
        statistic, p = mean, np.asarray(exchanged.pvalue, dtype=np.float64)
    reach = stats.t.isf((1 - level) / 2, units - 1) * error
    return pd.DataFrame(
        {
            "a": [names[place] for place in first],
            "b": [names[place] for place in second],
            "units": units,
            "difference": mean,
            "low": mean - reach,
            "high": mean + reach,
            "statistic": statistic,
            "p": p,
            "p_corrected": corrected(p, correction),
            "effect": t / np.sqrt(units),
        }
    )
