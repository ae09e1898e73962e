"""Fusion of two rankers by linear interpolation of z-scaled scores, and how well its weight could be chosen.

The kernels work on all queries at once: scores lie flat, one entry a query-document pair, beside an
array of query codes. `sweep` makes the interpolated run of every weight;
`equipoise.measures.effectiveness` makes of it a table ``task, query, alpha, measure, value``, from
which come the weight tuned on other queries (`tuned`), the best weight of every query (`oracle`)
with its statistics, and a weight predicted from the query (`predicted`).

alpha = 0 is the contextualised ranker alone and alpha = 1 is BM25 alone, exactly.

Notes
-----
thesis chapter 2, Eq. 2.5 and section 2.3.3.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.linear_model import Ridge
from sklearn.model_selection import LeaveOneGroupOut, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from equipoise.arrays import Floats, Integers, starts
from equipoise.problems import need_columns, refuse_twice
from equipoise.statistics import finite
from equipoise_studies.query_by_example.data import chosen

Ties = Literal["lowest", "highest"]

ALPHAS: tuple[float, ...] = tuple(step / 10 for step in range(11))
"""The weights of the thesis's sweep: 0 to 1 in steps of 0.1, each the nearest float to its decimal."""

STATISTICS: dict[str, Any] = {
    "ranking quality": ("value", "mean"),
    "alpha average": ("alpha", "mean"),
    "queries with optimal alpha 0": ("zero", "sum"),
    "queries with optimal alpha 1": ("one", "sum"),
}
"""Rows of Table 2.4 as the thesis names them, but the last: the column of the best weights, and what is made of it."""


def z_scale(scores: ArrayLike, groups: ArrayLike) -> Floats:
    r"""Scores standardised within each group (query): mean 0, standard deviation 1.

    .. math:: z(q, d) = \frac{s(q, d) - \bar s_q}{\sigma_q}

    ``scores`` (shaped (..., rows)): one score a query-document pair. ``groups`` (shaped (rows,)):
    code of the query of each row; rows may come in any order. The standard deviation is that of all
    documents, not of a sample; a ranking after interpolation would be the same. A query whose
    scores are all equal gets zeros: it then says nothing about its documents.

    thesis section 2.3.3 ("subtracting the mean and dividing by the standard deviation"); per query.
    """
    values, codes = finite(scores, "scores to scale"), np.asarray(groups)
    if values.shape[-1:] != codes.shape:
        raise ValueError(
            f"one group code a score: scores shaped {values.shape}, groups shaped {codes.shape}"
        )
    order = np.argsort(codes, kind="stable")
    first = starts(codes[order])
    sizes = np.diff(first, append=codes.size)
    values = values[..., order]

    def by_query(reduce: np.ufunc, numbers: Floats) -> Floats:
        """One number a query, given to each of its rows."""
        return np.repeat(reduce.reduceat(numbers, first, axis=-1), sizes, axis=-1)

    # equal scores are told by comparison: their rounded mean may differ from them
    equal, size = (
        by_query(np.maximum, values) == by_query(np.minimum, values),
        np.repeat(sizes, sizes),
    )
    centred = values - by_query(np.add, values) / size
    # to a largest distance of 1 first, so that no square of a tiny or huge score leaves the range
    # of floats
    centred = centred / np.where(equal, 1.0, by_query(np.maximum, np.abs(centred)))
    deviation = np.sqrt(by_query(np.add, centred**2) / size)
    result = np.empty_like(values)
    result[..., order] = np.where(equal, 0.0, centred / np.where(equal, 1.0, deviation))
    return result


def interpolate(bm25: ArrayLike, contextualised: ArrayLike, alpha: ArrayLike) -> Floats:
    r"""Weighted sum of two scores.

    .. math:: s(q, d) = \alpha \, s_{BM25}(q, d) + (1 - \alpha) \, s_{contextualised}(q, d)

    ``bm25``, ``contextualised`` (shaped (..., rows)): scores, z-scaled beforehand in the thesis.
    ``alpha`` (shaped (...)): weight of BM25, between 0 and 1: with 0 the result is exactly
    ``contextualised``, with 1 exactly ``bm25``.

    thesis Eq. 2.5.
    """
    first, second = finite(bm25, "scores of BM25"), finite(contextualised, "contextualised scores")
    weight = np.asarray(alpha, dtype=np.float64)[..., np.newaxis]
    if not ((weight >= 0) & (weight <= 1)).all():
        raise ValueError(f"a weight must lie between 0 and 1, found {np.asarray(alpha).tolist()}")
    mixed: Floats = weight * first + (1.0 - weight) * second
    return mixed


