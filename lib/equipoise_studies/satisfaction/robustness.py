"""Scores of an estimator when more users are dissatisfied: test sets mixed to any share of them.

All functions of arrays broadcast over estimators and draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from equipoise.arrays import Floats
from equipoise_studies.satisfaction.accuracy import SCORES, binary_scores, fraction


class _MixedSets(NamedTuple):
    """Test sets at each ratio, and the three sets that they are mixed of.

    ``correct``, ``size``: (..., 3), counts of the satisfied samples of Main, its dissatisfied ones,
    and those that can be added. ``satisfied``, ``added``: (..., ratios), samples in the mixed set.
    """

    correct: Floats
    size: Floats
    satisfied: Floats
    added: Floats


def _mixed_sets(correct: ArrayLike, size: ArrayLike, ratios: ArrayLike) -> _MixedSets:
    """Test sets with a share of dissatisfied samples, as `robustness_curve` says."""
    counts = np.broadcast_arrays(
        np.asarray(correct, dtype=np.float64), np.asarray(size, dtype=np.float64)
    )
    n_correct, n_samples = counts
    shares = np.atleast_1d(np.asarray(ratios, dtype=np.float64))
    if n_correct.shape[-1] != 3 or (n_correct < 0).any() or (n_correct > n_samples).any():
        raise ValueError("three counts are wanted, correct ones from 0 to as many as there are")
    satisfied, dissatisfied, extra = (n_samples[..., [place]] for place in range(3))
    main_shares = dissatisfied / np.maximum(satisfied + dissatisfied, 1)
    least = float(main_shares.max(initial=0.0))
    if (shares < least - 1e-9).any() or (shares > 1).any():
        raise ValueError(
            f"ratios lie between Main's share of dissatisfied samples, {least:.4f}, and 1"
        )

    with np.errstate(divide="ignore", invalid="ignore"):
        to_add = np.where(shares < 1, shares * satisfied / (1 - shares), np.inf) - dissatisfied
        all_dissatisfied = dissatisfied + extra
        to_keep = np.where(shares > 0, all_dissatisfied * (1 - shares) / shares, np.inf)
    # Beyond the point where all are added, satisfied samples are left out instead.
    all_added = to_add >= extra
    rounded = np.clip(np.round(np.minimum(to_add, extra)), 0, None)
    added = np.where(all_added, extra, rounded)
    satisfied = np.where(all_added, np.round(np.minimum(to_keep, satisfied)), satisfied)
    return _MixedSets(n_correct, n_samples, satisfied, added)


def expected_curve(correct: ArrayLike, size: ArrayLike, ratios: ArrayLike) -> Floats:
    """`robustness_curve`, with the expected correct samples put into the scores, (..., ratios, 5).

    It takes fractions: counts scaled up from a part of the samples. It differs from the expectation
    of a score that is not linear in the counts.
    """
    sets = _mixed_sets(correct, size, ratios)
    rates = fraction(sets.correct, sets.size)
    correct_satisfied = rates[..., [0]] * sets.satisfied
    correct_dissatisfied = sets.correct[..., [1]] + rates[..., [2]] * sets.added
    dissatisfied = sets.size[..., [1]] + sets.added
    return binary_scores(correct_satisfied, sets.satisfied, correct_dissatisfied, dissatisfied)


def robustness_curve(
    correct: ArrayLike, size: ArrayLike, ratios: ArrayLike, *, level: float = 0.95
) -> Floats:
    r"""Scores over the share of dissatisfied samples, over all ways to draw the test set.

    The test set is Main with dissatisfied samples of the counterfactual added until they make up
    the ratio; when all of them are in, satisfied samples are left out instead. How many of those
    drawn are correct follows the hypergeometric distribution:

    .. math:: E[f] = \sum_x \frac{\binom{c}{x} \binom{n - c}{m - x}}{\binom{n}{m}} f(x)

    ``correct``, ``size`` (shaped (..., 3)): how many are labelled correctly, and how many there
    are, of: satisfied samples of Main, dissatisfied samples of Main, dissatisfied samples of the
    counterfactual. ``ratios`` (shaped (ratios,)): shares of dissatisfied samples, from that of Main
    to 1. Main's own share gives the scores of Main, 1 those of all dissatisfied samples. ``level``:
    share of the draws that the interval holds. Returns: Shaped (..., ratios, 5, 3): expectation,
    lower and upper end of the interval over draws, of each of `SCORES`.

    thesis section 3.6.2 and Figures 3.4 and 3.5, which draw one test set for each ratio, in steps
    of 0.05. At a ratio the number of samples is rounded to a whole one.
    """
    sets = _mixed_sets(correct, size, ratios)
    if (sets.correct % 1 != 0).any() or (sets.size % 1 != 0).any():
        raise ValueError(
            "the exact distribution needs whole counts; expected_curve takes fractions"
        )
    # One more axis, the numbers of correct samples that may be drawn: (..., ratios, support).
    satisfied, added = sets.satisfied[..., np.newaxis], sets.added[..., np.newaxis]
    correct_counts = (sets.correct[..., [place], np.newaxis] for place in range(3))
    correct_satisfied, correct_dissatisfied, correct_extra = correct_counts
    all_satisfied, dissatisfied, extra = (sets.size[..., [place], np.newaxis] for place in range(3))
    support = np.arange(int(sets.correct[..., [0, 2]].max(initial=0)) + 1)

    # Dissatisfied samples are drawn until all are added, then satisfied ones.
    draws_extra = added < extra
    pool = np.where(draws_extra, extra, all_satisfied)
    correct_in_pool = np.where(draws_extra, correct_extra, correct_satisfied)
    n_drawn = np.where(draws_extra, added, satisfied)
    weights = stats.hypergeom.pmf(support, pool, correct_in_pool, n_drawn)
    weights = weights / weights.sum(axis=-1, keepdims=True)
    possible = weights > 0
    drawn = np.where(possible, support, 0.0)  # 0 is a count that fits, of weight 0
    scores = binary_scores(
        np.where(draws_extra, correct_satisfied, drawn),
        satisfied,
        correct_dissatisfied + np.where(draws_extra, drawn, correct_extra),
        dissatisfied + added,
    )
    return _mean_and_interval(scores, weights[..., np.newaxis], possible[..., np.newaxis], level)


def _mean_and_interval(scores: Floats, weights: Floats, possible: Floats, level: float) -> Floats:
    """Weighted mean and quantiles over the support, (..., support, scores) to (..., scores, 3)."""
    order = np.argsort(np.where(possible, scores, np.inf), axis=-2, kind="stable")
    ascending = np.take_along_axis(scores, order, axis=-2)
    cumulated = np.cumsum(np.take_along_axis(weights, order, axis=-2), axis=-2)
    ends = []
    for limit in ((1 - level) / 2, (1 + level) / 2):
        place = (cumulated >= limit - 1e-12).argmax(axis=-2, keepdims=True)
        ends.append(np.take_along_axis(ascending, place, axis=-2))
    mean = (weights * scores).sum(axis=-2, keepdims=True)
    return np.concatenate([mean, *ends], axis=-2).swapaxes(-1, -2)


def sampled_intervals(
    correct: ArrayLike,
    size: ArrayLike,
    ratios: ArrayLike,
    rng: np.random.Generator,
    *,
    population: ArrayLike | None = None,
    resamples: int = 2000,
) -> Floats:
    """Bootstrap 95% intervals of the robustness curve: what other samples would have given.

    ``population`` (shaped (3,)): Sizes of the sets that the samples were drawn from, where only a
    part of them was labelled; else ``size``. Returns: Shaped (ratios, 5, 3): estimate by expected
    counts, lower and upper end, of each of `SCORES`.

    Resampling labelled samples with replacement within each of the three sets makes the correct
    ones binomial. Samples of one dialogue count as independent, so that the intervals are rather
    too narrow.
    """
    n_correct, n_samples = np.asarray(correct, dtype=np.float64), np.asarray(size, dtype=np.float64)
    full_size = n_samples
    if population is not None:
        full_size = np.asarray(population, dtype=np.float64)
    if ((n_samples == 0) & (full_size > 0)).any():
        raise ValueError("no labelled sample of a set that the population has")
    rates = fraction(n_correct, n_samples)
    drawn = rng.binomial(n_samples.astype(np.int64), rates, size=(resamples, 3))
    drawn_rates = drawn / np.maximum(n_samples, 1)
    estimate = expected_curve(rates * full_size, full_size, ratios)
    curves = expected_curve(drawn_rates * full_size, full_size, ratios)
    ends = np.quantile(curves, [0.025, 0.975], axis=0)
    return np.stack([estimate, *ends], axis=-1)


def robustness_table(
    counts: pd.DataFrame,
    keys: Sequence[str] = ("run",),
    *,
    turned: str = "CF",
    step: float = 0.05,
    population: pd.DataFrame | None = None,
    rng: np.random.Generator | None = None,
    resamples: int = 2000,
) -> pd.DataFrame:
    """Robustness curves of estimators, as a table (thesis Figures 3.4 and 3.5).

    ``counts``: the keys, ``world`` ("Main" or the one ``turned``; others are left out) and
    `equipoise_studies.satisfaction.accuracy.COUNTS`, in samples: one row for each estimator and
    world. ``keys``: Columns that identify an estimator. ``turned``: The world whose dissatisfied
    samples are added. ``step``: Step of the share of dissatisfied samples, which runs from Main's
    own over the multiples between to 1. ``population``: Whole counts, where only a part of the
    samples was labelled: the keys or some of them, ``world``, ``satisfied`` and ``dissatisfied``.
    ``rng``: with it, the intervals are those of `sampled_intervals`; without, those of
    `robustness_curve`. Estimators draw in the order of their keys. Returns: The keys, ``measure,
    ratio, value, low, high``, sorted by the keys, then by ratio.
    """
    keys = list(keys)
    if not 0 < step <= 1:
        raise ValueError(f"the step is above 0 and at most 1, found {step}")
    if population is not None and rng is None:
        raise ValueError("whole counts of a labelled part need a bootstrap: pass rng")
    full_counts = counts
    if population is not None:
        full_counts = counts[[*keys, "world"]].merge(population, how="left")

    correct = _three_sets(counts, keys, turned, "correct_")
    if correct.isna().to_numpy().any():
        raise ValueError(
            f"one row of Main and one of {turned} wanted for each of {', '.join(keys)}"
        )
    sizes = _three_sets(counts, keys, turned).to_numpy(dtype=np.float64)
    full_sizes = _three_sets(full_counts, keys, turned).to_numpy(dtype=np.float64)
    curves = {}
    for place, (key, n_correct) in enumerate(correct.iterrows()):
        size, full_size = sizes[place], full_sizes[place]
        ratios = _ratios(full_size[1] / (full_size[0] + full_size[1]), step)
        if rng is None:
            scores = robustness_curve(n_correct, size, ratios)
        else:
            scores = sampled_intervals(
                n_correct, size, ratios, rng, population=full_size, resamples=resamples
            )
        rows = pd.MultiIndex.from_product([ratios, SCORES], names=["ratio", "measure"])
        curves[key] = pd.DataFrame(
            scores.reshape(-1, 3), index=rows, columns=["value", "low", "high"]
        )
    table = pd.concat(curves, names=keys).reset_index()
    return table[[*keys, "measure", "ratio", "value", "low", "high"]]


def _three_sets(
    counts: pd.DataFrame, keys: list[str], turned: str, prefix: str = ""
) -> pd.DataFrame:
    """Counts of the satisfied and dissatisfied samples of Main, and of the dissatisfied turned."""
    satisfied, dissatisfied = f"{prefix}satisfied", f"{prefix}dissatisfied"
    wide = counts.pivot_table(
        index=keys, columns="world", values=[satisfied, dissatisfied], aggfunc="first"
    )
    return wide.reindex(
        columns=[(satisfied, "Main"), (dissatisfied, "Main"), (dissatisfied, turned)]
    )


def _ratios(least: float, step: float) -> Floats:
    """Shares of dissatisfied samples: Main's own, the multiples of the step between, and 1."""
    multiples = np.arange(1, np.ceil(1 / step)) * step
    between = multiples[(multiples > least + 1e-9) & (multiples < 1 - 1e-9)]
    return np.unique([least, *between, 1.0])
