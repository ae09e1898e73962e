"""Every pair of systems, or each with a baseline: paired tests, corrected over the comparisons of a table."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from equipoise.arrays import Floats
from equipoise.declare import checked
from equipoise.options import Correction, Level, PairedTest, Resamples, Unpaired
from equipoise.problems import Note, listed, need_columns
from equipoise.statistics.intervals import batches

_EQUAL = 1e-9  # statistics that differ by no more, relatively, are equal
_ROUNDING = (
    100 * np.finfo(np.float64).eps
)  # means of signed differences that are closer, relatively, are equal


def corrected(p: ArrayLike, method: Correction = "bonferroni") -> Floats:
    r"""p-values corrected for the number of comparisons.

    .. math:: \text{Bonferroni: } \min(1, m p_i), \quad \text{Holm: } \min(1, \max_{j \le i} (m - j
    + 1) p_{(j)})

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


def topic_by_run(
    scores: pd.DataFrame, *, run: str = "run", unit: str = "topic", unpaired: Unpaired = "refuse"
) -> pd.DataFrame:
    """Scores as a matrix, one row for each unit and one column for each system, both sorted; means are left out.

    ``scores``: one row for each system and unit, the score in the column ``value``. A row with an
    empty unit is a mean.
    """
    need_columns(scores, ["value", run, unit])
    scores = scores[scores[unit].notna() & (scores[unit] != "")]
    if (repeated := scores.duplicated([run, unit])).any():
        cell = scores.loc[repeated, [run, unit]].iloc[0].to_dict()
        raise ValueError(
            f"{int(repeated.sum())} pairs of system and unit are scored twice; the first is {cell}"
        )
    wide = scores.pivot(index=unit, columns=run, values="value").sort_index().sort_index(axis=1)  # noqa: PD010
    wide = wide.astype(np.float64).set_axis(wide.columns.map(str), axis=1)
    lacking = ~np.isfinite(wide)
    if lacking.to_numpy().any():
        there = pd.MultiIndex.from_frame(scores[[run, unit]].astype({run: "str"}))
        told = []
        for name, units in lacking.items():
            nan = [one for one in lacking.index[units] if (name, one) in there]
            without = [one for one in lacking.index[units] if one not in set(nan)]
            told += [f"{run} {name} lacks {unit} {listed(without)}"] if without else []
            told += [f"{run} {name} has no number for {unit} {listed(nan)}"] if nan else []
        said = (
            f"{int(lacking.to_numpy().sum())} scores are missing or not finite: {'; '.join(told)}"
        )
        if unpaired == "refuse":
            raise ValueError(
                f"{said}; score them, or compare without these ({unit}s that are unpaired: drop)"
            )
        wide = wide[~lacking.any(axis=1)]
        warnings.warn(
            f"{said}; compared over the {len(wide)} {unit}s that all have", Note, stacklevel=2
        )
    if wide.shape[1] < 2 or len(wide) < 2:
        of = f" for {listed(scores['measure'].unique(), 1)}" if "measure" in scores else ""
        raise ValueError(
            f"at least two systems and two units are wanted, found {wide.shape[1]} and {len(wide)}{of}"
        )
    return wide


# --- resampling -----------------------------------------------------------------------------------


def largest_differences(values: Floats, rng: np.random.Generator, draws: int) -> Floats:
    """Largest difference between means of systems whose scores change places within each unit, shaped (draws,).

    ``values`` is shaped (units, systems).
    """
    centred = values - values.mean(axis=1, keepdims=True)
    found = [
        np.ptp(
            rng.permuted(np.broadcast_to(centred, (size, *values.shape)), axis=2).mean(axis=1),
            axis=1,
        )
        for size in batches(draws, values.size)
    ]
    return np.concatenate(found)


