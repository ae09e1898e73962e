"""What measures say of the same runs: whether they order them alike, and how many pairs each tells apart."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from equipoise.arrays import Floats, ratio
from equipoise.declare import checked
from equipoise.options import Level, Resamples, Seed, Unpaired
from equipoise.problems import Note, listed
from equipoise.statistics.leaderboards import scores_of
from equipoise.statistics.pairs import compare_pairs, topic_by_run


def kendall(first: ArrayLike, second: ArrayLike) -> Floats:
    r"""Kendall's tau-b of values shaped (..., systems), along the last axis; NaN where all values are tied.

    .. math:: \tau_b = \frac{\sum_{i<j} s_{ij} t_{ij}}{\sqrt{\sum_{i<j} s_{ij}^2 \sum_{i<j}
    t_{ij}^2}}

    with s and t the signs of the differences of two systems in the one and the other.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    i, j = np.triu_indices(a.shape[-1], 1)
    s, t = np.sign(a[..., i] - a[..., j]), np.sign(b[..., i] - b[..., j])
    return ratio((s * t).sum(axis=-1), np.sqrt((s**2).sum(axis=-1) * (t**2).sum(axis=-1)), np.nan)


def top_weighted_tau(first: ArrayLike, second: ArrayLike) -> float:
    r"""The mean of tau-ap of either ranking with the other; NaN with ties, for which tau-ap is not defined.

    .. math:: \tau_{ap} = \frac{2}{n - 1} \sum_{i=2}^{n} \frac{C(i)}{i - 1} - 1

    with C(i) the systems ranked above i that the other ranking has above it too. Yilmaz, Aslam and
    Robertson (2008).
    """
    values = [np.asarray(one, dtype=np.float64) for one in (first, second)]
    if any(len(np.unique(one)) < len(one) for one in values):
        return float("nan")
    found = []
    for own, other in (values, values[::-1]):
        ordered = other[np.argsort(-own)]
        above = np.tril(ordered > ordered[:, np.newaxis], -1).sum(axis=1)[1:]
        found.append(2 * (above / np.arange(1, len(own))).mean() - 1)
    return float(np.mean(found))


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
    """Kendall's tau between the orders in which measures put the same runs, with intervals over topics.

    ``scores``: columns run, topic, measure, value, and maybe attribute; ``measures``: which, by
    default all. Returns ``a, b, systems, topics, tau, low, high, tau_ap``. The interval is the
    percentile interval of the bootstrap: all measures are averaged over the same topics, drawn with
    replacement. Drawn topics repeat, so that orders differ more than on new topics, and the
    interval lies rather low. ``tau_ap`` weighs the top more; NaN with ties.

    Examples
    --------
    >>> rows = [(r, t, m, v + w) for r, v in zip("abc", (1, 2, 4)) for t, w in zip("12", (0, 3)) for m in ("P", "R")]
    >>> correlations(pd.DataFrame(rows, columns=["run", "topic", "measure", "value"]))[["a", "b", "tau", "low"]]
       a  b  tau  low
    0  P  R  1.0  1.0
    """
    parts = scores_by_measure(scores, measures)
    if len(parts) < 2:
        raise ValueError("a correlation is between two measures or more")
    wide = pd.concat(
        {name: topic_by_run(part, unpaired=unpaired) for name, part in parts.items()}, axis=1
    )
    if (lacking := wide.isna().any(axis=1)).any():
        if unpaired == "refuse":
            raise ValueError(f"topic {wide.index[lacking][0]} is scored by some measures only")
        wide = wide[~lacking]
    values = wide.to_numpy().reshape(len(wide), len(parts), -1)
    runs = [wide[name].columns.tolist() for name in parts]
    if any(names != runs[0] for names in runs):
        raise ValueError("the measures score different runs")
    topics, drawn = len(wide), np.random.default_rng(seed)
    shares = drawn.multinomial(topics, np.full(topics, 1 / topics), size=resamples) / topics
    means, again = values.mean(axis=0), np.tensordot(shares, values, axes=1)
    if tied := [name for name, mean in zip(parts, means, strict=True) if len(np.unique(mean)) == 1]:
        warnings.warn(
            f"{listed(tied)} puts the runs in no order, for their means are all equal: no tau",
            Note,
            3,
        )
    rows = []
    for one, other in combinations(range(len(parts)), 2):
        tau, spread = (
            float(kendall(means[one], means[other])),
            kendall(again[:, one], again[:, other]),
        )
        low, high = (
            np.nanquantile(spread, [(1 - level) / 2, (1 + level) / 2])
            if np.isfinite(spread).any()
            else (np.nan,) * 2
        )
        ends = min(low, tau), max(high, tau)
        names = (list(parts)[one], list(parts)[other])
        rows.append(
            (*names, len(runs[0]), topics, tau, *ends, top_weighted_tau(means[one], means[other]))
        )
    return pd.DataFrame(
        rows, columns=["a", "b", "systems", "topics", "tau", "low", "high", "tau_ap"]
    )


@checked
def discriminative_power(
    scores: pd.DataFrame,
    measures: Sequence[str] = (),
    *,
    resamples: Resamples = 9999,
    unpaired: Unpaired = "refuse",
    seed: Seed = 0,
) -> pd.DataFrame:
    """Achieved significance levels of all pairs of runs by each measure, highest first: the curves of Sakai (2012).

    The p-values are those of the randomised Tukey HSD test. A measure whose curve lies lower tells
    more pairs apart: it is more consistent over topics, which does not say that it measures what is
    wanted. Returns ``measure, place`` (from 1), ``a, b, topics, difference, p``.
    """
    found = []
    for name, part in scores_by_measure(scores, measures).items():
        rng = np.random.default_rng(seed)
        pairs = compare_pairs(part, test="tukey", resamples=resamples, unpaired=unpaired, rng=rng)
        pairs = pairs.sort_values("p", ascending=False, kind="stable", ignore_index=True)
        found.append(
            pairs.assign(measure=name, place=pairs.index + 1).rename(columns={"units": "topics"})
        )
    return pd.concat(found, ignore_index=True)[
        ["measure", "place", "a", "b", "topics", "difference", "p"]
    ]


@checked
def share_significant(curves: pd.DataFrame, *, level: Level = 0.95) -> pd.DataFrame:
    """Discriminative power at one level: columns ``measure, topics, pairs, significant, share``, highest first.

    ``curves``: as `discriminative_power` gives them; significant are those whose p is at most 1 -
    level.
    """
    sure = curves.assign(significant=curves["p"] <= 1 - level + 1e-12)
    groups = sure.groupby("measure", sort=False)
    table = groups.agg(
        topics=("topics", "first"), pairs=("p", "size"), significant=("significant", "sum")
    )
    table["share"] = table["significant"] / table["pairs"]
    return table.sort_values("share", ascending=False, kind="stable").reset_index()
