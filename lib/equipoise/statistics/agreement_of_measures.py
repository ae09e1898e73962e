"""What measures say of the same runs: whether they order them alike, and tell them apart."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from equipoise.arrays import Floats, ratio
from equipoise.declare import checked
from equipoise.options import Level, Resamples, Seed, Unpaired
from equipoise.problems import Note, listed
from equipoise.statistics.intervals import batches, percentile_interval
from equipoise.statistics.leaderboards import scores_of
from equipoise.statistics.pairs import compare_pairs, significance, topic_by_run


def kendall(first: ArrayLike, second: ArrayLike) -> Floats:
    r"""Kendall's tau-b along the last axis of values shaped (..., systems); NaN where all are tied.

    .. math:: \tau_b = \frac{\sum_{i<j} s_{ij} t_{ij}}{\sqrt{\sum_{i<j} s_{ij}^2 \sum_{i<j}
    t_{ij}^2}}

    with s and t the signs of the differences of two systems in the one and the other.
    """
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    i, j = np.triu_indices(x.shape[-1], 1)  # every pair of systems once
    s = np.sign(x[..., i] - x[..., j])
    t = np.sign(y[..., i] - y[..., j])
    scale = np.sqrt((s**2).sum(axis=-1) * (t**2).sum(axis=-1))
    return ratio((s * t).sum(axis=-1), scale, np.nan)


def top_weighted_tau(first: ArrayLike, second: ArrayLike) -> float:
    r"""The mean of tau-ap of either ranking with the other; NaN with ties.

    .. math:: \tau_{ap} = \frac{2}{n - 1} \sum_{i=2}^{n} \frac{C(i)}{i - 1} - 1

    with C(i) the systems ranked above i that the other ranking has above it too. Yilmaz, Aslam and
    Robertson (2008).
    """
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    has_ties = len(np.unique(x)) < len(x) or len(np.unique(y)) < len(y)
    if has_ties:
        return float("nan")
    return float(np.mean([_tau_ap(x, y), _tau_ap(y, x)]))


def _tau_ap(x: Floats, y: Floats) -> float:
    """tau-ap of the ranking by x, with that by y as the reference."""
    reference = y[np.argsort(-x)]  # by x, the highest first
    is_above_in_both = np.tril(reference > reference[:, np.newaxis], -1)  # (i, systems above i)
    agreeing = is_above_in_both.sum(axis=1)[1:]  # C(i)
    return float(2 * (agreeing / np.arange(1, len(x))).mean() - 1)


def scores_by_measure(scores: pd.DataFrame, measures: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Scores of each measure, and of each attribute set that it has, by its name."""
    groups = scores_of(scores, measures).groupby(["measure", "attribute"], sort=False)
    return {f"{measure} {attribute}".rstrip(): part for (measure, attribute), part in groups}


@checked
def correlations(
    scores: pd.DataFrame,
    measures: Sequence[str] = (),
    *,
    level: Level = 0.95,
    resamples: Resamples = 9999,
    unpaired: Unpaired = "refuse",
    seed: Seed = 0,
) -> pd.DataFrame:
    """Kendall's tau between the orders in which measures put runs, with intervals over topics.

    ``scores``: columns run, topic, measure, value, and maybe attribute; ``measures``: which, by
    default all. Returns ``a, b, systems, topics, tau, low, high, tau_ap``. The interval is the
    percentile interval of the bootstrap: all measures are averaged over the same topics, drawn with
    replacement. Drawn topics repeat, so that orders differ more than on new topics, and the
    interval lies rather low. ``tau_ap`` weighs the top more; NaN with ties.

    Examples
    --------
    >>> scores = pd.DataFrame({"run": [*"abcabc"], "topic": [*"111222"]})
    >>> scores["value"] = [1, 2, 4, 4, 5, 7]
    >>> both = pd.concat([scores.assign(measure="P"), scores.assign(measure="R")])
    >>> correlations(both)[["a", "b", "tau", "low"]]
       a  b  tau  low
    0  P  R  1.0  1.0
    """
    parts = scores_by_measure(scores, measures)
    if len(parts) < 2:
        raise ValueError("a correlation is between two measures or more")
    names = list(parts)
    values, runs = _values_of_all(parts, unpaired)  # (topics, measures, runs)
    means = values.mean(axis=0)  # (measures, runs)
    tied = [name for name, mean in zip(names, means, strict=True) if len(np.unique(mean)) == 1]
    if tied:
        message = "puts the runs in no order, for their means are all equal: no tau"
        warnings.warn(f"{listed(tied)} {message}", Note, 3)

    # All measures are averaged over the same drawn topics: what is drawn is each topic's share.
    topics = len(values)
    draws = np.random.default_rng(seed).multinomial(
        topics, np.full(topics, 1 / topics), size=resamples
    )
    resampled_means = np.tensordot(draws / topics, values, axes=1)  # (resamples, measures, runs)
    taus_of_samples = _taus(resampled_means)  # (resamples, measures, measures)
    rows = []
    for i, j in combinations(range(len(names)), 2):
        tau = float(kendall(means[i], means[j]))
        low, high = percentile_interval(taus_of_samples[:, i, j], level)
        row = {"a": names[i], "b": names[j], "systems": len(runs), "topics": topics, "tau": tau}
        row |= {"low": min(low, tau), "high": max(high, tau)}
        rows.append(row | {"tau_ap": top_weighted_tau(means[i], means[j])})
    return pd.DataFrame(rows)