def _studentised(
    gaps: Floats, mean: Floats, error: Floats, rng: np.random.Generator, draws: int
) -> Floats:
    """Student's t of differences without their mean, units drawn with replacement, unsigned, shaped (draws, pairs)."""
    centred, units, found = gaps - mean, len(gaps), []
    rounding = np.maximum(_EQUAL * error, 1e-14 * np.abs(gaps).max(axis=0))
    for size in batches(draws, gaps.size):
        drawn = centred[rng.integers(units, size=(size, units))]
        spread = drawn.std(axis=1, ddof=1) / np.sqrt(units)
        shift = np.abs(drawn.mean(axis=1))
        moved = shift > rounding
        with np.errstate(divide="ignore", invalid="ignore"):
            found.append(np.where(moved, shift / spread, 0.0))
    return np.concatenate(found)


def _as_large(drawn: Floats, found: Floats) -> Floats:
    """Share of the draws, the observed one among them, that are as large; drawn is shaped (draws, 1 or pairs)."""
    return ((drawn >= found * (1 - _EQUAL)).sum(axis=0) + 1) / (len(drawn) + 1)


def _reach(drawn: Floats, level: float) -> Floats:
    """What a statistic must be above for its p by `_as_large` to be at most 1 - level."""
    place = min(int(np.ceil(level * (len(drawn) + 1) - _EQUAL)), len(drawn))
    return np.asarray(np.sort(drawn, axis=0)[place - 1])


def residual_variance(values: Floats) -> float:
    """Mean square of what neither unit nor system explains in scores shaped (units, systems)."""
    rest = values - values.mean(axis=0) - values.mean(axis=1, keepdims=True) + values.mean()
    return float((rest**2).sum() / ((len(values) - 1) * (values.shape[1] - 1)))


# --- tests ----------------------------------------------------------------------------------------


@checked
def compare_pairs(
    scores: pd.DataFrame,
    *,
    run: str = "run",
    unit: str = "topic",
    baseline: str | None = None,
    test: PairedTest = "t",
    correction: Correction = "bonferroni",
    level: Level = 0.95,
    resamples: Resamples = 9999,
    unpaired: Unpaired = "refuse",
    rng: np.random.Generator | None = None,
) -> pd.DataFrame:
    """Paired comparison of systems over the units that all of them are scored on.

    Parameters
    ----------
    scores : DataFrame
        One row per system and unit; the score is the column ``value``. Rows without a unit are
        means and left out.
    run, unit : str
        Names of the columns: the system, what pairs the scores (a topic, a query).
    baseline : str, optional
        Compare every other system with this one; without it, every pair.
    rng : numpy.random.Generator, optional
        Needed by tukey, permutation and bootstrap.

    Returns
    -------
    DataFrame
        One row per comparison, sorted: ``a, b, units, difference, low, high, statistic, p,
        p_corrected, effect``. Difference is the mean of a minus the mean of b (the baseline).
        Interval, statistic and effect go with the test:

        - t, as in the thesis: marginal interval by the t distribution; t; Cohen's d of the pairs, mean over standard
          deviation of the differences.
        - wilcoxon, the signed rank test of SciPy (differences of 0 are left out): interval and effect of t; the smaller
          sum of ranks.
        - permutation, which exchanges the scores within units (every exchange where there are no more than
          `resamples`): interval and effect of t; the mean difference.
        - bootstrap: t of the differences without their mean, units drawn with replacement; the interval by the same
          draws; effect of t.
        - tukey, the randomised Tukey HSD test: scores of all systems change places within each unit, and a difference
          is held against the largest one between any two systems. Its p are those of the family of
          all pairs of systems, so that no further correction is made; its intervals hold for all
          pairs at once; the effect is the difference over the residual standard deviation of units
          and systems. Two systems make it the permutation test.

        The smallest p of a test that draws is 1 / (1 + resamples).

    Raises
    ------
    ValueError
        If a column is missing, a score is missing, repeated or not finite, the baseline is unknown,
        or there are fewer than two systems or units.

    Notes
    -----
    thesis, chapter 2: paired t-test with Bonferroni correction. Tukey: Carterette (2012), section
    4.4; its effect: Sakai (2018), Laboratory Experiments in Information Retrieval. Bootstrap: Sakai
    (2006), after Efron and Tibshirani.

    Examples
    --------
    >>> scores = pd.DataFrame({"topic": list("abcabc"), "run": list("xxxyyy"), "value": [1, 2, 3, 2, 3, 5]})
    >>> compare_pairs(scores)[["a", "b", "difference", "statistic", "p_corrected"]].round(4)
       a  b  difference  statistic  p_corrected
    0  x  y     -1.3333       -4.0       0.0572
    """
    wide = topic_by_run(scores, run=run, unit=unit, unpaired=unpaired)
    columns, names = wide.to_numpy(), wide.columns.tolist()
    if baseline is not None and baseline not in names:
        raise ValueError(f"no system named {baseline!r}; there are {', '.join(names)}")
    first, second = np.triu_indices(len(names), 1)
    if baseline is not None:
        first = np.delete(np.arange(len(names)), names.index(baseline))
        second = np.full_like(first, names.index(baseline))
    if rng is None and test in ("tukey", "permutation", "bootstrap"):
        raise ValueError("the test draws at random: pass rng")
    gaps = columns[:, first] - columns[:, second]
    units = len(gaps)
    mean, error, t, p = paired_t(gaps)
    effect, reach, statistic = (
        t / np.sqrt(units),
        stats.t.isf((1 - level) / 2, units - 1) * error,
        t,
    )
    if test == "wilcoxon":
        statistic, p = np.array([_signed_ranks(gap) for gap in gaps.T]).T
    elif test == "permutation" and rng is not None:
        statistic, p = mean, exchanged(gaps, rng, resamples)
    elif test == "bootstrap" and rng is not None:
        drawn = _studentised(gaps, mean, error, rng, resamples)
        p, reach = _as_large(drawn, np.abs(t)), _reach(drawn, level) * error
    elif test == "tukey" and rng is not None:
        drawn = largest_differences(columns, rng, resamples)[:, np.newaxis]
        statistic, p, reach = mean, _as_large(drawn, np.abs(mean)), _reach(drawn, level)
        with np.errstate(divide="ignore", invalid="ignore"):
            effect = np.where(mean == 0, 0.0, mean / np.sqrt(residual_variance(columns)))
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
            "p_corrected": p if test == "tukey" else corrected(p, correction),
            "effect": effect,
        }
    )


