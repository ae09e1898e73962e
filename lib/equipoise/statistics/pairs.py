"""Every pair of systems, or each with a baseline: paired tests, corrected over a table."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import scipy  # which loads scipy.stats, a second of imports, at its first use
from numpy.typing import ArrayLike

from equipoise.arrays import Floats, Integers, ratio
from equipoise.declared import checked
from equipoise.errors import Note, listed, need_columns
from equipoise.options import Correction, Level, PairedTest, Resamples, Unpaired
from equipoise.statistics.intervals import batches

# Statistics of two resamples that differ by no more, relatively, are equal: sums are rounded.
_EQUAL = 1e-9


def significance(level: float) -> float:
    """Return the p up to which a difference is significant; 1 - 0.95 is not quite 0.05."""
    return 1 - level + 1e-12


def corrected(p: ArrayLike, method: Correction = "bonferroni") -> Floats:
    r"""Correct p-values for the number of comparisons.

    .. math:: \text{Bonferroni: } \min(1, m p_i), \quad \text{Holm: } \min(1, \max_{j \le i} (m - j
    + 1) p_{(j)})

    ``p`` (shaped (m,)): p-values of one family of comparisons. Returns an array shaped (m,). Raises
    ValueError if a p-value is not between 0 and 1, or the method is unknown. thesis, chapter 2,
    uses Bonferroni.

    Examples
    --------
    >>> corrected([0.01, 0.02, 0.6]), corrected([0.01, 0.02, 0.6], "holm")
    (array([0.03, 0.06, 1.  ]), array([0.03, 0.04, 0.6 ]))
    """
    values = np.asarray(p, dtype=np.float64)
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"p-values must be between 0 and 1, got {values.tolist()}")
    if method == "none":
        return values
    if method == "bonferroni":
        return np.minimum(values * len(values), 1.0)
    if method == "holm":
        order = np.argsort(values, kind="stable")
        steps = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
        return np.minimum(steps, 1.0)[np.argsort(order)]
    raise ValueError(f"correction must be bonferroni, holm or none, got {method!r}")


def topic_by_run(
    scores: pd.DataFrame, *, run: str = "run", unit: str = "topic", unpaired: Unpaired = "refuse"
) -> pd.DataFrame:
    """Pivot scores to a matrix with one row per unit and one column per system, both sorted.

    ``scores``: one row for each system and unit, the score in the column ``value``. A row with an
    empty unit is a mean, and is left out.
    """
    need_columns(scores, ["value", run, unit])
    scores = scores[scores[unit].notna() & (scores[unit] != "")]
    repeated = scores.duplicated([run, unit])
    if repeated.any():
        cell = scores.loc[repeated, [run, unit]].iloc[0].to_dict()
        raise ValueError(
            f"{int(repeated.sum())} pairs of system and unit are scored twice; the first is {cell}"
        )
    wide = scores.pivot(index=unit, columns=run, values="value").sort_index().sort_index(axis=1)  # noqa: PD010
    wide = wide.astype(np.float64).set_axis(wide.columns.map(str), axis=1)
    is_missing = ~np.isfinite(wide)
    if is_missing.to_numpy().any():
        complaints = []
        for system, units in is_missing.items():
            if units.any():
                names = listed(is_missing.index[units])
                complaints.append(f"{run} {system} has no score for {unit} {names}")
        complaint = f"{is_missing.to_numpy().sum()} scores are missing: {'; '.join(complaints)}"
        if unpaired == "refuse":
            remedy = f"score them, or leave these {unit}s out (--unpaired drop)"
            raise ValueError(f"{complaint}; {remedy}")
        wide = wide[~is_missing.any(axis=1)]
        message = f"{complaint}; compared over the {len(wide)} {unit}s that all have"
        warnings.warn(message, Note, stacklevel=2)
    units, systems = wide.shape
    if systems < 2 or units < 2:
        of = f" for {listed(scores['measure'].unique(), 1)}" if "measure" in scores else ""
        raise ValueError(f"needs at least two systems and two units, got {systems} and {units}{of}")
    return wide


# --- resampling -----------------------------------------------------------------------------------


def largest_differences(values: Floats, rng: np.random.Generator, draws: int) -> Floats:
    """Largest difference between means of systems whose scores change places within each unit.

    ``values`` is shaped (units, systems), the result (draws,).
    """
    centred = values - values.mean(axis=1, keepdims=True)
    largest = []
    for size in batches(draws, values.size):
        copies = np.broadcast_to(centred, (size, *values.shape))
        means = rng.permuted(copies, axis=2).mean(axis=1)  # (draws, systems)
        largest.append(np.ptp(means, axis=1))
    return np.concatenate(largest)


def _studentised(
    gaps: Floats, mean: Floats, error: Floats, rng: np.random.Generator, draws: int
) -> Floats:
    """Unsigned t of resampled differences without their mean, shaped (draws, pairs)."""
    centred = gaps - mean
    units = len(gaps)
    # A mean that is 0 but for rounding has a t of 0, also where the spread is 0.
    rounding = np.maximum(_EQUAL * error, 1e-14 * np.abs(gaps).max(axis=0))
    t = []
    for size in batches(draws, gaps.size):
        drawn = centred[rng.integers(units, size=(size, units))]  # (draws, units, pairs)
        spread = drawn.std(axis=1, ddof=1) / np.sqrt(units)
        shift = np.abs(drawn.mean(axis=1))
        with np.errstate(divide="ignore", invalid="ignore"):
            t.append(np.where(shift > rounding, shift / spread, 0.0))
    return np.concatenate(t)


def _p_of_draws(drawn: Floats, observed: Floats) -> Floats:
    """Share of the draws, shaped (draws, 1 or pairs), and the observed one, that are as large."""
    as_large = drawn >= observed * (1 - _EQUAL)
    return (as_large.sum(axis=0) + 1) / (len(drawn) + 1)


def _reach(drawn: Floats, level: float) -> Floats:
    """What a statistic must be above for its p by `_p_of_draws` to be at most 1 - level."""
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
        Columns of the system and of the unit that pairs the scores, such as topic.
    baseline : str, optional
        Compare every other system with this one, instead of every pair.
    rng : numpy.random.Generator, optional
        Needed by tukey, permutation and bootstrap.

    Returns
    -------
    DataFrame
        One row per comparison, sorted: ``a, b, units, difference, low, high, statistic, p,
        p_corrected, effect``. Difference is the mean of a minus the mean of b (the baseline).
        Interval, statistic and effect go with the test:

        - t, as in the thesis. The interval is marginal, by the t distribution; the statistic is t,
          and the effect is Cohen's d, the mean of the differences over their standard deviation.
        - wilcoxon is SciPy's signed rank test, which ignores differences of 0. The statistic is the
          smaller sum of ranks; interval and effect are those of t. Differences that are equal to
          12 digits are ties.
        - permutation swaps the scores within units, in every possible way if that is at most
          `resamples` ways. The statistic is the mean difference; interval and effect are those of
          t.
        - bootstrap resamples units. The statistic is t of the centred differences, the interval is
          from the same samples, and the effect is that of t.
        - tukey, the randomised Tukey HSD test: scores of all systems are permuted within each
          unit, and a difference is compared with the largest one between any two systems. Its p are
          corrected for all pairs of systems, without a further correction. Its intervals are valid
          for all pairs jointly. The effect is the difference over the residual standard deviation
          of units and systems. With two systems it is the permutation test.

        The smallest p of a test that draws is 1 / (1 + resamples). Where two systems differ by the
        same amount on every unit, there is no variation to test against: the effect, and t and its
        p, are NaN, and a note names the pairs.

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
    >>> scores = pd.DataFrame({"topic": [*"abcabc"], "run": [*"xxxyyy"]})
    >>> scores["value"] = [1, 2, 3, 2, 3, 5]
    >>> compare_pairs(scores)[["a", "b", "difference", "statistic", "p_corrected"]].round(4)
       a  b  difference  statistic  p_corrected
    0  x  y     -1.3333       -4.0       0.0572
    """
    wide = topic_by_run(scores, run=run, unit=unit, unpaired=unpaired)
    values, names = wide.to_numpy(), wide.columns.tolist()
    first, second = _places_of_pairs(names, baseline)
    if rng is None and test in ("tukey", "permutation", "bootstrap"):
        raise ValueError("the test draws at random: pass rng")
    columns = _tested(values, first, second, test, level, resamples, rng)
    is_constant = np.isnan(columns["effect"])
    if is_constant.any():
        pairs = [
            f"{names[a]} and {names[b]}"
            for a, b in zip(first[is_constant], second[is_constant], strict=True)
        ]
        message = f"no variation: the difference of {listed(pairs, 3)} is the same for every {unit}"
        warnings.warn(f"{message}; it has no effect size, and no t", Note, stacklevel=2)
    p_corrected = columns["p"]
    if test != "tukey":  # it corrects for all pairs by itself
        # A pair without variation is a comparison of the family, but has no p.
        p_corrected = corrected(np.nan_to_num(columns["p"], nan=1.0), correction)
        p_corrected[np.isnan(columns["p"])] = np.nan
    table = pd.DataFrame(
        {
            "a": [names[place] for place in first],
            "b": [names[place] for place in second],
            "units": len(values),
            **columns,
        }
    )
    table.insert(table.columns.get_loc("effect"), "p_corrected", p_corrected)
    return table


