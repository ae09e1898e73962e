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

from equipoise.arrays import Floats

ALPHAS: tuple[float, ...] = tuple(step / 10 for step in range(11))
"""The weights of the thesis's sweep: 0 to 1 in steps of 0.1, each the nearest float to its decimal."""


def z_scale(scores: ArrayLike, groups: ArrayLike, *, ddof: int = 0) -> Floats:
    r"""Scores standardised within each group (query): mean 0, standard deviation 1.

    .. math:: z(q, d) = \frac{s(q, d) - \bar s_q}{\sigma_q}

    ``scores`` (shaped (..., rows)): one score a query-document pair. ``groups`` (shaped (rows,)): Code of the query
    of each row, from 0; rows may come in any order. ``ddof``: 0 divides by the number of documents (default), 1 by
    one less; a ranking after interpolation is the same. Returns ndarray, shaped (..., rows): In standard
    deviations. A query whose scores are all equal gets zeros: it then says nothing about its documents.

    thesis section 2.3.3 ("subtracting the mean and dividing by the standard deviation"); per query.
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

    ``bm25``, ``contextualised`` (shaped (..., rows)): Scores, z-scaled beforehand in the thesis; they broadcast.
    ``alpha`` (shaped (...)): Weight of BM25, between 0 and 1. Returns ndarray, shaped (..., rows): With ``alpha`` 0
    exactly `contextualised`, with 1 exactly `bm25`.

    thesis Eq. 2.5.
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

    ``scores``: ``query, document`` and one column of scores a system, a row a pair; a column ``task`` is part of
    the query. ``bm25``, ``contextualised``: names of the two systems' columns. ``alphas``: Weights of BM25. Returns
    The columns ``task`` (where given), ``query, document, alpha, score``; len(alphas) rows a pair.

    thesis section 2.3.3.
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

    ``values``: ``task, query, alpha, measure, value``. ``measure``: the measure by which a weight is best, such as
    "AP". ``ties``: which of several equally good weights is taken. The thesis calls a query with alpha 0 one that
    interpolation does not improve, so the lowest; the counts and the mean depend on this. Returns: ``task, query,
    measure, alpha, value``.

    thesis section 2.3.3, "oracle interpolation".
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

    ``best``: ``task, query, measure, alpha, value``, as `oracle` returns it. Returns ``task, measure`` and the
    columns of `STATISTICS`: mean effectiveness, the mean weight, the numbers of queries whose weight is 0 and 1,
    and the distance between the weights' quartiles (linear between order statistics).

    thesis Table 2.4.
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

    ``at_0``, ``at_1``: Numbers of queries whose best weight is 0, and 1; they broadcast. ``queries``: number of all
    queries, N. The step s of the sweep is 0.1. Returns: The bounds.

    For thesis Table 2.4, whose rows must agree with each other.
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

    ``values``: ``task, query, alpha, measure, value``. ``splits``: ``task, fold, part, query`` with the parts "dev"
    and "test". ``measure``: the measure to tune for, and to report. ``ties``: which of several equally good weights
    is taken. Returns: ``task, query, fold, measure, alpha, value``, one row a test query.

    thesis section 2.3.3: alpha is optimised on the validation set.
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

    ``scores``: ``task, query, document`` and the two systems' columns. ``bm25``, ``contextualised``: names of those
    columns. ``lengths``: number of tokens by query. Returns: ``length`` (log of tokens); ``candidates`` (log); for
    both systems the largest z-score (``top_*``), how far the tenth best lies below it (``drop_*``), the skewness of
    the z-scores (``skew_*``); and ``agreement``, the correlation of the two systems' scores.

    Beyond the thesis, which leaves query-dependent weights to future work (section 2.5.2). A ranker whose top stands
    out from its other scores is likely to know the answer: the statistics are of that kind.
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

    ``values``: ``task, query, alpha, measure, value``. ``statistics``: Features, as `query_statistics` returns
    them. ``measure``: the measure to predict, and to report. ``penalty``: Strength of the ridge penalty. With an
    infinite one the prediction is the mean of the other queries: one weight. Returns: ``task, query, measure,
    alpha, value``.

    Beyond the thesis: section 2.5.2 only says that a query-dependent weight could pay.
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

    ``predicted_mean``, ``tuned_mean``, ``oracle_mean``: Mean values of the measure over the same queries; they
    broadcast. Returns: 1 where the prediction is as good as the oracle, 0 where it is no better than one weight for
    all, negative where it is worse, NaN where the oracle gains nothing.
    """
    low, high = np.asarray(tuned_mean, dtype=np.float64), np.asarray(oracle_mean, dtype=np.float64)
    gain = high - low
    if (gain < -1e-12).any():
        raise ValueError("the oracle lies below the tuned weight: they are not over the same queries")
    with np.errstate(invalid="ignore", divide="ignore"):
        share = (np.asarray(predicted_mean, dtype=np.float64) - low) / gain
    return np.where(gain > 0, share, np.nan)[()]