def paired_t(gaps: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Mean, standard error, Student's t and two-sided p of differences shaped (units, pairs), each shaped (pairs,)."""
    mean, error = gaps.mean(axis=0), gaps.std(axis=0, ddof=1) / np.sqrt(len(gaps))
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(mean == 0, 0.0, mean / error)
    return mean, error, t, 2 * stats.t.sf(np.abs(t), len(gaps) - 1)


def _signed_ranks(gap: Floats) -> tuple[float, float]:
    if not gap.any():
        return 0.0, 1.0
    found = stats.wilcoxon(gap)
    return float(found.statistic), float(found.pvalue)


def exchanged(gaps: Floats, rng: np.random.Generator, resamples: int) -> Floats:
    """Two-sided p of differences shaped (units, pairs), of which each may as well have the other sign.

    Every choice of signs where there are no more than ``resamples``; p and draws of
    `scipy.stats.permutation_test`.
    """
    units, observed = len(gaps), gaps.mean(axis=0)
    every = 2 ** min(units, 62) <= resamples
    bits = (
        rng.integers(2**32, size=(size, units), dtype=np.uint32) & 1
        for size in batches(resamples, units)
    )
    signs = (
        2.0 * own - 1.0
        for own in ([np.arange(2**units)[:, np.newaxis] >> np.arange(units) & 1] if every else bits)
    )
    drawn = [np.stack([(own * gap).mean(axis=1) for gap in gaps.T], axis=1) for own in signs]
    means, near, seen = np.concatenate(drawn), np.abs(_ROUNDING * observed), 0 if every else 1
    low, high = (means <= observed + near).sum(axis=0), (means >= observed - near).sum(axis=0)
    return np.minimum(2 * (np.minimum(low, high) + seen) / (len(means) + seen), 1.0)