def _taus(means: Floats) -> Floats:
    """`kendall` of every two of the measures: (resamples, measures, systems) to (..., measures)."""
    n_resamples, n_measures, n_systems = means.shape
    i, j = np.triu_indices(n_systems, 1)
    taus = np.empty((n_resamples, n_measures, n_measures))
    start = 0
    for size in batches(n_resamples, n_measures * len(i)):
        part = means[start : start + size]
        signs = np.sign(part[..., i] - part[..., j])  # (size, measures, pairs)
        products = signs @ signs.transpose(0, 2, 1)  # whole numbers: the same in every order
        untied = np.diagonal(products, axis1=1, axis2=2)
        scale = np.sqrt(untied[:, :, np.newaxis] * untied[:, np.newaxis, :])
        taus[start : start + size] = ratio(products, scale, np.nan)
        start += size
    return taus


def _values_of_all(
    parts: Mapping[str, pd.DataFrame], unpaired: Unpaired
) -> tuple[Floats, list[str]]:
    """Scores by each measure, shaped (topics, measures, runs), and the runs."""
    by_measure = {name: topic_by_run(part, unpaired=unpaired) for name, part in parts.items()}
    wide = pd.concat(by_measure, axis=1)
    incomplete = wide.isna().any(axis=1)
    if incomplete.any() and unpaired == "refuse":
        raise ValueError(f"topic {wide.index[incomplete][0]} is scored by some measures only")
    wide = wide[~incomplete]
    runs = [wide[name].columns.tolist() for name in parts]
    if any(names != runs[0] for names in runs):
        raise ValueError("the measures score different runs")
    return wide.to_numpy().reshape(len(wide), len(parts), -1), runs[0]


@checked
def discriminative_power(
    scores: pd.DataFrame,
    measures: Sequence[str] = (),
    *,
    resamples: Resamples = 9999,
    unpaired: Unpaired = "refuse",
    seed: Seed = 0,
) -> pd.DataFrame:
    """Achieved significance levels of all pairs of runs by each measure, highest first.

    The curves of Sakai (2012). The p-values are those of the randomised Tukey HSD test. A measure
    whose curve lies lower tells more pairs apart: it is more consistent over topics, which does not
    say that it measures what is wanted. Returns ``measure, place`` (from 1), ``a, b, topics,
    difference, p``.
    """
    curves = []
    for name, part in scores_by_measure(scores, measures).items():
        # Each begins with the one seed, so that none depends on which others are asked for.
        rng = np.random.default_rng(seed)
        pairs = compare_pairs(part, test="tukey", resamples=resamples, unpaired=unpaired, rng=rng)
        curve = pairs.sort_values("p", ascending=False, kind="stable", ignore_index=True)
        curves.append(curve.assign(measure=name, place=curve.index + 1))
    table = pd.concat(curves, ignore_index=True).rename(columns={"units": "topics"})
    return table[["measure", "place", "a", "b", "topics", "difference", "p"]]


@checked
def share_significant(curves: pd.DataFrame, *, level: Level = 0.95) -> pd.DataFrame:
    """Discriminative power at one level, highest first.

    Columns are ``measure, topics, pairs, significant, share``. ``curves``: as
    `discriminative_power` gives them; significant are those whose p is at most 1 - level.
    """
    is_significant = curves["p"] <= significance(level)
    groups = curves.assign(significant=is_significant).groupby("measure", sort=False)
    table = groups.agg(
        topics=("topics", "first"), pairs=("p", "size"), significant=("significant", "sum")
    )
    table["share"] = table["significant"] / table["pairs"]
    return table.sort_values("share", ascending=False, kind="stable").reset_index()
