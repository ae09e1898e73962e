"""Analysis of variance of conversations and their permutations: MD0, MD1, Tukey's test, tiers.

Tables 4 and 5 of the study (Faggioli et al., section 3.2), with the interaction that it leaves to
future work; see also Rutherford (2011), ANOVA and ANCOVA: A GLM Approach.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Literal

import numpy as np
import pandas as pd
import scipy  # which loads scipy.stats, a second of imports, at its first use

from equipoise.arrays import ratio
from equipoise.permutations.scores import ORIGINAL, score_matrix

INTERACTION = "topic x model"


def anova_from_sums(sums: pd.DataFrame, observations: int, *, alpha: float = 0.05) -> pd.DataFrame:
    r"""Complete an analysis of variance from its sums of squares and degrees of freedom.

    .. math::
        MS = SS / DF, \quad F = MS / MS_{error}, \quad p = P(F_{DF, DF_{error}} \ge F), \quad
        \hat\omega^2 = \frac{DF (F - 1)}{DF (F - 1) + N}, \quad
        \eta^2 = \frac{SS}{SS_{total}}, \quad
        f^2 = \frac{SS}{SS_{error}}

    ``sums``: columns ``source, SS, DF``; the row "Error" is the residual, "Total" the sum of all.
    Where a row "topic x model" exists, "model" is tested against it instead of the residual: then
    systems are compared over conversations, not over permutations that share utterances.
    ``observations``: N, the number of observations. ``alpha``: partial omega squared is given for
    factors with p below alpha only, NaN for the others: the paper calls it ill-defined there.
    Returns columns ``source, SS, DF, MS, F, p, omega_squared, eta_squared, f_squared``; NaN where a
    source has none. Eta squared is of the whole, omega squared and Cohen's f squared are partial.

    permutations, Tables 4 and 5.
    """
    names = sums["source"].tolist()
    ss, df = sums["SS"].to_numpy(np.float64), sums["DF"].to_numpy(np.float64)
    if "Error" not in names or df[names.index("Error")] < 1:
        raise ValueError("residual degrees of freedom are missing: add topics or systems")
    tested_by = np.full(len(names), names.index("Error"))
    if INTERACTION in names:
        tested_by[names.index("model")] = names.index(INTERACTION)
    is_total = np.array(names) == "Total"
    is_factor = ~is_total & (np.array(names) != "Error")
    ms = np.where(is_total, np.nan, ratio(ss, df, np.nan))
    f = np.where(is_factor, ratio(ms, ms[tested_by], np.nan), np.nan)
    p = scipy.stats.f.sf(f, df, df[tested_by])

    surplus = df * (f - 1)
    omega_squared = ratio(surplus, surplus + observations, np.nan)
    return sums[["source", "SS", "DF"]].assign(
        MS=ms,
        F=f,
        p=p,
        omega_squared=np.where(p < alpha, omega_squared, np.nan),
        eta_squared=np.where(is_factor, ratio(ss, ss[is_total], np.nan), np.nan),
        f_squared=np.where(is_factor, ratio(ss, ss[tested_by], np.nan), np.nan),
    )


def anova(
    scores: pd.DataFrame,
    design: Literal["MD0", "MD1"] = "MD0",
    *,
    interaction: bool = False,
    alpha: float = 0.05,
) -> pd.DataFrame:
    r"""Analysis of variance of system scores by the paper's model MD0 or MD1.

    .. math::
        y_{ik} &= \mu + \tau_i + \alpha_k + \varepsilon_{ik} & (MD0) \\
        y_{i(j)k} &= \mu + \tau_i + \nu_{j(i)} + \alpha_k + \varepsilon_{ijk} & (MD1)

    Every system is scored on the same permutations of a conversation, so the factors are orthogonal
    and their order does not matter. Conversations may have different numbers of permutations.

    ``scores``: columns ``run, topic, value``, for MD1 ``permutation``. ``interaction``: take topic
    x model out of the residual of MD1 and test the systems against it. ``alpha``: of
    `anova_from_sums`, which says what is returned.

    permutations, section 3.2; Tables 4 and 5.
    """
    if design == "MD0":
        scores = scores.assign(permutation=ORIGINAL)
    wide = score_matrix(scores)
    n_rows, n_systems = wide.shape
    if n_systems < 2:
        raise ValueError(f"a comparison needs at least two systems, got {n_systems}")
    deviations = wide - wide.to_numpy().mean()
    topic_effects = deviations.mean(axis=1).groupby(level="topic", sort=False).transform("mean")
    permutation_effects = deviations.mean(axis=1) - topic_effects
    system_effects = deviations.mean()
    n_topics = wide.index.get_level_values("topic").nunique()

    rows = [("topic", n_systems * (topic_effects**2).sum(), n_topics - 1)]
    if design == "MD1":
        squares = n_systems * (permutation_effects**2).sum()
        rows.append(("permutation(topic)", squares, n_rows - n_topics))
    rows.append(("model", n_rows * (system_effects**2).sum(), n_systems - 1))
    if interaction:
        cells = deviations.groupby(level="topic", sort=False).transform("mean")
        cells = cells.sub(topic_effects, axis=0) - system_effects
        squares = (cells**2).to_numpy().sum()
        rows.append((INTERACTION, squares, (n_topics - 1) * (n_systems - 1)))
    total = (deviations**2).to_numpy().sum()
    residual = max(total - sum(squares for _, squares, _ in rows), 0.0)
    freedom = wide.size - 1 - sum(freedom for _, _, freedom in rows)
    rows += [("Error", residual, freedom), ("Total", total, wide.size - 1)]
    sums = pd.DataFrame(rows, columns=["source", "SS", "DF"])
    table = anova_from_sums(sums, wide.size, alpha=alpha)
    # The twelfth digit of a p of 1e-274 is that of the processor that computed its F.
    return table.assign(p=table["p"].map(lambda p: float(f"{p:.9g}")))


def honest_difference(
    mean_square: float, freedom: int, systems: int, scores: int, alpha: float = 0.05
) -> float:
    r"""Tukey's honestly significant difference between the means of two systems.

    .. math:: HSD = Q_{1 - \alpha, K, DF_{error}} \sqrt{MS_{error} / n}

    with Q the quantile of the studentised range over K systems of n scores each. Two systems differ
    significantly where their means differ by as much.

    ``mean_square``, ``freedom``: of the residual. ``systems``: K. ``scores``: n.

    permutations, section 4.4.
    """
    quantile = _studentised_range(alpha, systems, freedom)
    return float(quantile * np.sqrt(mean_square / scores))


@cache  # it takes a second
def _studentised_range(alpha: float, systems: int, freedom: int) -> float:
    return float(scipy.stats.studentized_range.isf(alpha, systems, freedom))


def tiers(means: pd.Series, honest_difference: float) -> pd.Series:
    """Tier of each system, from 1, the best mean first.

    A tier contains the best system not yet placed and every system not yet placed that does not
    differ from it significantly. Tiers do not overlap. Raises ValueError where a mean is missing.

    permutations, section 4.4.
    """
    if means.isna().any():
        raise ValueError(f"every system must have a mean, got none for {means.isna().idxmax()}")
    descending = means.sort_values(ascending=False, kind="stable")
    numbers = tier_numbers(descending.tolist(), honest_difference)
    return pd.Series(numbers, index=descending.index, name="tier", dtype=np.int64)


def tier_numbers(descending: Sequence[float], honest_difference: float) -> list[int]:
    """Tier of each of some means, which descend, as of `tiers`."""
    numbers = []
    tier, best = 0, math.inf
    for mean in descending:
        # Equal means never differ, not even where the difference is 0: systems without residuals.
        if mean != best and not best - mean < honest_difference:
            tier, best = tier + 1, mean
        numbers.append(tier)
    return numbers
