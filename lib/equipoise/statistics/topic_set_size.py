"""How many topics a comparison of systems needs: the design by one-way analysis of variance."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from equipoise.arrays import Floats, Integers
from equipoise.declare import checked
from equipoise.options import (
    Difference,
    Level,
    Power,
    Resamples,
    Seed,
    Systems,
    Unpaired,
    WithinSystems,
)
from equipoise.problems import Note
from equipoise.statistics.agreement_of_measures import scores_by_measure
from equipoise.statistics.intervals import resampled
from equipoise.statistics.pairs import residual_variance, topic_by_run

_MOST = 2**40  # topics; more are asked for by a mistake in the unit of the difference


@checked
def power_of_anova(
    topics: ArrayLike,
    systems: ArrayLike,
    variance: ArrayLike,
    difference: Difference,
    *,
    level: Level = 0.95,
) -> Floats:
    r"""Chance that a one-way analysis of variance tells systems apart that differ by so much.

    .. math::
        P(F' > F_{\alpha}(m - 1, m (n - 1))), \quad F' \sim F(m - 1, m (n - 1), \lambda), \quad
        \lambda = \frac{n \, D^2}{2 \sigma^2}

    with n topics, m systems and the smallest noncentrality that a difference D between the best and
    the worst leaves: all other systems lie in the middle. The arguments broadcast. Sakai (2016),
    with the noncentral F itself.

    >>> power_of_anova(60, 4, 1.0, 0.5**0.5).round(4)
    np.float64(0.9122)
    """
    n, m = np.asarray(topics, dtype=np.float64), np.asarray(systems, dtype=np.float64)
    freedom = (m - 1, m * (n - 1))
    noncentrality = n * difference**2 / (2 * np.asarray(variance, dtype=np.float64))
    critical_value = stats.f.isf(1 - level, *freedom)
    power = stats.ncf.sf(critical_value, *freedom, noncentrality)
    return np.asarray(power)[()]  # a number for numbers


@checked
def topics_needed(
    systems: int,
    variance: float,
    difference: Difference,
    *,
    level: Level = 0.95,
    power: Power = 0.8,
) -> int:
    """Fewest topics, at least two, with which `power_of_anova` reaches the power.

    >>> topics_needed(4, 1.0, 0.5**0.5, power=0.9)
    58
    """
    power_with = partial(
        power_of_anova, systems=systems, variance=variance, difference=difference, level=level
    )
    if variance <= 0 or power_with(2) >= power:
        return 2

    # The power grows with the topics: double them until they are enough, then halve the gap.
    too_few, enough = 2, 4
    while power_with(enough) < power:
        too_few, enough = enough, 2 * enough
        if enough > _MOST:
            raise ValueError(f"a difference of {difference:g} needs more than {_MOST} topics")
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if power_with(middle) >= power:
            enough = middle
        else:
            too_few = middle
    return enough


@checked
def topic_set_size(
    scores: pd.DataFrame,
    measures: Sequence[str] = (),
    *,
    difference: Difference = 0.05,
    power: Power = 0.8,
    level: Level = 0.95,
    systems: Systems | None = None,
    within_systems: WithinSystems = "one-way",
    resamples: Resamples = 1999,
    unpaired: Unpaired = "refuse",
    seed: Seed = 0,
) -> pd.DataFrame:
    r"""How many topics each measure needs for a difference to be found, from the scores of a pilot.

    .. math:: \hat\sigma^2 = \frac{\sum_i \sum_j (x_{ij} - \bar{x}_{i \bullet})^2}{m (n - 1)}

    ``scores``: columns run, topic, measure, value, and maybe attribute. The variance is that within
    systems (i) over topics (j), as Sakai (2016) takes it; two-way takes out what all systems share
    of a topic, and so needs fewer topics if the test will be paired. Returns ``measure, systems,
    topics`` (of the scores), ``variance, low, high`` (ends of its 95 % bootstrap interval over
    topics), ``difference, power, level, needed, needed_low, needed_high`` (topics, for the variance
    and the ends of its interval), ``power_now`` (with the topics of the scores).
    """
    rows = []
    for name, part in scores_by_measure(scores, measures).items():
        values = topic_by_run(part, unpaired=unpaired).to_numpy()  # (topics, runs)
        topics, runs = values.shape
        m = systems or runs
        variance_at = partial(_variance, values, within_systems)
        rng = np.random.default_rng(seed)
        variance, low, high = resampled(variance_at, topics, rng, resamples=resamples)
        needed = partial(topics_needed, m, difference=difference, level=level, power=power)
        power_now = 1.0
        if variance:
            power_now = float(power_of_anova(topics, m, variance, difference, level=level))
        else:
            message = f"no two topics of a run differ in {name}"
            warnings.warn(f"{message}: a variance of 0 says nothing of others", Note, 3)
        row = {"measure": name, "systems": m, "topics": topics}
        row |= {"variance": variance, "low": low, "high": high}
        row |= {"difference": difference, "power": power, "level": level}
        row |= {"needed": needed(variance), "needed_low": needed(low), "needed_high": needed(high)}
        rows.append(row | {"power_now": power_now})
    return pd.DataFrame(rows)


def _variance(values: Floats, within_systems: WithinSystems, places: Integers) -> float:
    """Variance within systems over the topics at these places; ``values``: (topics, systems)."""
    drawn = values[places]
    if within_systems == "two-way":
        return residual_variance(drawn)
    return float(drawn.var(axis=0, ddof=1).mean())
