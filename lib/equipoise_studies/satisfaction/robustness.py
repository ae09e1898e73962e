"""Scores of an estimator when more users are dissatisfied: test sets mixed to any share of dissatisfied samples.

All functions of arrays broadcast over estimators and draws.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from equipoise.arrays import Floats
from equipoise_studies.satisfaction.accuracy import SCORES, binary_scores, fraction


def _test_sets(
    correct: ArrayLike, size: ArrayLike, ratios: ArrayLike
) -> tuple[Floats, Floats, Floats, Floats]:
    """Counts as arrays, and the satisfied and the added dissatisfied samples at each ratio, shaped (..., ratios)."""
    right, there = np.broadcast_arrays(
        np.asarray(correct, dtype=np.float64), np.asarray(size, dtype=np.float64)
    )
    shares = np.atleast_1d(np.asarray(ratios, dtype=np.float64))
    if right.shape[-1] != 3 or (right < 0).any() or (right > there).any():
        raise ValueError("three counts are wanted, correct ones from 0 to as many as there are")
    satisfied, own, extra = (there[..., [part]] for part in range(3))
    least = float((own / np.maximum(satisfied + own, 1)).max(initial=0.0))
    if (shares < least - 1e-9).any() or (shares > 1).any():
        raise ValueError(
            f"ratios lie between Main's share of dissatisfied samples, {least:.4f}, and 1"
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = np.where(shares < 1, shares * satisfied / (1 - shares), np.inf) - own
        rest = np.where(shares > 0, (own + extra) * (1 - shares) / shares, np.inf)
    full = wanted >= extra
    added = np.where(full, extra, np.clip(np.round(np.minimum(wanted, extra)), 0, None))
    kept = np.where(full, np.round(np.minimum(rest, satisfied)), satisfied)
    return right, there, kept, added


def expected_curve(correct: ArrayLike, size: ArrayLike, ratios: ArrayLike) -> Floats:
    """`robustness_curve`, the expected number of correct samples put into the scores; shaped (..., ratios, 5).

    It takes fractions: counts scaled up from a part of the samples. It differs from the expectation
    of a score that is not linear in the counts.
    """
    right, there, kept, added = _test_sets(correct, size, ratios)
    rates = fraction(right, there)
    found = right[..., [1]] + rates[..., [2]] * added
    return binary_scores(rates[..., [0]] * kept, kept, found, there[..., [1]] + added)


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
    right, there, kept, added = _test_sets(correct, size, ratios)
    if (right % 1 != 0).any() or (there % 1 != 0).any():
        raise ValueError(
            "the exact distribution needs whole counts; expected_curve takes fractions"
        )
    kept, added = (
        kept[..., np.newaxis],
        added[..., np.newaxis],
    )  # (..., ratios, 1), to broadcast with the support
    right_satisfied, right_own, right_extra = (right[..., [part], np.newaxis] for part in range(3))
    satisfied, own, extra = (there[..., [part], np.newaxis] for part in range(3))
    drawing = added < extra  # else it is the satisfied samples that are drawn
    pool, good = (
        np.where(drawing, extra, satisfied),
        np.where(drawing, right_extra, right_satisfied),
    )
    support = np.arange(int(right[..., [0, 2]].max(initial=0)) + 1)
    weights = stats.hypergeom.pmf(support, pool, good, np.where(drawing, added, kept))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    possible = weights > 0
    x = np.where(possible, support, 0.0)  # 0 is a count that fits, of weight 0
    found = right_own + np.where(drawing, x, right_extra)
    scores = binary_scores(np.where(drawing, right_satisfied, x), kept, found, own + added)
    weights = weights[..., np.newaxis]  # (..., ratios, support, 1), as scores
    order = np.argsort(np.where(possible[..., np.newaxis], scores, np.inf), axis=-2, kind="stable")
    cumulated = np.cumsum(np.take_along_axis(weights, order, axis=-2), axis=-2)
    ends = [
        (cumulated >= limit - 1e-12).argmax(axis=-2, keepdims=True)
        for limit in ((1 - level) / 2, (1 + level) / 2)
    ]
    ascending = np.take_along_axis(scores, order, axis=-2)
    interval = np.take_along_axis(ascending, np.concatenate(ends, axis=-2), axis=-2)
    expected = (weights * scores).sum(axis=-2, keepdims=True)
    return np.concatenate([expected, interval], axis=-2).swapaxes(-1, -2)


def sampled_intervals(
    correct: ArrayLike,
    size: ArrayLike,
    ratios: ArrayLike,
    rng: np.random.Generator,
    *,
    population: ArrayLike | None = None,
    resamples: int = 2000,
) -> Floats:
    """Bootstrap 95% intervals of the robustness curve: what other samples of the same kind would have given.

    ``population`` (shaped (3,)): Sizes of the sets that the samples were drawn from, where only a
    part of them was labelled; else ``size``. Returns: Shaped (ratios, 5, 3): estimate by expected
    counts, lower and upper end, of each of `SCORES`.

    Resampling labelled samples with replacement within each of the three sets makes the correct
    ones binomial. Samples of one dialogue count as independent, so that the intervals are rather
    too narrow.
    """
    right, there = np.asarray(correct, dtype=np.float64), np.asarray(size, dtype=np.float64)
    whole = there if population is None else np.asarray(population, dtype=np.float64)
    if ((there == 0) & (whole > 0)).any():
        raise ValueError("no labelled sample of a set that the population has")
    rates = fraction(right, there)
    drawn = rng.binomial(there.astype(np.int64), rates, size=(resamples, 3)) / np.maximum(there, 1)
    estimate, curves = (expected_curve(share * whole, whole, ratios) for share in (rates, drawn))
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
    whole = counts if population is None else counts[[*keys, "world"]].merge(population, how="left")

    def three(table: pd.DataFrame, satisfied: str, dissatisfied: str) -> pd.DataFrame:
        wide = table.pivot_table(
            index=keys, columns="world", values=[satisfied, dissatisfied], aggfunc="first"
        )
        return wide.reindex(
            columns=[(satisfied, "Main"), (dissatisfied, "Main"), (dissatisfied, turned)]
        )

    right = three(counts, "correct_satisfied", "correct_dissatisfied")
    if right.isna().to_numpy().any():
        raise ValueError(
            f"one row of Main and one of {turned} wanted for each of {', '.join(keys)}"
        )
    curves = {}
    sizes = (
        three(table, "satisfied", "dissatisfied").to_numpy(dtype=np.float64)
        for table in (counts, whole)
    )
    for key, correct, size, full in zip(
        right.index, right.to_numpy(dtype=np.float64), *sizes, strict=True
    ):
        least = full[1] / (full[0] + full[1])
        multiples = np.arange(1, np.ceil(1 / step)) * step
        between = multiples[(multiples > least + 1e-9) & (multiples < 1 - 1e-9)]
        shares = np.unique([least, *between, 1.0])
        if rng is None:
            scores = robustness_curve(correct, size, shares)
        else:
            scores = sampled_intervals(
                correct, size, shares, rng, population=full, resamples=resamples
            )
        rows = pd.MultiIndex.from_product([shares, SCORES], names=["ratio", "measure"])
        curves[key] = pd.DataFrame(
            scores.reshape(-1, 3), index=rows, columns=["value", "low", "high"]
        )
    return pd.concat(curves, names=keys).reset_index()[
        [*keys, "measure", "ratio", "value", "low", "high"]
    ]
