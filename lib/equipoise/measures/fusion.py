"""Fusion of two rankers by linear interpolation of z-scaled scores, and how well its weight could be chosen.

The kernels work on all queries at once: scores lie flat, one entry a query-document pair, beside an array of query
codes. `sweep` makes the interpolated run of every weight; `equipoise.measures.effectiveness` makes of it a table
``task, query, alpha, measure, value``, from which come the weight tuned on other queries (`tuned`), the best weight of
every query (`oracle`) with its statistics, and a weight predicted from the query (`predicted`).

alpha = 0 is the contextualised ranker alone and alpha = 1 is BM25 alone, exactly.

Notes
-----
thesis chapter 2, Eq. 2.5 and section 2.3.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import Ridge
from sklearn.model_selection import LeaveOneGroupOut, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

__all__ = [
    "ALPHAS",
    "STATISTICS",
    "alpha_bounds",
    "interpolate",
    "oracle",
    "oracle_statistics",
    "predicted",
    "query_statistics",
    "reached",
    "sweep",
    "tuned",
    "z_scale",
]

Floats = NDArray[np.float64]

ALPHAS: tuple[float, ...] = tuple(step / 10 for step in range(11))
"""The weights of the thesis's sweep: 0 to 1 in steps of 0.1, each the nearest float to its decimal."""


def z_scale(scores: ArrayLike, groups: ArrayLike, *, ddof: int = 0) -> Floats:
    r"""Scores standardised within each group (query): mean 0, standard deviation 1.

    .. math:: z(q, d) = \frac{s(q, d) - \bar s_q}{\sigma_q}

    Parameters
    ----------
    scores : array_like, shaped (..., rows)
        One score a query-document pair.
    groups : array_like of int, shaped (rows,)
        Code of the query of each row, from 0; rows may come in any order.
    ddof : int
        0 divides by the number of documents (default), 1 by one less; a ranking after interpolation is the same.

    Returns
    -------
    ndarray, shaped (..., rows)
        In standard deviations. A query whose scores are all equal gets zeros: it then says nothing about its documents.

    Raises
    ------
    ValueError
        If the shapes do not fit, or a score is not finite.

    Notes
    -----
    thesis section 2.3.3 ("subtracting the mean and dividing by the standard deviation"); per query.

    Examples
    --------
    >>> z_scale([1.0, 3.0, 7.0, 7.0], [0, 0, 1, 1])
    array([-1.,  1.,  0.,  0.])
    """
    values, codes = np.asarray(scores, dtype=np.float64), np.asarray(groups, dtype=np.int64)
    if codes.ndim != 1 or values.shape[-1:] != codes.shape:
        raise ValueError(f"one group code a score: scores shaped {values.shape}, groups shaped {codes.shape}")
    if not np.isfinite(values).all():
        raise ValueError("a score is not finite; z-scaling needs finite scores")
    if values.size == 0:
        return values
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    sizes = np.diff(np.r_[starts, codes.size])
    values = values[..., order]

    def spread(per_group: Floats) -> Floats:
        repeated: Floats = np.repeat(per_group, sizes, axis=-1)
        return repeated

    # equal scores are told by comparison: their rounded mean may differ from them
    equal = np.maximum.reduceat(values, starts, axis=-1) == np.minimum.reduceat(values, starts, axis=-1)
    centred = values - spread(np.add.reduceat(values, starts, axis=-1) / sizes)
    # to a largest distance of 1 first, so that no square of a tiny or huge score leaves the range of floats
    reach = np.maximum.reduceat(np.abs(centred), starts, axis=-1)
    centred = centred / spread(np.where(equal, 1.0, reach))
    variance = np.add.reduceat(centred**2, starts, axis=-1) / np.maximum(sizes - ddof, 1)
    deviation = np.sqrt(np.where(equal, 1.0, variance))
    scaled = np.where(spread(equal), 0.0, centred / spread(deviation))
    result = np.empty_like(scaled)
    result[..., order] = scaled
    return result


