"""Analysis of variance of conversations and their orders: MD0 to MD3, Tukey's test, tiers.

Tables 4 and 5 of the study (Faggioli et al., section 3.2), with the interaction that it leaves to
future work and the two models that its public program has besides; see also Rutherford (2011),
ANOVA and ANCOVA: A GLM Approach.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse, stats

from equipoise.arrays import Floats, Integers, ratio
from equipoise.errors import need_columns, refuse_twice
from equipoise.statistics import finite

Design = Literal["MD0", "MD1", "MD2", "MD3"]

INTERACTION = "topic x model"

# model against the interaction: systems are compared over conversations, not over orders that share
# utterances
OVER_CONVERSATIONS: Mapping[str, str] = {"model": INTERACTION}


class _Term(NamedTuple):
    """A factor, and all that is fitted once it is: cells of columns, and others beside these."""

    source: str
    cells: tuple[str, ...]
    beside: tuple[tuple[str, ...], ...] = ()


_ORDER, _UTTERANCE, _MODEL = ("topic", "permutation"), ("topic", "utterance"), ("run",)
_UTTERANCES = (
    _Term("topic", ("topic",)),
    _Term("utterance(topic)", _UTTERANCE),
    _Term("permutation(topic)", _ORDER, (_UTTERANCE,)),
    _Term("model", _ORDER, (_UTTERANCE, _MODEL)),
)
_DESIGNS: Mapping[Design, tuple[_Term, ...]] = {
    "MD0": (_Term("topic", ("topic",)), _Term("model", ("topic",), (_MODEL,))),
    "MD1": (
        _Term("topic", ("topic",)),
        _Term("permutation(topic)", _ORDER),
        _Term("model", _ORDER, (_MODEL,)),
    ),
    "MD2": (*_UTTERANCES, _Term("permutation(topic) x model", (*_ORDER, "run"), (_UTTERANCE,))),
    "MD3": (*_UTTERANCES, _Term("topic x permutation", _ORDER, (_UTTERANCE, _MODEL))),
}


def _terms(design: Design, interaction: bool) -> list[_Term]:
    """The terms of a design in the order of their fitting, the interaction behind the models."""
    terms = list(_DESIGNS[design])
    if not interaction:
        return terms
    cells_of_interaction = ("topic", "run")
    place = [term.source for term in terms].index("model")
    model = terms[place]
    with_interaction = terms[: place + 1]
    with_interaction.append(_Term(INTERACTION, model.cells, (*model.beside, cells_of_interaction)))
    for term in terms[place + 1 :]:
        with_interaction.append(term._replace(beside=(*term.beside, cells_of_interaction)))
    return with_interaction


def _tested_against(names: list[str], against: Mapping[str, str]) -> Integers:
    """Row of the source whose mean square tests each source."""
    tested = np.full(len(names), names.index("Error"))
    for source, denominator in against.items():
        absent = sorted({source, denominator} - set(names))
        if absent:
            raise ValueError(
                f"{source} against {denominator} needs the source {' and '.join(absent)}"
            )
        tested[names.index(source)] = names.index(denominator)
    return tested


def anova_from_sums(
    sums: pd.DataFrame,
    observations: int,
    *,
    alpha: float = 0.05,
    against: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    r"""Complete an analysis of variance from its sums of squares and degrees of freedom.

    .. math::
        MS = SS / DF, \quad F = MS / MS_{error}, \quad p = P(F_{DF, DF_{error}} \ge F), \quad
        \hat\omega^2 = \frac{DF (F - 1)}{DF (F - 1) + N}, \quad
        \eta^2 = \frac{SS}{SS_{total}}, \quad
        f^2 = \frac{SS}{SS_{error}}

    ``sums``: columns ``source, SS, DF``; the row "Error" is the residual, "Total" the sum of all.
    ``observations``: N, the number of observations. ``alpha``: partial omega squared is given for
    factors with p below alpha only, NaN for the others: the paper calls it ill-defined there.
    ``against``: by source, the source whose mean square tests it; the residual where not given, as
    in the paper; a random factor asks for another (`OVER_CONVERSATIONS`). Returns columns ``source,
    SS, DF, MS, F, p, omega_squared, eta_squared, f_squared``; NaN where a source has none. Eta
    squared is of the whole, omega squared and Cohen's f squared are partial and rest on what tests
    the source.

    permutations, Tables 4 and 5.
    """
    names = sums["source"].tolist()
    ss, df = sums["SS"].to_numpy(np.float64), sums["DF"].to_numpy(np.float64)
    if "Error" not in names or df[names.index("Error")] < 1:
        raise ValueError("no residual degrees of freedom: add observations, or leave out a factor")
    tested = _tested_against(names, against or {})
    is_total = np.array(names) == "Total"
    is_factor = (df > 0) & ~is_total & (np.array(names) != "Error")
    ms = np.where(is_total, np.nan, ratio(ss, df, np.nan))
    f = np.where(is_factor, ratio(ms, ms[tested], np.nan), np.nan)
    p = stats.f.sf(f, np.maximum(df, 1), np.maximum(df[tested], 1))

    surplus = df * (f - 1)
    omega_squared = ratio(surplus, surplus + observations, np.nan)
    total = ss[is_total][0] if is_total.any() else ss.sum()
    return sums[["source", "SS", "DF"]].assign(
        MS=ms,
        F=f,
        p=p,
        omega_squared=np.where(p < alpha, omega_squared, np.nan),
        eta_squared=np.where(is_factor, ratio(ss, total, np.nan), np.nan),
        f_squared=np.where(is_factor, ratio(ss, ss[tested], np.nan), np.nan),
    )


def _cells(scores: pd.DataFrame, columns: tuple[str, ...]) -> tuple[NDArray[np.intp], int]:
    """Number of the cell of each observation in some columns, and how many cells there are."""
    codes = np.zeros(len(scores), dtype=np.intp)
    for column in columns:
        code_in_column, values = pd.factorize(scores[column])
        codes = pd.factorize(codes * len(values) + code_in_column)[0]
    return codes, int(codes.max(initial=-1)) + 1


def _indicators(codes: NDArray[np.intp], n_cells: int) -> sparse.csr_array:
    """Which cell each observation is in, shaped (observations, cells)."""
    n = len(codes)
    return sparse.csr_array((np.ones(n), (np.arange(n), codes)), shape=(n, n_cells))


def _explained(scores: pd.DataFrame, deviations: Floats, term: _Term) -> tuple[float, int]:
    r"""Sum of squares and dimensions of the fit of a term's cells, and what stands beside them.

    .. math:: \sum_c \frac{(\sum_{c} y)^2}{n_c} + r^\top N^{-} r, \quad N = X^\top (I - P_{cells})
    X, \quad
        r = X^\top (I - P_{cells}) y

    with X the indicators of what stands beside: the cells, which are many, are solved by their
    means, and the normal equations are left for the few others (Frisch and Waugh). No balance is
    needed.
    """
    codes, n_cells = _cells(scores, term.cells)
    sizes, totals = np.bincount(codes), np.bincount(codes, deviations)
    explained = float(totals @ (totals / sizes))
    if not term.beside:
        return explained, n_cells

    blocks = [_indicators(*_cells(scores, columns)) for columns in term.beside]
    beside: Any = sparse.hstack(blocks, format="csr")  # X
    shared: Any = _indicators(codes, n_cells).T @ beside  # (cells, columns of X)
    scaled = sparse.diags_array(1 / sizes) @ shared
    normal = (beside.T @ beside - shared.T @ scaled).toarray()  # N
    right = beside.T @ deviations - scaled.T @ totals  # r
    effects, _, rank, _ = np.linalg.lstsq(normal, right, rcond=1e-9)
    return explained + float(effects @ right), n_cells + int(rank)


def _factors(terms: list[_Term]) -> list[str]:
    """The columns that the terms are made of, each once."""
    factors: dict[str, None] = {}
    for term in terms:
        for columns in (term.cells, *term.beside):
            factors.update(dict.fromkeys(columns))
    return list(factors)


def anova(
    scores: pd.DataFrame,
    design: Design = "MD0",
    *,
    interaction: bool = False,
    alpha: float = 0.05,
    against: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    r"""Analysis of variance of system scores by one of the models MD0 to MD3.

    .. math::
        y_{ik} &= \mu + \tau_i + \alpha_k + \varepsilon_{ik} & (MD0) \
        y_{i(j)k} &= \mu + \tau_i + \nu_{j(i)} + \alpha_k + \varepsilon_{ijk} & (MD1) \
        y_{i(jl)k} &= \mu + \tau_i + \beta_{l(i)} + \nu_{j(i)} + \alpha_k
        + (\nu\alpha)_{j(i)k} + \varepsilon & (MD2)

    MD2 and MD3 are the authors' program's: one observation for each utterance l, an effect of the
    utterance, nested in its topic. MD3 has topic x permutation in the place of permutation(topic) x
    model; as a permutation is nested in its topic, that holds nothing that is not fitted already:
    no degrees of freedom, and an F that is NaN.

    Sums of squares are sequential (type I) in the order of the rows, exact whether the design is
    balanced or not. Where every order is scored by every model and in every utterance, the order
    does not matter.

    ``scores``: columns ``run, topic, value``, from MD1 on ``permutation``, from MD2 on
    ``utterance``: one row per observation; cells may be missing. ``alpha``, ``against``: of
    `anova_from_sums`. Returns what that returns, with the rows of the model, Error, Total.

    permutations, section 3.2, models MD0 and MD1; Tables 4 and 5.
    """
    terms = _terms(design, interaction)
    factors = _factors(terms)
    need_columns(scores, ["value", *factors])
    refuse_twice(scores, factors, "the scores have a cell")
    values = finite(scores["value"], "scores in column value")
    n_systems = scores["run"].nunique()
    if n_systems < 2:
        raise ValueError(
            f"a comparison needs at least two systems in column run, found {n_systems}"
        )

    # Each term explains what its fit explains beyond the fit of the terms before it.
    deviations = values - values.mean()
    rows = []
    explained_before, dimensions_before = 0.0, 1
    for term in terms:
        explained, dimensions = _explained(scores, deviations, term)
        ss = max(explained - explained_before, 0.0)
        rows.append((term.source, ss, dimensions - dimensions_before))
        explained_before, dimensions_before = explained, dimensions
    total = float(deviations @ deviations)
    residual = max(total - explained_before, 0.0)
    rows.append(("Error", residual, len(values) - dimensions_before))
    rows.append(("Total", total, len(values) - 1))
    sums = pd.DataFrame(rows, columns=["source", "SS", "DF"])
    table = anova_from_sums(sums, len(values), alpha=alpha, against=against)
    # The twelfth digit of a p of 1e-274 is that of the processor that computed its F.
    return table.assign(p=table["p"].map(lambda p: float(f"{p:.9g}")))


def tukey_hsd(scores: pd.DataFrame, table: pd.DataFrame, *, alpha: float = 0.05) -> pd.DataFrame:
    r"""Tukey's honestly significant differences between systems, after an analysis of variance.

    .. math::
        q_{ab} = \frac{|\bar y_a - \bar y_b|}{\sqrt{\tfrac12 MS_{error} (1/n_a + 1/n_b)}}, \quad
        p_{ab} = P(Q_{k, DF_{error}} \ge q_{ab})

    with Q the studentised range over k systems; with unequal numbers of scores this is the
    Tukey-Kramer form.

    ``scores``: columns ``run, value``: the scores that `table` was fitted on. ``table``: the result
    of `anova`: its row "Error" is used. ``alpha``: family-wise level of the intervals and of
    ``different``. Returns one row per pair, sorted by name: ``a, b, difference, low, high, p,
    different``; difference is mean of a minus mean of b.

    permutations, section 4.4. Means are raw means: with missing cells they are not adjusted for the
    topics.
    """
    groups = scores.groupby("run", observed=True)["value"].agg(["mean", "size"])
    error = table.set_index("source").loc["Error"]
    pairs = pd.DataFrame(combinations(groups.index.astype(str), 2), columns=["a", "b"])
    a = groups.loc[pairs["a"]].reset_index()
    b = groups.loc[pairs["b"]].reset_index()
    difference = a["mean"] - b["mean"]
    spread = np.sqrt(error["MS"] / 2 * (1 / a["size"] + 1 / b["size"]))
    # Equal means are 0 apart, even where the spread is 0 too.
    q = (difference.abs() / spread).where(difference != 0, 0.0)
    p = stats.studentized_range.sf(q, len(groups), error["DF"])
    reach = stats.studentized_range.isf(alpha, len(groups), error["DF"]) * spread
    return pairs.assign(
        difference=difference,
        low=difference - reach,
        high=difference + reach,
        p=p,
        different=p < alpha,
    )


def tiers(scores: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Systems in tiers, from the best mean downwards: columns run, mean, tier (from 1).

    A tier holds the best system not yet placed and every system not yet placed that does not differ
    from it significantly. Tiers do not overlap; two members of a tier can differ from each other.

    ``scores``: columns ``run, value``. ``pairs``: of `tukey_hsd`, every pair once.

    permutations, section 4.4.
    """
    means = scores.groupby("run")["value"].mean()
    means = means.sort_values(ascending=False, kind="stable").rename("mean")
    differ = {}
    for a, b, different in pairs[["a", "b", "different"]].itertuples(index=False):
        differ[frozenset((a, b))] = different
    for a, b in combinations(means.index, 2):
        if frozenset((a, b)) not in differ:
            raise ValueError(f"no comparison of {a} with {b}")

    tier_of_run: dict[str, int] = {}
    waiting = list(means.index)
    tier = 0
    while waiting:
        tier += 1
        best = waiting[0]
        for run in waiting:
            if run == best or not differ[frozenset((best, run))]:
                tier_of_run[run] = tier
        waiting = [run for run in waiting if run not in tier_of_run]
    return means.reset_index().assign(tier=[tier_of_run[run] for run in means.index])
