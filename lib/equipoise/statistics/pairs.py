"""Every pair of systems, or each with a baseline: paired tests, corrected over a table."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache

import numpy as np
import pandas as pd
import scipy  # which loads scipy.stats, a second of imports, at its first use
from numpy.typing import ArrayLike

from equipoise.arrays import Floats, Integers, ratio
from equipoise.declared import checked
from equipoise.errors import Note, listed, need_columns
from equipoise.options import Correction, Level, PairedTest, Resamples, Unpaired
from equipoise.statistics.intervals import batches, drawn_counts

# Statistics of two resamples that differ by no more, relatively, are equal: sums are rounded.
_EQUAL = 1e-9
_LARGEST_SCORE = 1e100
_MOST_EXACT_RANKS = 50
"""Differences other than 0 up to which p of the signed rank test is exact, as in SciPy and R."""


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


def corrected_of_family(p: Floats, method: Correction) -> Floats:
    """`corrected`, where a pair without variation is one of the comparisons, but has no p."""
    is_missing = np.isnan(p)
    return np.where(is_missing, np.nan, corrected(np.where(is_missing, 1.0, p), method))


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
    largest = float(np.abs(wide.to_numpy()).max(initial=0.0))
    if largest > _LARGEST_SCORE:
        raise ValueError(
            f"scores must be between -{_LARGEST_SCORE:g} and {_LARGEST_SCORE:g}, got {largest:g},"
            " whose square is infinite"
        )
    units, systems = wide.shape
    if systems < 2 or units < 2:
        of = f" for {listed(scores['measure'].unique(), 1)}" if "measure" in scores else ""
        raise ValueError(f"needs at least two systems and two units, got {systems} and {units}{of}")
    return wide


# --- resampling -----------------------------------------------------------------------------------


def largest_differences(values: Floats, rng: np.random.Generator, draws: int) -> Floats:
    """Largest difference between means of systems whose scores change places within each unit.

    ``values`` is shaped (units, systems), the result (draws,). Many scores are permuted once for
    several draws, in which the permuted scores of each unit are rotated at random. Every draw alone
    is then as likely as any other permutation.
    """
    units, systems = values.shape
    centred = values - values.mean(axis=1, keepdims=True)
    # Draws with the same permutations are not independent: of few scores each draw has its own.
    draws_per_permutation = min(1 + values.size // 10_000, 10)
    largest = []
    for size in batches(-(-draws // draws_per_permutation), 2 * values.size):
        permuted = rng.permuted(np.broadcast_to(centred, (size, *values.shape)), axis=2)
        largest.append(np.ptp(permuted.mean(axis=1), axis=1))
        twice = np.concatenate([permuted, permuted], axis=2)
        rotations = np.lib.stride_tricks.sliding_window_view(twice, systems, axis=2)
        for _ in range(draws_per_permutation - 1):
            places = np.arange(size)[:, np.newaxis], np.arange(units)
            rotated = rotations[*places, rng.integers(systems, size=(size, units))]
            largest.append(np.ptp(rotated.mean(axis=1), axis=1))
    return np.concatenate(largest)[:draws]


def _studentised(
    values: Floats,
    first: Integers,
    second: Integers,
    observed: Floats,
    rng: np.random.Generator,
    draws: int,
    level: float,
) -> tuple[Floats, Floats]:
    """Return p and reach of t, each (pairs,), from t of resampled differences without their mean.

    ``observed``: unsigned t of the pairs; the other arguments are those of `_tested`.
    """
    centred = values - values.mean(axis=0)
    units = len(values)
    counts = np.concatenate(list(drawn_counts(units, rng, draws))).T
    sums = centred.T @ counts
    rounding = (1e-14 * np.abs(values).max()) ** 2
    p, reach = np.empty((2, len(first)))
    for pairs in _blocks_of_pairs(len(first), draws):
        squares = (centred[:, first[pairs]] - centred[:, second[pairs]]) ** 2
        # Of the mean and of t the squares: millions of roots take as long as all else.
        shift = np.square((sums[first[pairs]] - sums[second[pairs]]) / units)
        variance = (squares / units).T @ counts - shift
        # The mean and the variance of equal values are 0 but for rounding.
        variance[variance <= 1e-13 * squares.max(axis=0)[:, np.newaxis]] = 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            t = shift / variance
        t[shift <= rounding] = 0.0
        p[pairs] = _p_of_draws(t, observed[pairs] ** 2 / (units - 1))
        reach[pairs] = np.sqrt(_reach(t, level) * (units - 1))
    return p, reach


def _p_of_draws(drawn: Floats, observed: Floats) -> Floats:
    """Share of the draws, shaped (1 or pairs, draws), and the observed one, that are as large."""
    as_large = drawn >= observed[:, np.newaxis] * (1 - _EQUAL)
    return (as_large.sum(axis=1) + 1) / (drawn.shape[1] + 1)


def _reach(drawn: Floats, level: float) -> Floats:
    """What a statistic must be above for its p by `_p_of_draws` to be at most 1 - level.

    Infinite where no p is so small.
    """
    draws = drawn.shape[1]
    place = int(np.ceil(level * (draws + 1) - _EQUAL))
    if place > draws:
        return np.full(len(drawn), np.inf)
    return np.asarray(np.partition(drawn, place - 1, axis=1)[:, place - 1])


def _blocks_of_pairs(pairs: int, draws: int) -> Iterator[slice]:
    """Pairs of which all draws are held at once."""
    begin = 0
    for size in batches(pairs, draws):
        yield slice(begin, begin + size)
        begin += size


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
        - wilcoxon is the signed rank test without differences of 0. Its p is exact up to 50
          others, also with ties: differences that are equal to 12 digits. The statistic is the
          smaller sum of ranks; there is no interval, and the effect is that of t.
        - permutation swaps the scores within units, in every possible way if that is at most
          `resamples` ways. The statistic is the mean difference. The interval has the differences
          that the test does not reject; the effect is that of t.
        - bootstrap resamples units. The statistic is t of the centred differences, the interval is
          from the same samples, and the effect is that of t.
        - tukey, the randomised Tukey HSD test: scores of all systems are permuted within each
          unit, and a difference is compared with the largest one between any two systems. Its p are
          corrected for all pairs of systems, without a further correction. Its intervals are valid
          for all pairs jointly. The effect is the difference over the residual standard deviation
          of units and systems. With two systems it is the permutation test.

        An interval includes 0 where p is above 1 - level. A pair has none where no difference could
        be rejected, or where more than 1 - level of its resamples have no variation; a note names
        these pairs. The smallest p of a test that draws is 1 / (1 + resamples). Where two systems
        differ by the same amount on every unit, there is no variation to test against: the effect,
        and t and its p, are NaN, and a note names the pairs.

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
    without = np.isnan(columns["low"]) & ~is_constant
    if test != "wilcoxon" and without.any():
        pairs = [f"{names[a]} and {names[b]}" for a, b in zip(first, second, strict=True)]
        told = listed([pair for pair, lacks in zip(pairs, without, strict=True) if lacks], 3)
        reason = f"too few {unit}s or resamples"
        if test == "bootstrap":
            reason = "too many resamples without variation"
        warnings.warn(f"no interval, {reason}: {told}", Note, stacklevel=2)
    p_corrected = columns["p"]
    if test != "tukey":  # it corrects for all pairs by itself
        p_corrected = corrected_of_family(p_corrected, correction)
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
    low, high = mean - reach, mean + reach
    if test == "wilcoxon":
        largest = np.abs(values).max(axis=0)
        statistic, p = _signed_ranks(gaps, np.maximum(largest[first], largest[second]))
        low = high = np.full(len(mean), np.nan)
    elif test == "permutation" and rng is not None:
        statistic = mean
        p, low, high = exchanged(values, first, second, rng, resamples, level)
    elif test == "bootstrap" and rng is not None:
        p, reach = _studentised(values, first, second, np.abs(t), rng, resamples, level)
        p[np.isnan(t)] = np.nan
        reach = np.where(error == 0, 0.0, reach) * error
        low, high = mean - reach, mean + reach
    elif test == "tukey" and rng is not None:
        drawn = largest_differences(values, rng, resamples)[np.newaxis]
        statistic, p = mean, _p_of_draws(drawn, np.abs(mean))
        reach = _reach(drawn, level)
        low, high = mean - reach, mean + reach
        residual = np.sqrt(residual_variance(values))
        has_effect = residual > _EQUAL * np.abs(mean).max()
        effect = np.where(mean == 0, 0.0, mean / residual if has_effect else np.nan)
    has_interval = np.isfinite(low) & np.isfinite(high)
    # What is not significant has 0 in its interval; an end may miss it by rounding.
    is_open = p > significance(level)
    return {
        "difference": mean,
        "low": np.where(has_interval, np.where(is_open, np.minimum(low, 0.0), low), np.nan),
        "high": np.where(has_interval, np.where(is_open, np.maximum(high, 0.0), high), np.nan),
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


def _signed_ranks(gaps: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """Return the smaller sum of ranks, and its two-sided p, of (units, pairs), each (pairs,)."""
    # Differences such as .3 - .2 and .2 - .1 are ties; tables are written with 12 digits.
    rounded = np.round(gaps / np.where(scale == 0, 1.0, scale), 12)
    statistic, p = np.zeros(gaps.shape[1]), np.ones(gaps.shape[1])
    changed = np.count_nonzero(rounded, axis=0)
    is_long = changed > _MOST_EXACT_RANKS
    blocks = 1 + rounded.size // 2**21
    for places in filter(len, np.array_split(np.flatnonzero(is_long), blocks)):
        result = scipy.stats.wilcoxon(rounded[:, places], axis=0, method="asymptotic")
        statistic[places], p[places] = result.statistic, result.pvalue
    for place in np.flatnonzero((changed > 0) & ~is_long):
        gap = rounded[rounded[:, place] != 0, place]
        ranks = scipy.stats.rankdata(np.abs(gap))
        statistic[place] = min(ranks[gap > 0].sum(), ranks[gap < 0].sum())
        p[place] = _p_of_ranks(tuple(sorted(ranks.tolist())), statistic[place])
    return statistic, p


@cache
def _p_of_ranks(ranks: tuple[float, ...], statistic: float) -> float:
    """Two-sided p of the smaller sum of ranks, over every choice of their signs."""
    # Ranks of ties end in .5: twice a rank is whole.
    ways = np.ones(1)  # by the sum of the ranks of one sign
    for rank in ranks:
        added = np.zeros(int(2 * rank))
        ways = np.concatenate([ways, added]) + np.concatenate([added, ways])
    return min(1.0, float(2 * ways[: int(2 * statistic) + 1].sum() / ways.sum()))


def exchanged(
    values: Floats,
    first: Integers,
    second: Integers,
    rng: np.random.Generator,
    resamples: int,
    level: float = 0.95,
) -> tuple[Floats, Floats, Floats]:
    """Return p of the paired randomisation test, and the ends of its interval, each (pairs,).

    ``values`` is shaped (units, systems); ``first`` and ``second`` index the systems of each pair.
    Every choice of units counts where there are no more than ``resamples``; else they are drawn as
    by `scipy.stats.permutation_test`, and p is as its two-sided one. The interval has every
    difference that the test does not reject; infinite where it rejects none.
    """
    units = len(values)
    centred = values - values.mean(axis=1, keepdims=True)
    sums, sizes = [], []
    for exchanges in _choices_of_units(units, rng, resamples):
        sums.append(centred.T @ exchanges.T)  # (systems, exchanges)
        sizes.append(exchanges.sum(axis=1))
    every_sum, size = np.concatenate(sums, axis=1), np.concatenate(sizes)
    draws = len(size) + 1  # with the choice of no unit
    # Exchanging some units gives at least the observed mean where their mean is not above 0. A
    # difference to test against is subtracted from each: the ends are means of chosen units.
    size = np.where(size == 0, np.inf, size)
    rounding = 1e-12 * np.abs(centred).sum(axis=0)
    p, low, high = np.empty((3, len(first)))
    place = int(np.floor((1 - level) * draws / 2 + _EQUAL)) - 1
    for pairs in _blocks_of_pairs(len(first), draws):
        chosen = every_sum[first[pairs]] - every_sum[second[pairs]]
        equal = (rounding[first[pairs]] + rounding[second[pairs]])[:, np.newaxis]
        not_above, not_below = (chosen <= equal).sum(axis=1), (chosen >= -equal).sum(axis=1)
        p[pairs] = np.minimum(2 * (np.minimum(not_above, not_below) + 1) / draws, 1.0)
        if place < 0:
            low[pairs], high[pairs] = -np.inf, np.inf
            continue
        means = np.partition(chosen / size, [place, draws - 2 - place], axis=1)
        low[pairs], high[pairs] = means[:, place], means[:, draws - 2 - place]
    return p, low, high


def _choices_of_units(units: int, rng: np.random.Generator, resamples: int) -> Iterator[Floats]:
    """Which units are exchanged, in blocks shaped (some of the choices, units), as 0 and 1."""
    if units < 60 and 2**units <= resamples:
        numbers = np.arange(1, 2**units)[:, np.newaxis]
        yield (numbers >> np.arange(units) & 1).astype(np.float64)
        return
    for drawn in batches(resamples, 2 * units):
        # The bits by which `Generator.permuted` exchanges two values.
        bits = rng.integers(2**32, size=(drawn, units), dtype=np.uint32) & 1
        yield (1 - bits).astype(np.float64)