def interpolate(bm25: ArrayLike, contextualised: ArrayLike, alpha: ArrayLike) -> Floats:
    r"""Weighted sum of two scores.

    .. math:: s(q, d) = \alpha \, s_{BM25}(q, d) + (1 - \alpha) \, s_{contextualised}(q, d)

    Parameters
    ----------
    bm25, contextualised : array_like, shaped (..., rows)
        Scores, z-scaled beforehand in the thesis; they broadcast.
    alpha : array_like, shaped (...)
        Weight of BM25, between 0 and 1.

    Returns
    -------
    ndarray, shaped (..., rows)
        With ``alpha`` 0 exactly `contextualised`, with 1 exactly `bm25`.

    Raises
    ------
    ValueError
        If a weight lies outside [0, 1], or a score is not finite.

    Notes
    -----
    thesis Eq. 2.5.

    Examples
    --------
    >>> interpolate([1.0, -1.0], [0.0, 2.0], [0.0, 0.5, 1.0])
    array([[ 0. ,  2. ],
           [ 0.5,  0.5],
           [ 1. , -1. ]])
    """
    first, second = np.asarray(bm25, dtype=np.float64), np.asarray(contextualised, dtype=np.float64)
    weight = np.asarray(alpha, dtype=np.float64)[..., np.newaxis]
    if not ((weight >= 0) & (weight <= 1)).all():
        raise ValueError(f"a weight must lie between 0 and 1, found {np.asarray(alpha).tolist()}")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("a score is not finite; interpolation needs finite scores")
    mixed: Floats = weight * first + (1.0 - weight) * second
    return mixed


def sweep(
    scores: pd.DataFrame, bm25: str, contextualised: str, *, alphas: Sequence[float] = ALPHAS, ddof: int = 0
) -> pd.DataFrame:
    """Interpolated scores of every pair under every weight.

    Parameters
    ----------
    scores : DataFrame
        ``query, document`` and one column of scores a system, a row a pair; a column ``task`` is part of the query.
    bm25, contextualised : str
        Names of the two systems' columns.
    alphas : sequence of float
        Weights of BM25.
    ddof : int
        As in `z_scale`.

    Returns
    -------
    DataFrame
        The columns ``task`` (where given), ``query, document, alpha, score``; len(alphas) rows a pair.

    Raises
    ------
    ValueError
        If a column is missing, a pair stands twice, or a score is not finite.

    Notes
    -----
    thesis section 2.3.3.

    Examples
    --------
    >>> table = pd.DataFrame({"query": ["q", "q"], "document": ["a", "b"], "x": [2.0, 1.0], "y": [0.0, 5.0]})
    >>> sweep(table, "x", "y", alphas=[0, 1])["score"].tolist()
    [-1.0, 1.0, 1.0, -1.0]
    """
    keys = [*(["task"] if "task" in scores.columns else []), "query"]
    if missing := [name for name in ("query", "document", bm25, contextualised) if name not in scores.columns]:
        raise ValueError(f"the scores lack the columns {missing}; found {list(scores.columns)}")
    if scores.duplicated([*keys, "document"]).any():
        twice = scores[scores.duplicated([*keys, "document"])].iloc[0]
        raise ValueError(f"the pair {tuple(twice[[*keys, 'document']])} is scored twice")
    codes = scores.groupby(keys, sort=False).ngroup().to_numpy()
    scaled = z_scale(scores[[bm25, contextualised]].to_numpy(dtype=np.float64).T, codes, ddof=ddof)
    mixed = interpolate(scaled[0], scaled[1], alphas)
    pairs = scores[[*keys, "document"]]
    table = pd.concat([pairs] * len(alphas), ignore_index=True)
    return table.assign(alpha=np.repeat(np.asarray(alphas, dtype=np.float64), len(pairs)), score=mixed.ravel())