def sweep(scores: pd.DataFrame, bm25: str, contextualised: str) -> pd.DataFrame:
    """Interpolated scores of every pair under every weight of `ALPHAS`.

    ``scores``: ``task, query, document`` and one column of scores a system, a row a pair. Returns
    ``task, query, document, alpha, score``.

    thesis section 2.3.3.
    """
    need_columns(scores, [bm25, contextualised])
    pairs = scores[["task", "query", "document"]]
    refuse_twice(pairs, [*pairs.columns], "a pair is scored")
    codes = scores.groupby(["task", "query"]).ngroup()
    scaled = z_scale(scores[[bm25, contextualised]].to_numpy().T, codes)
    mixed = interpolate(scaled[0], scaled[1], ALPHAS)
    table = pd.concat([pairs] * len(ALPHAS), ignore_index=True)
    return table.assign(alpha=np.repeat(ALPHAS, len(pairs)), score=mixed.ravel())


def _per_query(values: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Values of one measure shaped (queries, alphas): rows by task and query, columns by alpha, ascending."""
    chosen = values[values["measure"] == measure]
    if chosen.empty:
        raise ValueError(f"no measure {measure!r}; found {sorted(set(values['measure']))}")
    refuse_twice(chosen, ["task", "query", "alpha"], f"{measure} of a query under a weight stands")
    table = chosen.pivot_table(index=["task", "query"], columns="alpha", values="value")
    finite(table, f"{measure} of a query under a weight")
    return table


def _best(values: Floats, ties: Ties) -> Integers:
    """Place of the largest value along the last axis, the first or the last of equal ones."""
    first = np.argmax(values, axis=-1)
    last = values.shape[-1] - 1 - np.argmax(values[..., ::-1], axis=-1)
    return chosen({"lowest": first, "highest": last}, ties, "ties")


def _at(table: pd.DataFrame, places: Integers, measure: str) -> pd.DataFrame:
    """The weight at the given place of each row of values, and the value there."""
    value = np.take_along_axis(table.to_numpy(), places[:, np.newaxis], axis=1)[:, 0]
    alphas = table.columns.to_numpy(dtype=np.float64)
    return table.index.to_frame(index=False).assign(
        measure=measure, alpha=alphas[places], value=value
    )


def oracle(values: pd.DataFrame, measure: str, *, ties: Ties = "lowest") -> pd.DataFrame:
    r"""The best weight of every query, as if it were known: ``task, query, measure, alpha, value``.

    .. math:: \alpha^*_q = \arg\max_\alpha M(q, \alpha)

    ``ties``: which of several equally good weights is taken. The thesis calls a query with alpha 0
    one that interpolation does not improve, so the lowest; the counts and the mean depend on this.

    thesis section 2.3.3, "oracle interpolation".
    """
    table = _per_query(values, measure)
    return _at(table, _best(table.to_numpy(), ties), measure)


def oracle_statistics(best: pd.DataFrame) -> pd.DataFrame:
    """How the best weights are distributed over the queries of a task.

    Mean effectiveness, the mean weight, the numbers of queries whose weight is 0 and 1, and the
    distance between the weights' quartiles (linear between order statistics), a row a ``task,
    measure``.

    thesis Table 2.4.
    """
    groups = best.assign(zero=best["alpha"] == 0.0, one=best["alpha"] == 1.0).groupby(
        ["task", "measure"]
    )
    table = groups.agg(**STATISTICS)
    table["IQR of the optimal alpha"] = groups["alpha"].quantile(0.75) - groups["alpha"].quantile(
        0.25
    )
    return table.reset_index()


def alpha_bounds(at_0: ArrayLike, at_1: ArrayLike, queries: int) -> tuple[Floats, Floats]:
    r"""Least and greatest mean weight that the counts at either end allow, in a sweep of `ALPHAS`.

    .. math:: \frac{n_1 + s \, (N - n_0 - n_1)}{N} \le \bar\alpha \le \frac{n_1 + (1 - s) (N - n_0 -
    n_1)}{N}

    ``at_0``, ``at_1``: numbers of queries whose best weight is 0, and 1. ``queries``: N, of all.
    The step s of the sweep is 0.1.

    For thesis Table 2.4, whose rows must agree with each other.
    """
    zero, one = np.asarray(at_0, dtype=np.float64), np.asarray(at_1, dtype=np.float64)
    between = queries - zero - one
    return (one + ALPHAS[1] * between) / queries, (one + ALPHAS[-2] * between) / queries


def tuned(
    values: pd.DataFrame, splits: pd.DataFrame, measure: str, *, ties: Ties = "lowest"
) -> pd.DataFrame:
    r"""One weight a fold, the best on its dev queries, applied to its test queries ("non-oracle interpolation").

    .. math:: \hat\alpha = \arg\max_\alpha \frac1{|D|} \sum_{q \in D} M(q, \alpha)

    ``splits``: ``task, fold, part, query`` with the parts "dev" and "test". Returns
    ``task, query, fold, measure, alpha, value``, one row a test query.

    thesis section 2.3.3: alpha is optimised on the validation set.
    """
    table = _per_query(values, measure)
    joined = splits.set_index(["task", "query", "fold"])[["part"]].join(table)
    if joined.isna().to_numpy().any():
        raise ValueError("a query of the splits has no values")
    dev, test = (joined[joined["part"] == part].drop(columns="part") for part in ("dev", "test"))
    means = dev.groupby(["task", "fold"]).mean()
    folds = means.index.get_indexer(test.index.droplevel("query"))
    if (folds < 0).any():
        raise ValueError("a fold has test queries but no dev query to tune on")
    chosen = _at(test, _best(means.to_numpy(), ties)[folds], measure)
    return chosen.sort_values(["task", "query", "fold"], ignore_index=True)


def query_statistics(
    scores: pd.DataFrame, bm25: str, contextualised: str, lengths: pd.Series
) -> pd.DataFrame:
    """What is known of a query without judgements: its length and the shape of the two rankers' scores.

    ``scores``: ``task, query, document`` and the two systems' columns, named by ``bm25`` and
    ``contextualised``. ``lengths``: number of tokens by query. Returns ``length`` (log of tokens);
    ``candidates`` (log); for both systems the largest z-score (``top_*``), how far the tenth best
    lies below it (``drop_*``), the skewness of the z-scores (``skew_*``); and ``agreement``, the
    correlation of the two systems' scores.

    Beyond the thesis, which leaves query-dependent weights to future work (section 2.5.2). A ranker
    whose top stands out from its other scores is likely to know the answer: the statistics are of
    that kind.
    """
    scaled = z_scale(
        scores[[bm25, contextualised]].to_numpy().T, scores.groupby(["task", "query"]).ngroup()
    )
    table = scores[["task", "query"]].assign(
        bm25=scaled[0], contextualised=scaled[1], agreement=scaled[0] * scaled[1]
    )
    queries = table.groupby(["task", "query"])
    features = pd.DataFrame({"candidates": np.log(queries.size())})
    features.insert(0, "length", np.log(lengths.reindex(features.index, level="query")))
    for name in ("bm25", "contextualised"):
        best = queries[name].nlargest(10).groupby(["task", "query"])
        features[f"top_{name}"] = best.max()
        features[f"drop_{name}"] = best.max() - best.min()
        features[f"skew_{name}"] = queries[name].agg(lambda z: (z**3).mean())
    return features.assign(agreement=queries["agreement"].mean())


def predicted(
    values: pd.DataFrame, statistics: pd.DataFrame, measure: str, *, penalty: float = 10.0
) -> pd.DataFrame:
    r"""A weight for every query, predicted from its statistics, never from its own judgements.

    A ridge regression predicts the measure under each weight, less its mean over the weights, from
    standardised query statistics; the weight of the highest prediction is taken. All rows of one
    query paper, over all tasks, are left out together when its weight is predicted.

    .. math:: \hat\alpha_q = \arg\max_\alpha \hat f_\alpha(x_q)

    ``statistics``: features, as `query_statistics` returns them. ``penalty``: strength of the ridge
    penalty; with an infinite one the prediction is the mean of the other queries: one weight.
    Returns ``task, query, measure, alpha, value``.

    Beyond the thesis: section 2.5.2 only says that a query-dependent weight could pay.
    """
    table = _per_query(values, measure)
    features = statistics.reindex(table.index)
    papers = table.index.get_level_values("query")
    numbers = table.to_numpy()
    model = make_pipeline(StandardScaler(), Ridge(alpha=penalty, solver="cholesky"))
    gains = numbers - numbers.mean(axis=1, keepdims=True)
    guess = cross_val_predict(model, features, gains, groups=papers, cv=LeaveOneGroupOut())
    return _at(table, _best(guess.round(12), "lowest"), measure)


def reached(predicted_mean: ArrayLike, tuned_mean: ArrayLike, oracle_mean: ArrayLike) -> Floats:
    r"""Share of the oracle's gain over one tuned weight that predicted weights reach.

    .. math:: \frac{\bar M_{predicted} - \bar M_{tuned}}{\bar M_{oracle} - \bar M_{tuned}}

    Of mean values over the same queries. 1 where the prediction is as good as the oracle, 0 where
    it is no better than one weight for all, negative where it is worse, NaN where the oracle gains
    nothing.
    """
    gain = np.subtract(oracle_mean, tuned_mean)
    if (gain < -1e-12).any():
        raise ValueError(
            "the oracle lies below the tuned weight: they are not over the same queries"
        )
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(gain > 0, np.subtract(predicted_mean, tuned_mean) / gain, np.nan)[()]
