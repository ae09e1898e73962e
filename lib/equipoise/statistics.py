"""Comparing systems: analysis of variance, Tukey's test with tiers, corrected paired tests, effect sizes, bootstrap.

Scores come as a tidy table with one row per system and unit of observation. `anova` fits the two models of the
utterance-permutation paper by exact sums of squares: MD0, topics and systems; MD1, permutations nested in topics, and
systems. `anova_from_sums` completes a printed table from its own sums of squares. `compare_pairs` is the paired
comparison of query-by-example retrieval: t or randomisation test, corrected over the comparisons of a table.

Distributions and resampling are SciPy's.

References
----------
permutations: Faggioli et al., section 3.2 and Tables 4 and 5. Rutherford (2011), ANOVA and ANCOVA: A GLM Approach.
thesis: chapter 2 (paired t-test with Bonferroni correction).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import stats

__all__ = [
    "anova",
    "anova_from_sums",
    "bootstrap_interval",
    "cohens_d",
    "compare_pairs",
    "corrected",
    "f_bounds",
    "tiers",
    "tukey_hsd",
]

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


def _finite(values: ArrayLike, what: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(array))
    if len(wrong):
        raise ValueError(f"{what}: {len(wrong)} not finite (the first at place {wrong[0]}); leave out or judge them")
    return array


def _columns(table: pd.DataFrame, wanted: Sequence[str]) -> None:
    missing = [name for name in wanted if name not in table.columns]
    if missing:
        raise ValueError(f"columns {', '.join(missing)} wanted, found {', '.join(map(str, table.columns))}")


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

    Parameters
    ----------
    sums : DataFrame
        Columns ``source, SS, DF``; the row "Error" is the residual, a row "Total" is passed through.
    observations : int
        N, the number of observations.
    alpha : float
        Partial omega squared is given for factors with p below alpha only, NaN for the others: the paper calls it
        ill-defined there.
    topic_against : {"residual", "permutation"}
        The mean square that tests "topic": the residual, as in the paper, or that of "permutation(topic)", as a random
        nested factor would ask for.

    Returns
    -------
    DataFrame
        Columns ``source, SS, DF, MS, F, p, omega_squared``; NaN where a source has none.

    Raises
    ------
    ValueError
        If columns or the row "Error" are missing, the residual has no degrees of freedom, or `topic_against` asks for a
        source that is not there.

    Notes
    -----
    permutations, Tables 4 and 5.

    Examples
    --------
    >>> sums = pd.DataFrame({"source": ["topic", "model", "Error"], "SS": [8.0, 1.0, 4.0], "DF": [4, 2, 8]})
    >>> anova_from_sums(sums, 15).round(3)
      source   SS  DF   MS    F      p  omega_squared
    0  topic  8.0   4  2.0  4.0  0.045          0.444
    1  model  1.0   2  0.5  1.0  0.410            NaN
    2  Error  4.0   8  0.5  NaN    NaN            NaN
    """
    _columns(sums, ["source", "SS", "DF"])
    table = sums[["source", "SS", "DF"]].reset_index(drop=True)
    rows = {str(name): place for place, name in enumerate(table["source"])}
    if "Error" not in rows or table["DF"][rows["Error"]] < 1:
        raise ValueError("no residual degrees of freedom: add observations, or leave out a factor")
    if topic_against not in ("residual", "permutation"):
        raise ValueError(f"topic_against is 'residual' or 'permutation', found {topic_against!r}")
    if topic_against == "permutation" and "permutation(topic)" not in rows:
        raise ValueError("topic_against='permutation' needs the source permutation(topic)")
    ss, df = table["SS"].to_numpy(dtype=np.float64), table["DF"].to_numpy(dtype=np.float64)
    mean_square = np.where(table["source"] == "Total", np.nan, ss / np.maximum(df, 1))
    mean_square[df == 0] = np.nan
    against = np.full(len(table), rows["Error"])
    if topic_against == "permutation":
        against[(table["source"] == "topic").to_numpy()] = rows["permutation(topic)"]
    is_factor = ~table["source"].isin(["Error", "Total"]).to_numpy() & (df > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        f = np.where(is_factor, mean_square / mean_square[against], np.nan)
    p = stats.f.sf(f, np.maximum(df, 1), df[against])
    surplus = df * (f - 1)
    table["MS"], table["F"], table["p"] = mean_square, f, p
    with np.errstate(invalid="ignore"):
        table["omega_squared"] = np.where(p < alpha, surplus / (surplus + observations), np.nan)
    return table


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

    Parameters
    ----------
    scores : DataFrame
        Columns ``run, topic, value``: one row per observation; topics may have different numbers of permutations and
        cells may be missing.
    permutation : str, optional
        Name of the column of the permutation, which counts within its topic; without it, the model is MD0.
    alpha, topic_against
        See `anova_from_sums`.

    Returns
    -------
    DataFrame
        Columns ``source, SS, DF, MS, F, p, omega_squared``; rows topic, permutation(topic) (MD1), model, Error, Total.

    Raises
    ------
    ValueError
        If a column is missing, a score is not finite, a cell appears twice, there are fewer than two models, or nothing
        is left for the residual.

    Notes
    -----
    permutations, section 3.2, models MD0 and MD1; Tables 4 and 5.

    Examples
    --------
    >>> scores = pd.DataFrame({"topic": list("aabbcc"), "run": list("xyxyxy"), "value": [1, 2, 2, 4, 4, 5]})
    >>> anova(scores)[["source", "SS", "DF"]].round(4)
      source       SS  DF
    0  topic   9.0000   2
    1  model   2.6667   1
    2  Error   0.3333   2
    3  Total  12.0000   5
    """
    blocks = ["topic"] if permutation is None else ["topic", permutation]
    _columns(scores, ["value", "run", *blocks])
    repeated = scores.duplicated([*blocks, "run"])
    if repeated.any():
        cell = scores.loc[repeated, [*blocks, "run"]].iloc[0].to_dict()
        raise ValueError(f"{int(repeated.sum())} cells have more than one score; the first is {cell}")
    y = _finite(scores["value"], "scores in column value")
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
    rows: list[tuple[str, float, int]] = [("topic", among_topics, topics - 1)]
    if permutation is not None:
        rows.append(("permutation(topic)", max(among_blocks - among_topics, 0.0), block_count - topics))
    rows.append(("model", among_models, int(rank)))
    rows.append(("Error", max(total - among_blocks - among_models, 0.0), n - block_count - int(rank)))
    rows.append(("Total", total, n - 1))
    sums = pd.DataFrame(rows, columns=["source", "SS", "DF"])
    return anova_from_sums(sums, n, alpha=alpha, topic_against=topic_against)


def f_bounds(sums: pd.DataFrame, half_unit: float) -> pd.DataFrame:
    r"""Bounds of F when the sums of squares are known only as printed.

    .. math::
        \frac{(SS - h) / DF}{(SS_{error} + h) / DF_{error}} \le F \le
        \frac{(SS + h) / DF}{(SS_{error} - h) / DF_{error}}

    Parameters
    ----------
    sums : DataFrame
        Columns ``source, SS, DF``; the row "Error" is the residual; a row "Total" is left out.
    half_unit : float
        h, half a unit of the last printed place: 0.0005 for three decimals. Smaller than the residual.

    Returns
    -------
    DataFrame, columns source, lowest F, highest F

    Raises
    ------
    ValueError
        If columns or the row "Error" are missing, or the residual is not larger than h.

    Notes
    -----
    Checks permutations, Tables 4 and 5, against themselves.

    Examples
    --------
    >>> f_bounds(pd.DataFrame({"source": ["model", "Error"], "SS": [0.010, 0.241], "DF": [4, 76]}), 0.0005).round(3)
      source  lowest F  highest F
    0  model     0.747       0.83
    """
    _columns(sums, ["source", "SS", "DF"])
    error = sums[sums["source"] == "Error"]
    if len(error) != 1 or float(error["SS"].iloc[0]) <= half_unit:
        raise ValueError(f"one row Error with a sum of squares above {half_unit} is wanted, found {len(error)}")
    residual, freedom = float(error["SS"].iloc[0]), float(error["DF"].iloc[0])
    factors = sums[~sums["source"].isin(["Error", "Total"])].reset_index(drop=True)
    low = np.maximum(factors["SS"] - half_unit, 0) / factors["DF"] / ((residual + half_unit) / freedom)
    high = (factors["SS"] + half_unit) / factors["DF"] / ((residual - half_unit) / freedom)
    return pd.DataFrame({"source": factors["source"], "lowest F": low, "highest F": high})


def tukey_hsd(scores: pd.DataFrame, table: pd.DataFrame, *, alpha: float = 0.05) -> pd.DataFrame:
    r"""Tukey's honestly significant differences between systems, with the residual of a fitted analysis of variance.

    .. math::
        q_{ab} = \frac{|\bar y_a - \bar y_b|}{\sqrt{\tfrac12 MS_{error} (1/n_a + 1/n_b)}}, \quad
        p_{ab} = P(Q_{k, DF_{error}} \ge q_{ab})

    with Q the studentised range over k systems; with unequal numbers of scores this is the Tukey-Kramer form.

    Parameters
    ----------
    scores : DataFrame
        Columns ``run, value``: the scores that `table` was fitted on.
    table : DataFrame
        The result of `anova`: its row "Error" is used.
    alpha : float
        Family-wise level of the intervals and of ``different``.

    Returns
    -------
    DataFrame
        One row per pair, sorted by name: ``a, b, difference, low, high, p, different``; difference is mean of a minus
        mean of b.

    Raises
    ------
    ValueError
        If a column is missing, a score is not finite, or there are fewer than two systems.

    Notes
    -----
    permutations, section 4.4. Means are raw means: with missing cells they are not adjusted for the topics.

    Examples
    --------
    >>> scores = pd.DataFrame({"topic": list("aabbcc"), "run": list("xyxyxy"), "value": [1, 2, 2, 4, 4, 5]})
    >>> tukey_hsd(scores, anova(scores)).round(3)
       a  b  difference    low   high      p  different
    0  x  y      -1.333 -2.768  0.101  0.057      False
    """
    _columns(scores, ["value", "run"])
    _finite(scores["value"], "scores in column value")
    groups = scores.groupby("run", sort=True, observed=True)["value"]
    means, sizes = groups.mean(), groups.size()
    if len(means) < 2:
        raise ValueError(f"a comparison needs at least two systems in column run, found {len(means)}")
    error = table.loc[table["source"] == "Error"].iloc[0]
    first, second = (np.array(side, dtype=np.intp) for side in zip(*combinations(range(len(means)), 2), strict=True))
    mean, size = means.to_numpy(dtype=np.float64), sizes.to_numpy(dtype=np.float64)
    difference = mean[first] - mean[second]
    spread = np.sqrt(float(error["MS"]) / 2 * (1 / size[first] + 1 / size[second]))
    freedom = float(error["DF"])
    with np.errstate(divide="ignore", invalid="ignore"):
        q = np.where(difference == 0, 0.0, np.abs(difference) / spread)
    p = stats.studentized_range.sf(q, len(means), freedom)
    reach = stats.studentized_range.isf(alpha, len(means), freedom) * spread
    return pd.DataFrame(
        {
            "a": means.index[first].astype(str),
            "b": means.index[second].astype(str),
            "difference": difference,
            "low": difference - reach,
            "high": difference + reach,
            "p": p,
            "different": p < alpha,
        }
    )


def tiers(means: pd.Series, pairs: pd.DataFrame) -> pd.DataFrame:
    """Systems in tiers, from the best mean downwards.

    A tier holds the best system not yet placed and every system not yet placed that does not differ from it
    significantly. Tiers do not overlap; two members of a tier can differ from each other.

    Parameters
    ----------
    means : Series
        Mean score by system.
    pairs : DataFrame
        Columns ``a, b, different`` with every pair once, as `tukey_hsd` gives it.

    Returns
    -------
    DataFrame
        Columns ``run, mean, tier`` (from 1), best first; equal means are sorted by name.

    Raises
    ------
    ValueError
        If a column or a pair of systems is missing.

    Notes
    -----
    permutations, section 4.4.

    Examples
    --------
    >>> pairs = pd.DataFrame({"a": ["x", "x", "y"], "b": ["y", "z", "z"], "different": [False, True, False]})
    >>> tiers(pd.Series({"x": 3.0, "y": 2.0, "z": 1.0}), pairs)
      run  mean  tier
    0   x   3.0     1
    1   y   2.0     1
    2   z   1.0     2
    """
    _columns(pairs, ["a", "b", "different"])
    differ = {
        frozenset((str(a), str(b))): bool(d) for a, b, d in pairs[["a", "b", "different"]].itertuples(index=False)
    }
    ordered = means.rename_axis("run").reset_index(name="mean")
    ordered = ordered.sort_values(["mean", "run"], ascending=[False, True], ignore_index=True)
    ordered["run"] = ordered["run"].astype(str)
    missing = [pair for pair in combinations(ordered["run"], 2) if frozenset(pair) not in differ]
    if missing:
        raise ValueError(f"no comparison of {missing[0][0]} with {missing[0][1]}")
    waiting, tier, placed = list(ordered["run"]), 0, {}
    while waiting:
        tier += 1
        members = [run for run in waiting if run == waiting[0] or not differ[frozenset((waiting[0], run))]]
        placed.update(dict.fromkeys(members, tier))
        waiting = [run for run in waiting if run not in placed]
    ordered["tier"] = ordered["run"].map(placed)
    return ordered


def corrected(p: ArrayLike, method: Literal["bonferroni", "holm", "none"] = "bonferroni") -> Floats:
    r"""p-values corrected for the number of comparisons.

    .. math:: \text{Bonferroni: } \min(1, m p_i), \quad \text{Holm: } \min(1, \max_{j \le i} (m - j + 1) p_{(j)})

    Parameters
    ----------
    p : array_like, shaped (m,)
        p-values of one family of comparisons.
    method : {"bonferroni", "holm", "none"}
        The correction; the thesis uses Bonferroni.

    Returns
    -------
    ndarray, shaped (m,)

    Raises
    ------
    ValueError
        If a p-value is not between 0 and 1, or the method is unknown.

    Notes
    -----
    thesis, chapter 2.

    Examples
    --------
    >>> corrected([0.01, 0.02, 0.6]), corrected([0.01, 0.02, 0.6], "holm")
    (array([0.03, 0.06, 1.  ]), array([0.03, 0.04, 0.6 ]))
    """
    values = np.asarray(p, dtype=np.float64)
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"p-values lie between 0 and 1, found {values.tolist()}")
    if method == "none":
        return values
    if method == "bonferroni":
        return np.minimum(values * len(values), 1.0)
    if method == "holm":
        order = np.argsort(values, kind="stable")
        steps = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
        adjusted = np.empty_like(values)
        adjusted[order] = np.minimum(steps, 1.0)
        return adjusted
    raise ValueError(f"no correction named {method!r}; there are bonferroni, holm, none")


def cohens_d(a: ArrayLike, b: ArrayLike, *, paired: bool = True, unbiased: bool = False) -> float:
    r"""Standardised mean difference of two sets of scores.

    .. math:: d_z = \frac{\overline{a - b}}{s_{a-b}} \text{ (paired)}, \qquad d = \frac{\bar a - \bar b}{s_{pooled}}

    Parameters
    ----------
    a, b : array_like, shaped (n,)
        Scores; of the same units in the same order where they are paired.
    paired : bool
        Whether to divide by the standard deviation of the differences or by the pooled one.
    unbiased : bool
        Multiply by 1 - 3 / (4 df - 1), Hedges' small-sample correction.

    Returns
    -------
    float
        In standard deviations; 0 if the means are equal, infinite if they differ and nothing varies.

    Raises
    ------
    ValueError
        If a score is not finite, there are fewer than two, or paired lengths differ.

    Notes
    -----
    Cohen (1988); Hedges (1981) for the correction.

    Examples
    --------
    >>> round(cohens_d([2, 3, 5], [1, 2, 3]), 4), round(cohens_d([2, 3, 5], [1, 2, 3], paired=False), 4)
    (2.3094, 1.0328)
    """
    x, y = _finite(a, "scores of a"), _finite(b, "scores of b")
    if min(len(x), len(y)) < 2 or (paired and len(x) != len(y)):
        raise ValueError(
            f"at least two scores each are wanted, paired ones in equal number; found {len(x)} and {len(y)}"
        )
    difference = float((x - y).mean()) if paired else float(x.mean() - y.mean())
    if paired:
        freedom, spread = len(x) - 1, float(np.std(x - y, ddof=1))
    else:
        freedom = len(x) + len(y) - 2
        spread = float(np.sqrt((((x - x.mean()) ** 2).sum() + ((y - y.mean()) ** 2).sum()) / freedom))
    if difference == 0:
        return 0.0
    d = difference / spread if spread > 0 else float(np.copysign(np.inf, difference))
    return d * (1 - 3 / (4 * freedom - 1)) if unbiased else d


def bootstrap_interval(
    values: ArrayLike,
    rng: np.random.Generator,
    *,
    level: float = 0.95,
    resamples: int = 9999,
    method: Literal["percentile", "basic", "BCa"] = "percentile",
) -> tuple[float, float]:
    """Bootstrap confidence interval of a mean.

    Parameters
    ----------
    values : array_like, shaped (n,)
        One value per unit that is drawn with replacement (a topic, a conversation).
    rng : numpy.random.Generator
        The source of randomness.
    level : float
        Confidence level, between 0 and 1.
    resamples : int
        Number of bootstrap samples.
    method : {"percentile", "basic", "BCa"}
        How the interval is read from them.

    Returns
    -------
    (float, float)
        Lower and upper end, in the unit of the values; equal to the value where all are equal.

    Raises
    ------
    ValueError
        If a value is not finite, or there are fewer than two.

    Notes
    -----
    SciPy's `scipy.stats.bootstrap`, with memory bounded by resampling in batches.

    Examples
    --------
    >>> low, high = bootstrap_interval([0.2, 0.4, 0.4, 0.6], np.random.default_rng(1))
    >>> round(low, 3), round(high, 3)
    (0.25, 0.55)
    """
    data = _finite(values, "values")
    if len(data) < 2:
        raise ValueError(f"a bootstrap needs at least two values, found {len(data)}")
    if np.ptp(data) == 0:
        return float(data[0]), float(data[0])
    interval = stats.bootstrap(
        (data,), np.mean, confidence_level=level, n_resamples=resamples, method=method, batch=1000, rng=rng
    ).confidence_interval
    return float(interval.low), float(interval.high)


def compare_pairs(
    scores: pd.DataFrame,
    *,
    run: str = "run",
    unit: str = "topic",
    baseline: str | None = None,
    test: Literal["t", "permutation"] = "t",
    correction: Literal["bonferroni", "holm", "none"] = "bonferroni",
    level: float = 0.95,
    resamples: int = 9999,
    rng: np.random.Generator | None = None,
) -> pd.DataFrame:
    """Paired comparison of systems over the units that all of them are scored on.

    Parameters
    ----------
    scores : DataFrame
        One row per system and unit; the score is the column ``value``.
    run, unit : str
        Names of the columns: the system, what pairs the scores (a topic, a query).
    baseline : str, optional
        Compare every other system with this one; without it, every pair.
    test : {"t", "permutation"}
        Paired t-test, as in the thesis, or the randomisation test that exchanges the scores within units (every
        exchange where there are no more than `resamples` of them).
    correction : {"bonferroni", "holm", "none"}
        Over the comparisons of the returned table.
    level : float
        Confidence level of the interval of the mean difference (t distribution), uncorrected.
    resamples : int
        Number of random exchanges of the randomisation test.
    rng : numpy.random.Generator, optional
        Needed by the randomisation test.

    Returns
    -------
    DataFrame
        One row per comparison, sorted: ``a, b, units, difference, low, high, statistic, p, p_corrected, effect``.
        Difference is the mean of a minus the mean of b (the baseline); effect is `cohens_d` of the pairs; statistic is
        t, or the mean difference for the randomisation test.

    Raises
    ------
    ValueError
        If a column is missing, a score is missing, repeated or not finite, the baseline is unknown, or there are fewer
        than two systems or units.

    Notes
    -----
    thesis, chapter 2: paired t-test with Bonferroni correction.

    Examples
    --------
    >>> scores = pd.DataFrame({"topic": list("abcabc"), "run": list("xxxyyy"), "value": [1, 2, 3, 2, 3, 5]})
    >>> compare_pairs(scores)[["a", "b", "difference", "statistic", "p_corrected"]].round(4)
       a  b  difference  statistic  p_corrected
    0  x  y     -1.3333       -4.0       0.0572
    """
    _columns(scores, ["value", run, unit])
    repeated = scores.duplicated([run, unit])
    if repeated.any():
        cell = scores.loc[repeated, [run, unit]].iloc[0].to_dict()
        raise ValueError(f"{int(repeated.sum())} pairs of system and unit are scored twice; the first is {cell}")
    wide = scores.pivot_table(index=unit, columns=run, values="value", aggfunc="first", sort=True, observed=True)
    absent = np.argwhere(~np.isfinite(wide.to_numpy(dtype=np.float64)))
    if len(absent) or len(wide) < scores[unit].nunique():
        place = f"{run} {wide.columns[absent[0][1]]}, {unit} {wide.index[absent[0][0]]}" if len(absent) else f"a {unit}"
        raise ValueError(f"{max(len(absent), 1)} scores are missing or not finite; the first: {place}")
    names = [str(name) for name in wide.columns]
    if len(names) < 2 or len(wide) < 2:
        raise ValueError(f"at least two systems and two units are wanted, found {len(names)} and {len(wide)}")
    if baseline is not None and baseline not in names:
        raise ValueError(f"no system named {baseline!r}; there are {', '.join(names)}")
    if test not in ("t", "permutation"):
        raise ValueError(f"test is 't' or 'permutation', found {test!r}")
    if baseline is None:
        pairs = list(combinations(range(len(names)), 2))
    else:
        pairs = [(place, names.index(baseline)) for place, name in enumerate(names) if name != baseline]
    first, second = np.array(pairs, dtype=np.intp).T
    columns = wide.to_numpy(dtype=np.float64)
    gaps = columns[:, first] - columns[:, second]
    mean, units = gaps.mean(axis=0), len(gaps)
    error = gaps.std(axis=0, ddof=1) / np.sqrt(units)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(mean == 0, 0.0, mean / error)
    if test == "t":
        statistic, p = t, 2 * stats.t.sf(np.abs(t), units - 1)
    else:
        if rng is None:
            raise ValueError("the randomisation test draws at random: pass rng")
        statistic, p = mean, _exchange_test(gaps, resamples, rng)
    reach = stats.t.isf((1 - level) / 2, units - 1) * error
    return pd.DataFrame(
        {
            "a": [names[place] for place in first],
            "b": [names[place] for place in second],
            "units": units,
            "difference": mean,
            "low": mean - reach,
            "high": mean + reach,
            "statistic": statistic,
            "p": p,
            "p_corrected": corrected(p, correction),
            "effect": t / np.sqrt(units),
        }
    )


def _exchange_test(gaps: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """Two-sided randomisation test of paired differences, shaped (units, comparisons)."""
    result = stats.permutation_test(
        (gaps, np.zeros_like(gaps)),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=resamples,
        batch=1000,
        axis=0,
        rng=rng,
    )
    p: Floats = np.asarray(result.pvalue, dtype=np.float64)
    return p