def _per_query(values: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Values of one measure shaped (queries, alphas): rows by task and query, columns by alpha, ascending."""
    chosen = values[values["measure"] == measure]
    if chosen.empty:
        raise ValueError(f"no measure {measure!r}; found {sorted(set(values['measure']))}")
    if chosen.duplicated(["task", "query", "alpha"]).any():
        raise ValueError("some queries have two values for one weight")
    table = chosen.pivot_table(index=["task", "query"], columns="alpha", values="value", aggfunc="first").sort_index(
        axis=1
    )
    if table.isna().to_numpy().any():
        raise ValueError("some queries lack values for some weights")
    return table


def _best(values: Floats, ties: str) -> NDArray[np.int64]:
    """Place of the largest value along the last axis, the first or the last of equal ones."""
    if ties not in ("lowest", "highest"):
        raise ValueError(f'ties must be "lowest" or "highest", found {ties!r}')
    if ties == "lowest":
        return np.argmax(values, axis=-1)
    return values.shape[-1] - 1 - np.argmax(values[..., ::-1], axis=-1)


def oracle(values: pd.DataFrame, measure: str, *, ties: Literal["lowest", "highest"] = "lowest") -> pd.DataFrame:
    r"""The best weight of every query, as if it were known.

    .. math:: \alpha^*_q = \arg\max_\alpha M(q, \alpha)

    Parameters
    ----------
    values : DataFrame
        ``task, query, alpha, measure, value``.
    measure : str
        The measure by which a weight is best, such as "AP".
    ties : {"lowest", "highest"}
        Which of several equally good weights is taken. The thesis calls a query with alpha 0 one that interpolation
        does not improve, so the lowest; the counts and the mean depend on this.

    Returns
    -------
    DataFrame
        ``task, query, measure, alpha, value``.

    Raises
    ------
    ValueError
        If the measure is not there, or a query lacks a value for a weight.

    Notes
    -----
    thesis section 2.3.3, "oracle interpolation".

    Examples
    --------
    >>> table = pd.DataFrame({"task": "t", "query": "q", "alpha": [0.0, 0.5, 1.0], "measure": "AP",
    ...                       "value": [0.2, 0.9, 0.9]})
    >>> oracle(table, "AP")["alpha"].item(), oracle(table, "AP", ties="highest")["alpha"].item()
    (0.5, 1.0)
    """
    table = _per_query(values, measure)
    numbers = table.to_numpy(dtype=np.float64)
    best = _best(numbers, ties)
    frame = table.index.to_frame(index=False).assign(
        measure=measure,
        alpha=table.columns.to_numpy(dtype=np.float64)[best],
        value=np.take_along_axis(numbers, best[:, np.newaxis], axis=1)[:, 0],
    )
    return frame[["task", "query", "measure", "alpha", "value"]]


STATISTICS = ("effectiveness", "alpha_average", "queries_at_0", "queries_at_1", "alpha_iqr")
"""The rows of thesis Table 2.4, in its order: effectiveness, mean weight, counts at either end, quartile range."""


def oracle_statistics(best: pd.DataFrame) -> pd.DataFrame:
    """How the best weights are distributed over the queries of a task.

    Parameters
    ----------
    best : DataFrame
        ``task, query, measure, alpha, value``, as `oracle` returns it.

    Returns
    -------
    DataFrame
        ``task, measure`` and the columns of `STATISTICS`: mean effectiveness, the mean weight, the numbers of queries
        whose weight is 0 and 1, and the distance between the weights' quartiles (linear between order statistics).

    Raises
    ------
    ValueError
        If there is no query.

    Notes
    -----
    thesis Table 2.4.

    Examples
    --------
    >>> best = pd.DataFrame({"task": "t", "query": list("abcd"), "measure": "AP", "alpha": [0.0, 0.0, 0.4, 1.0],
    ...                      "value": [0.5, 0.5, 0.7, 0.7]})
    >>> oracle_statistics(best).iloc[0, 2:].astype(float).round(3).tolist()
    [0.6, 0.35, 2.0, 1.0, 0.55]
    """
    if best.empty:
        raise ValueError("no query: an oracle needs at least one")
    marked = best.assign(zero=best["alpha"] == 0.0, one=best["alpha"] == 1.0)
    groups = marked.groupby(["task", "measure"])
    quartiles = {share: groups["alpha"].quantile(share) for share in (0.25, 0.75)}
    table = groups.agg(
        effectiveness=("value", "mean"),
        alpha_average=("alpha", "mean"),
        queries_at_0=("zero", "sum"),
        queries_at_1=("one", "sum"),
    )
    return table.assign(alpha_iqr=quartiles[0.75] - quartiles[0.25]).reset_index()


def alpha_bounds(at_0: ArrayLike, at_1: ArrayLike, queries: int) -> tuple[Floats, Floats]:
    r"""Least and greatest mean weight that the counts at either end allow, in a sweep of `ALPHAS`.

    .. math:: \frac{n_1 + s \, (N - n_0 - n_1)}{N} \le \bar\alpha \le \frac{n_1 + (1 - s) (N - n_0 - n_1)}{N}

    Parameters
    ----------
    at_0, at_1 : array_like of int
        Numbers of queries whose best weight is 0, and 1; they broadcast.
    queries : int
        Number of all queries, N. The step s of the sweep is 0.1.

    Returns
    -------
    tuple of two ndarray
        The bounds.

    Raises
    ------
    ValueError
        If more queries are counted than there are.

    Notes
    -----
    For thesis Table 2.4, whose rows must agree with each other.

    Examples
    --------
    >>> low, high = alpha_bounds(537, 19, 1000)
    >>> round(float(low), 4), round(float(high), 4)
    (0.0634, 0.4186)
    """
    zero, one = np.asarray(at_0, dtype=np.float64), np.asarray(at_1, dtype=np.float64)
    between = queries - zero - one
    if (between < 0).any():
        raise ValueError(f"more than {queries} queries are counted")
    return (one + ALPHAS[1] * between) / queries, (one + ALPHAS[-2] * between) / queries


def tuned(
    values: pd.DataFrame, splits: pd.DataFrame, measure: str, *, ties: Literal["lowest", "highest"] = "lowest"
) -> pd.DataFrame:
    r"""One weight a fold, the best on its dev queries, applied to its test queries ("non-oracle interpolation").

    .. math:: \hat\alpha = \arg\max_\alpha \frac1{|D|} \sum_{q \in D} M(q, \alpha)

    Parameters
    ----------
    values : DataFrame
        ``task, query, alpha, measure, value``.
    splits : DataFrame
        ``task, fold, part, query`` with the parts "dev" and "test".
    measure : str
        The measure to tune for, and to report.
    ties : {"lowest", "highest"}
        Which of several equally good weights is taken.

    Returns
    -------
    DataFrame
        ``task, query, fold, measure, alpha, value``, one row a test query.

    Raises
    ------
    ValueError
        If a fold has no dev query, a query of a split has no values, or the measure is not there.

    Notes
    -----
    thesis section 2.3.3: alpha is optimised on the validation set.

    Examples
    --------
    >>> table = pd.DataFrame({"task": "t", "query": ["a", "a", "b", "b"], "alpha": [0.0, 1.0] * 2, "measure": "AP",
    ...                       "value": [0.1, 0.8, 0.6, 0.5]})
    >>> parts = pd.DataFrame({"task": "t", "fold": "1", "part": ["dev", "test"], "query": ["a", "b"]})
    >>> tuned(table, parts, "AP")[["query", "alpha", "value"]].values.tolist()
    [['b', 1.0, 0.5]]
    """
    table = _per_query(values, measure)
    alphas = table.columns.to_numpy(dtype=np.float64)
    joined = splits[["task", "fold", "part", "query"]].merge(
        table.reset_index(), on=["task", "query"], how="left", validate="many_to_one"
    )
    if joined[list(table.columns)].isna().to_numpy().any():
        raise ValueError("a query of the splits has no values")
    means = joined[joined["part"] == "dev"].groupby(["task", "fold"])[list(table.columns)].mean()
    weights = pd.Series(_best(means.to_numpy(dtype=np.float64), ties), index=means.index, name="place").reset_index()
    test = joined[joined["part"] == "test"].merge(weights, on=["task", "fold"], how="left")
    if test["place"].isna().any():
        raise ValueError("a fold has test queries but no dev query to tune on")
    places = test["place"].to_numpy(dtype=np.int64)
    numbers = test[list(table.columns)].to_numpy(dtype=np.float64)
    frame = test[["task", "query", "fold"]].assign(
        measure=measure, alpha=alphas[places], value=np.take_along_axis(numbers, places[:, np.newaxis], axis=1)[:, 0]
    )
    return frame.sort_values(["task", "query", "fold"], ignore_index=True)


def query_statistics(scores: pd.DataFrame, bm25: str, contextualised: str, lengths: pd.Series) -> pd.DataFrame:
    """What is known of a query without judgements: its length and the shape of the two rankers' scores.

    Parameters
    ----------
    scores : DataFrame
        ``task, query, document`` and the two systems' columns.
    bm25, contextualised : str
        Names of those columns.
    lengths : Series of int
        Number of tokens by query.

    Returns
    -------
    DataFrame, indexed by task and query
        ``length`` (log of tokens); ``candidates`` (log); for both systems the largest z-score (``top_*``), how far the
        tenth best lies below it (``drop_*``), the skewness of the z-scores (``skew_*``); and ``agreement``, the
        correlation of the two systems' scores.

    Raises
    ------
    ValueError
        If a query has no length, or a score is not finite.

    Notes
    -----
    Beyond the thesis, which leaves query-dependent weights to future work (section 2.5.2). A ranker whose top stands
    out from its other scores is likely to know the answer: the statistics are of that kind.

    Examples
    --------
    >>> table = pd.DataFrame({"task": "t", "query": "q", "document": ["a", "b"], "x": [1.0, 0.0], "y": [0.0, 1.0]})
    >>> query_statistics(table, "x", "y", pd.Series({"q": 100}))["agreement"].item()
    -1.0
    """
    keys = scores.groupby(["task", "query"], sort=True)
    codes = keys.ngroup().to_numpy()
    index = pd.MultiIndex.from_frame(keys.size().index.to_frame(index=False))
    sizes = np.bincount(codes)
    lengths_here = lengths.reindex(index.get_level_values("query"))
    if lengths_here.isna().any():
        raise ValueError("a query has no length")
    columns = {"length": np.log(lengths_here.to_numpy(dtype=np.float64)), "candidates": np.log(sizes)}
    scaled = z_scale(scores[[bm25, contextualised]].to_numpy(dtype=np.float64).T, codes)
    starts = np.r_[0, np.cumsum(sizes)[:-1]]
    for name, values in zip(("bm25", "contextualised"), scaled, strict=True):
        descending = values[np.lexsort((-values, codes))]
        tenth = descending[starts + np.minimum(sizes, 10) - 1]
        columns |= {f"top_{name}": descending[starts], f"drop_{name}": descending[starts] - tenth}
        columns[f"skew_{name}"] = np.bincount(codes, weights=values**3) / sizes
    columns["agreement"] = np.bincount(codes, weights=scaled[0] * scaled[1]) / sizes
    return pd.DataFrame(columns, index=index)


def predicted(values: pd.DataFrame, statistics: pd.DataFrame, measure: str, *, penalty: float = 10.0) -> pd.DataFrame:
    r"""A weight for every query, predicted from its statistics, never from its own judgements.

    A ridge regression predicts the measure under each weight, less its mean over the weights, from standardised query
    statistics; the weight of the highest prediction is taken. All rows of one query paper, over all tasks, are left out
    together when its weight is predicted.

    .. math:: \hat\alpha_q = \arg\max_\alpha \hat f_\alpha(x_q)

    Parameters
    ----------
    values : DataFrame
        ``task, query, alpha, measure, value``.
    statistics : DataFrame, indexed by task and query
        Features, as `query_statistics` returns them.
    measure : str
        The measure to predict, and to report.
    penalty : float
        Strength of the ridge penalty. With an infinite one the prediction is the mean of the other queries: one weight.

    Returns
    -------
    DataFrame
        ``task, query, measure, alpha, value``.

    Raises
    ------
    ValueError
        If a query has no statistics, or there are fewer than two query papers.

    Notes
    -----
    Beyond the thesis: section 2.5.2 only says that a query-dependent weight could pay.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> index = pd.MultiIndex.from_product([["t"], [f"q{i:02d}" for i in range(30)]], names=["task", "query"])
    >>> sign = pd.DataFrame({"x": rng.choice([-1.0, 1.0], 30)}, index=index)
    >>> table = pd.concat([sign.reset_index().assign(alpha=a, measure="AP", value=0.5 + b * sign["x"].to_numpy() / 4)
    ...                    for a, b in ((0.0, -1), (1.0, 1))])
    >>> bool((predicted(table, sign, "AP")["alpha"] == (sign["x"] > 0).to_numpy()).all())
    True
    """
    table = _per_query(values, measure)
    features = statistics.reindex(table.index)
    if features.isna().to_numpy().any():
        raise ValueError("a query has no statistics")
    papers = table.index.get_level_values("query").to_numpy()
    if len(set(papers)) < 2:
        raise ValueError("prediction needs at least two query papers: one is left out")
    numbers = table.to_numpy(dtype=np.float64)
    model = make_pipeline(StandardScaler(), Ridge(alpha=penalty, solver="cholesky"))
    guess = cross_val_predict(
        model,
        features.to_numpy(dtype=np.float64),
        numbers - numbers.mean(axis=1, keepdims=True),
        groups=papers,
        cv=LeaveOneGroupOut(),
    )
    best = _best(guess.round(12), "lowest")
    frame = table.index.to_frame(index=False).assign(
        measure=measure,
        alpha=table.columns.to_numpy(dtype=np.float64)[best],
        value=np.take_along_axis(numbers, best[:, np.newaxis], axis=1)[:, 0],
    )
    return frame[["task", "query", "measure", "alpha", "value"]]


def reached(predicted_mean: ArrayLike, tuned_mean: ArrayLike, oracle_mean: ArrayLike) -> Floats:
    r"""Share of the oracle's gain over one tuned weight that predicted weights reach.

    .. math:: \frac{\bar M_{predicted} - \bar M_{tuned}}{\bar M_{oracle} - \bar M_{tuned}}

    Parameters
    ----------
    predicted_mean, tuned_mean, oracle_mean : array_like
        Mean values of the measure over the same queries; they broadcast.

    Returns
    -------
    ndarray
        1 where the prediction is as good as the oracle, 0 where it is no better than one weight for all, negative where
        it is worse, NaN where the oracle gains nothing.

    Raises
    ------
    ValueError
        If the oracle lies below the tuned weight, which cannot be over the same queries.

    Examples
    --------
    >>> reached(0.52, 0.50, 0.60).round(3)
    np.float64(0.2)
    """
    low, high = np.asarray(tuned_mean, dtype=np.float64), np.asarray(oracle_mean, dtype=np.float64)
    gain = high - low
    if (gain < -1e-12).any():
        raise ValueError("the oracle lies below the tuned weight: they are not over the same queries")
    with np.errstate(invalid="ignore", divide="ignore"):
        share = (np.asarray(predicted_mean, dtype=np.float64) - low) / gain
    return np.where(gain > 0, share, np.nan)[()]
