"""Analysis of variance of conversations and their orders: the models MD0 and MD1, Tukey's test, tiers.

Tables 4 and 5 of the study (Faggioli et al., section 3.2); see also Rutherford (2011), ANOVA and ANCOVA: A GLM
Approach.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Literal

import numpy as np
import pandas as pd
from scipy import stats

from equipoise.problems import need_columns, refuse_twice
from equipoise.statistics import finite


def anova_from_sums(
    sums: pd.DataFrame,
    observations: int,
    *,
    alpha: float = 0.05,
    topic_against: Literal["residual", "permutation"] = "residual",
) -> pd.DataFrame:
    r"""Complete an analysis of variance from its sums of squares and degrees of freedom.

    .. math::
        MS = SS / DF, \quad F = MS / MS_{error}, \quad p = P(F_{DF, DF_{error}} \ge F), \quad
        \hat\omega^2 = \frac{DF (F - 1)}{DF (F - 1) + N}

    ``sums``: columns ``source, SS, DF``; the row "Error" is the residual, a row "Total" is passed through.
    ``observations``: N, the number of observations. ``alpha``: partial omega squared is given for factors with p
    below alpha only, NaN for the others: the paper calls it ill-defined there. ``topic_against``: the mean square
    that tests "topic": the residual, as in the paper, or that of "permutation(topic)", as a random nested factor
    would ask for. Returns columns ``source, SS, DF, MS, F, p, omega_squared``; NaN where a source has none.

    permutations, Tables 4 and 5.
    """
    table = sums.set_index("source")[["SS", "DF"]]
    if "Error" not in table.index or table.loc["Error", "DF"] < 1:
        raise ValueError("no residual degrees of freedom: add observations, or leave out a factor")
    against = pd.Series("Error", table.index)
    if topic_against != "residual":
        against["topic"] = f"{topic_against}(topic)"
        if against["topic"] not in table.index:
            raise ValueError(f"topic_against={topic_against!r} needs the source {against['topic']}")
    table["MS"] = (table["SS"] / table["DF"].where(table["DF"] > 0)).drop("Total", errors="ignore")
    table["F"] = (table["MS"] / table["MS"][against].to_numpy()).drop(["Error", "Total"], errors="ignore")
    table["p"] = stats.f.sf(table["F"], table["DF"].clip(lower=1), table["DF"][against])
    surplus = table["DF"] * (table["F"] - 1)
    table["omega_squared"] = (surplus / (surplus + observations)).where(table["p"] < alpha)
    return table.reset_index()


def completed(printed: pd.DataFrame) -> pd.DataFrame:
    """A printed analysis of variance, made anew from its own sums of squares and degrees of freedom."""
    sums = printed.astype({"SS": float, "DF": int})
    return anova_from_sums(sums, observations=int(sums.set_index("source").loc["Total", "DF"]) + 1)


def anova(
    scores: pd.DataFrame,
    *,
    permutation: str | None = None,
    alpha: float = 0.05,
    topic_against: Literal["residual", "permutation"] = "residual",
) -> pd.DataFrame:
    r"""Analysis of variance of system scores, models MD0 and MD1.

    .. math::
        y_{ik} = \mu + \tau_i + \alpha_k + \varepsilon_{ik} \quad (MD0) \qquad
        y_{i(j)k} = \mu + \tau_i + \nu_{j(i)} + \alpha_k + \varepsilon_{ijk} \quad (MD1)

    Sums of squares are sequential (type I) in the order topic, permutation(topic), model: exact from group means for
    the nested part, and from a system of one equation per model for the models. Where every permutation is scored by
    every model the order does not matter.

    ``scores``: columns ``run, topic, value``: one row per observation; topics may have different numbers of
    permutations and cells may be missing. ``permutation``: name of the column of the permutation, which counts
    within its topic; without it, the model is MD0. Returns columns ``source, SS, DF, MS, F, p, omega_squared``;
    rows topic, permutation(topic) (MD1), model, Error, Total.

    permutations, section 3.2, models MD0 and MD1; Tables 4 and 5.
    """
    blocks = ["topic"] if permutation is None else ["topic", permutation]
    need_columns(scores, ["value", "run", *blocks])
    refuse_twice(scores, [*blocks, "run"], "the scores have a cell")
    values = finite(scores["value"], "scores in column value")
    deviations = values - values.mean()
    wide = scores.assign(value=deviations).pivot_table(index=blocks, columns="run", values="value")
    if wide.shape[1] < 2:
        raise ValueError(f"a comparison needs at least two systems in column run, found {wide.shape[1]}")
    block = pd.DataFrame({"total": wide.sum(axis=1), "size": wide.count(axis=1)})
    topic = block.groupby(level="topic").sum()
    among_blocks, among_topics = (float((group["total"] ** 2 / group["size"]).sum()) for group in (block, topic))

    # Models within blocks: both sides are centred on their block, which leaves one normal equation per model
    cells = wide.notna().to_numpy(dtype=np.float64)
    normal = np.diag(cells.sum(axis=0)) - cells.T @ (cells / cells.sum(axis=1, keepdims=True))
    right = wide.sub(wide.mean(axis=1), axis=0).sum().to_numpy()
    effects, _, rank, _ = np.linalg.lstsq(normal, right, rcond=1e-9)
    among_models, total = float(effects @ right), float(deviations @ deviations)
    rows = [
        ("topic", among_topics, len(topic) - 1),
        ("permutation(topic)", max(among_blocks - among_topics, 0.0), len(block) - len(topic)),
        ("model", among_models, int(rank)),
        ("Error", max(total - among_blocks - among_models, 0.0), len(values) - len(block) - int(rank)),
        ("Total", total, len(values) - 1),
    ]
    sums = pd.DataFrame(rows, columns=["source", "SS", "DF"]).drop(index=[] if permutation else [1])
    return anova_from_sums(sums, len(values), alpha=alpha, topic_against=topic_against)


def rounding_bounds(printed: Mapping[str, pd.DataFrame], half_unit: float = 0.0005) -> pd.DataFrame:
    r"""Bounds of F, by table, when the sums of squares are known only as printed, and whether the printed F is within.

    .. math::
        \frac{(SS - h) / DF}{(SS_{error} + h) / DF_{error}} \le F \le
        \frac{(SS + h) / DF}{(SS_{error} - h) / DF_{error}}

    ``printed``: tables with the columns ``source, SS, DF, F``; their row "Error" is the residual. ``half_unit``: h,
    half a unit of the last printed place. Checks permutations, Tables 4 and 5, against themselves.
    """
    parts = []
    for name, table in printed.items():
        factors = table.set_index("source").astype({"SS": float, "DF": int})
        residual, freedom = factors.loc["Error", ["SS", "DF"]]
        factors = factors.drop(["Error", "Total"])
        low = (factors["SS"] - half_unit).clip(lower=0) / factors["DF"] / ((residual + half_unit) / freedom)
        high = (factors["SS"] + half_unit) / factors["DF"] / ((residual - half_unit) / freedom)
        within = factors["F"].astype(float).between(low, high).astype(str)
        bounds = {"table": name, "lowest F": low, "printed F": factors["F"], "highest F": high, "within": within}
        parts.append(pd.DataFrame(bounds).reset_index())
    return pd.concat(parts, ignore_index=True)[["table", "source", "lowest F", "printed F", "highest F", "within"]]


def tukey_hsd(scores: pd.DataFrame, table: pd.DataFrame, *, alpha: float = 0.05) -> pd.DataFrame:
    r"""Tukey's honestly significant differences between systems, with the residual of a fitted analysis of variance.

    .. math::
        q_{ab} = \frac{|\bar y_a - \bar y_b|}{\sqrt{\tfrac12 MS_{error} (1/n_a + 1/n_b)}}, \quad
        p_{ab} = P(Q_{k, DF_{error}} \ge q_{ab})

    with Q the studentised range over k systems; with unequal numbers of scores this is the Tukey-Kramer form.

    ``scores``: columns ``run, value``: the scores that `table` was fitted on. ``table``: the result of `anova`: its
    row "Error" is used. ``alpha``: family-wise level of the intervals and of ``different``. Returns one row per
    pair, sorted by name: ``a, b, difference, low, high, p, different``; difference is mean of a minus mean of b.

    permutations, section 4.4. Means are raw means: with missing cells they are not adjusted for the topics.
    """
    groups = scores.groupby("run", observed=True)["value"].agg(["mean", "size"])
    error = table.set_index("source").loc["Error"]
    pairs = pd.DataFrame(combinations(groups.index.astype(str), 2), columns=["a", "b"])
    one, other = (groups.loc[pairs[side]].reset_index() for side in ("a", "b"))
    difference = one["mean"] - other["mean"]
    spread = np.sqrt(error["MS"] / 2 * (1 / one["size"] + 1 / other["size"]))
    p = stats.studentized_range.sf((difference.abs() / spread).where(difference != 0, 0.0), len(groups), error["DF"])
    reach = stats.studentized_range.isf(alpha, len(groups), error["DF"]) * spread
    ends = {"difference": difference, "low": difference - reach, "high": difference + reach}
    return pairs.assign(**ends, p=p, different=p < alpha)


def tiers(scores: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Systems in tiers, from the best mean downwards: columns run, mean, tier (from 1); equal means sorted by name.

    A tier holds the best system not yet placed and every system not yet placed that does not differ from it
    significantly. Tiers do not overlap; two members of a tier can differ from each other.

    ``scores``: columns ``run, value``. ``pairs``: of `tukey_hsd`, every pair once.

    permutations, section 4.4.
    """
    means = scores.groupby("run")["value"].mean().sort_values(ascending=False, kind="stable").rename("mean")
    differ = {frozenset(pair): different for *pair, different in pairs[["a", "b", "different"]].itertuples(index=False)}
    if missing := [pair for pair in combinations(means.index, 2) if frozenset(pair) not in differ]:
        raise ValueError(f"no comparison of {missing[0][0]} with {missing[0][1]}")
    waiting, placed = list(means.index), dict[str, int]()
    while waiting:
        best, tier = waiting[0], max(placed.values(), default=0) + 1
        placed |= {run: tier for run in waiting if run == best or not differ[frozenset((best, run))]}
        waiting = [run for run in waiting if run not in placed]
    return means.reset_index().assign(tier=[placed[run] for run in means.index])
