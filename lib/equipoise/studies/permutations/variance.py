"""Analysis of variance of conversations and their orders: the models MD0 and MD1, Tukey's test, tiers.

Tables 4 and 5 of the study (Faggioli et al., section 3.2); see also Rutherford (2011), ANOVA and ANCOVA: A GLM
Approach.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from equipoise.arrays import Floats
from equipoise.problems import need_columns, refuse_twice
from equipoise.statistics import finite

Codes = NDArray[np.intp]


def _codes(table: pd.DataFrame, names: Sequence[str]) -> tuple[Codes, int]:
    """Number the combinations of some columns."""
    codes = np.asarray(table.groupby(list(names), sort=True, observed=True).ngroup(), dtype=np.intp)
    return codes, int(codes.max()) + 1


def _squares_between(values: Floats, codes: Codes, groups: int) -> float:
    """Sum over groups of size times squared group mean; values are centred on the grand mean."""
    size, total = np.bincount(codes, minlength=groups), np.bincount(codes, values, minlength=groups)
    return float((total**2 / size).sum())


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
    need_columns(sums, ["source", "SS", "DF"])
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
    y = finite(scores["value"], "scores in column value")
    y = y - y.mean()
    n = len(y)
    model_codes, models = _codes(scores, ["run"])
    if models < 2:
        raise ValueError(f"a comparison needs at least two systems in column run, found {models}")
    topic_codes, topics = _codes(scores, ["topic"])
    block_codes, block_count = _codes(scores, blocks)

    # Models within blocks: both sides are centred on their block, which leaves one normal equation per model
    sizes = np.bincount(block_codes, minlength=block_count)
    centred = y - (np.bincount(block_codes, y, minlength=block_count) / sizes)[block_codes]
    cells = np.zeros((block_count, models))
    np.add.at(cells, (block_codes, model_codes), 1.0)
    normal = np.diag(cells.sum(axis=0)) - cells.T @ (cells / sizes[:, None])
    right = np.bincount(model_codes, centred, minlength=models)
    effects, _, rank, _ = np.linalg.lstsq(normal, right, rcond=1e-9)

    among_topics = _squares_between(y, topic_codes, topics)
    among_blocks = _squares_between(y, block_codes, block_count)
    among_models = float(effects @ right)
    total = float(y @ y)
    residual = max(total - among_blocks - among_models, 0.0)
    rows = [
        ("topic", among_topics, topics - 1),
        ("permutation(topic)", max(among_blocks - among_topics, 0.0), block_count - topics),
        ("model", among_models, int(rank)),
        ("Error", residual, n - block_count - int(rank)),
        ("Total", total, n - 1),
    ]
    sums = pd.DataFrame(rows, columns=["source", "SS", "DF"]).drop(index=[] if permutation else [1])
    return anova_from_sums(sums, n, alpha=alpha, topic_against=topic_against)


def f_bounds(sums: pd.DataFrame, half_unit: float) -> pd.DataFrame:
    r"""Bounds of F when the sums of squares are known only as printed.

    .. math::
        \frac{(SS - h) / DF}{(SS_{error} + h) / DF_{error}} \le F \le
        \frac{(SS + h) / DF}{(SS_{error} - h) / DF_{error}}

    ``sums``: columns ``source, SS, DF``; the row "Error" is the residual; a row "Total" is left out. ``half_unit``:
    h, half a unit of the last printed place: 0.0005 for three decimals. Smaller than the residual. Returns
    columns source, lowest F, highest F.

    Checks permutations, Tables 4 and 5, against themselves.
    """
    need_columns(sums, ["source", "SS", "DF"])
    table = sums.set_index("source")[["SS", "DF"]]
    residual, freedom = table.loc["Error"] if "Error" in table.index else (0.0, 0.0)
    if residual <= half_unit:
        raise ValueError(f"a row Error with a sum of squares above {half_unit} is wanted, found {residual}")
    factors = table.drop(["Error", "Total"], errors="ignore")
    low = (factors["SS"] - half_unit).clip(lower=0) / factors["DF"] / ((residual + half_unit) / freedom)
    high = (factors["SS"] + half_unit) / factors["DF"] / ((residual - half_unit) / freedom)
    return pd.DataFrame({"lowest F": low, "highest F": high}).reset_index()


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
    need_columns(scores, ["value", "run"])
    finite(scores["value"], "scores in column value")
    groups = scores.groupby("run", observed=True)["value"].agg(["mean", "size"])
    error = table.set_index("source").loc["Error"]
    first, second = np.array(list(combinations(range(len(groups)), 2)), dtype=np.intp).T
    mean, size = groups["mean"].to_numpy(), groups["size"].to_numpy()
    difference = mean[first] - mean[second]
    spread = np.sqrt(float(error["MS"]) / 2 * (1 / size[first] + 1 / size[second]))
    with np.errstate(divide="ignore", invalid="ignore"):
        q = np.where(difference == 0, 0.0, np.abs(difference) / spread)
    p = stats.studentized_range.sf(q, len(groups), error["DF"])
    reach = stats.studentized_range.isf(alpha, len(groups), error["DF"]) * spread
    return pd.DataFrame(
        {
            "a": groups.index[first].astype(str),
            "b": groups.index[second].astype(str),
            "difference": difference,
            "low": difference - reach,
            "high": difference + reach,
            "p": p,
            "different": p < alpha,
        }
    )


def tiers(scores: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Systems in tiers, from the best mean downwards: columns run, mean, tier (from 1); equal means sorted by name.

    A tier holds the best system not yet placed and every system not yet placed that does not differ from it
    significantly. Tiers do not overlap; two members of a tier can differ from each other.

    ``scores``: columns ``run, value``. ``pairs``: of `tukey_hsd`, every pair once.

    permutations, section 4.4.
    """
    need_columns(pairs, ["a", "b", "different"])
    ordered = scores.groupby("run")["value"].mean().rename("mean").reset_index()
    ordered = ordered.sort_values(["mean", "run"], ascending=[False, True], ignore_index=True)
    differ = {frozenset(pair): different for *pair, different in pairs[["a", "b", "different"]].itertuples(index=False)}
    missing = [pair for pair in combinations(ordered["run"], 2) if frozenset(pair) not in differ]
    if missing:
        raise ValueError(f"no comparison of {missing[0][0]} with {missing[0][1]}")
    waiting, placed = list(ordered["run"]), dict[str, int]()
    while waiting:
        best, tier = waiting[0], max(placed.values(), default=0) + 1
        placed |= {run: tier for run in waiting if run == best or not differ[frozenset((best, run))]}
        waiting = [run for run in waiting if run not in placed]
    return ordered.assign(tier=ordered["run"].map(placed))