def _tested(
    values: Floats,
    first: Integers,
    second: Integers,
    test: PairedTest,
    level: float,
    resamples: int,
    rng: np.random.Generator | None,
) -> dict[str, Floats]:
    """Difference, interval, statistic, p and effect of pairs of systems, each shaped (pairs,).

    ``values`` is shaped (units, systems); ``first`` and ``second`` index the systems of each pair.
    """
    gaps = values[:, first] - values[:, second]  # (units, pairs)
    units = len(gaps)
    mean, error, t, p = paired_t(gaps)
    statistic = t
    effect = t / np.sqrt(units)  # Cohen's d of the pairs
    reach = scipy.stats.t.isf((1 - level) / 2, units - 1) * error
    if test == "wilcoxon":
        largest = np.abs(values).max(axis=0)
        scale = np.maximum(largest[first], largest[second])
        statistic, p = np.array(list(map(_signed_ranks, gaps.T, scale))).T
    elif test == "permutation" and rng is not None:
        statistic, p = mean, exchanged(gaps, rng, resamples)
    elif test == "bootstrap" and rng is not None:
        drawn = _studentised(gaps, mean, error, rng, resamples)
        p = np.where(np.isnan(t), np.nan, _p_of_draws(drawn, np.abs(t)))
        reach = _reach(drawn, level) * error
    elif test == "tukey" and rng is not None:
        drawn = largest_differences(values, rng, resamples)[:, np.newaxis]
        statistic, p = mean, _p_of_draws(drawn, np.abs(mean))
        reach = _reach(drawn, level)
        residual = np.sqrt(residual_variance(values))
        has_effect = residual > _EQUAL * np.abs(mean).max()
        effect = np.where(mean == 0, 0.0, mean / residual if has_effect else np.nan)
    return {
        "difference": mean,
        "low": mean - reach,
        "high": mean + reach,
        "statistic": statistic,
        "p": p,
        "effect": effect,
    }


def _places_of_pairs(names: list[str], baseline: str | None) -> tuple[Integers, Integers]:
    """Places of the first and of the second system of each comparison, shaped (pairs,)."""
    if baseline is None:
        return np.triu_indices(len(names), 1)
    if baseline not in names:
        raise ValueError(f"unknown system {baseline!r}, must be one of {', '.join(names)}")
    place = names.index(baseline)
    first = np.delete(np.arange(len(names)), place)
    return first, np.full_like(first, place)


def paired_t(gaps: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Mean, standard error, t and two-sided p, each shaped (pairs,), of (units, pairs).

    For gaps that are all the same, except for rounding, t and p are NaN. If they are all 0, t is 0.
    """
    units = len(gaps)
    mean = gaps.mean(axis=0)
    is_constant = np.ptp(gaps, axis=0) <= _EQUAL * np.abs(mean)
    error = np.where(is_constant, 0.0, gaps.std(axis=0, ddof=1) / np.sqrt(units))
    t = np.where(mean == 0, 0.0, ratio(mean, error, np.nan))
    return mean, error, t, 2 * scipy.stats.t.sf(np.abs(t), units - 1)


def _signed_ranks(gap: Floats, scale: float) -> tuple[float, float]:
    """Return the smaller sum of ranks, and its two-sided p."""
    # Differences such as .3 - .2 and .2 - .1 are ties; tables are written with 12 digits.
    rounded = np.round(gap / scale, 12) if scale else gap
    if not rounded.any():
        return 0.0, 1.0
    result = scipy.stats.wilcoxon(rounded)
    return float(result.statistic), float(result.pvalue)


def exchanged(gaps: Floats, rng: np.random.Generator, resamples: int) -> Floats:
    """Return the two-sided p of the paired randomisation test of (units, pairs), shaped (pairs,).

    Every choice of signs counts where there are no more than ``resamples``.
    """
    result = scipy.stats.permutation_test(
        (gaps,),
        lambda sample, axis: sample.mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=resamples,
        batch=max(2**20 // max(gaps.size, 1), 1),
        axis=0,
        rng=rng,
    )
    return np.asarray(result.pvalue, dtype=np.float64)
