"""Fusion of two rankers by interpolation of z-scaled scores, and what a query's scores look like.

The kernels work on all queries at once: scores lie flat, one entry a query-document pair, beside an
array of query codes. alpha = 0 is the contextualised ranker alone and alpha = 1 is BM25 alone,
exactly.

Notes
-----
thesis chapter 2, Eq. 2.5 and section 2.3.3.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from equipoise.arrays import Floats, Integers, starts
from equipoise.statistics import finite

ALPHAS: tuple[float, ...] = tuple(step / 10 for step in range(11))
"""The weights of the thesis's sweep: 0 to 1 by 0.1, each the nearest float to its decimal."""


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
    first_rows = starts(codes[order])
    sizes = np.diff(first_rows, append=codes.size)
    values = values[..., order]

    # Equal scores are recognised by comparison: their rounded mean may differ from them.
    largest = _by_query(np.maximum, values, first_rows, sizes)
    equal = largest == _by_query(np.minimum, values, first_rows, sizes)
    size = np.repeat(sizes, sizes)
    centred = values - _by_query(np.add, values, first_rows, sizes) / size
    # To a largest distance of 1 first, so that no square of a tiny or huge score leaves the range
    # of floats.
    reach = _by_query(np.maximum, np.abs(centred), first_rows, sizes)
    centred = centred / np.where(equal, 1.0, reach)
    deviation = np.sqrt(_by_query(np.add, centred**2, first_rows, sizes) / size)

    scaled = np.empty_like(values)
    scaled[..., order] = np.where(equal, 0.0, centred / np.where(equal, 1.0, deviation))
    return scaled


def _by_query(reduce: np.ufunc, values: Floats, first_rows: Integers, sizes: Integers) -> Floats:
    """One number a query, made of its consecutive rows and given to each of them."""
    numbers = reduce.reduceat(values, first_rows, axis=-1)
    return np.repeat(numbers, sizes, axis=-1)


def interpolate(bm25: ArrayLike, contextualised: ArrayLike, alpha: ArrayLike) -> Floats:
    r"""Weighted sum of two scores.

    .. math:: s(q, d) = \alpha \, s_{BM25}(q, d) + (1 - \alpha) \, s_{contextualised}(q, d)

    ``bm25``, ``contextualised`` (shaped (..., rows)): scores, z-scaled beforehand in the thesis.
    ``alpha`` (shaped (...)): weight of BM25, between 0 and 1: with 0 the result is exactly
    ``contextualised``, with 1 exactly ``bm25``.

    thesis Eq. 2.5.
    """
    lexical = finite(bm25, "scores of BM25")
    learned = finite(contextualised, "contextualised scores")
    weight = np.asarray(alpha, dtype=np.float64)[..., np.newaxis]
    if not ((weight >= 0) & (weight <= 1)).all():
        raise ValueError(f"a weight must lie between 0 and 1, found {np.asarray(alpha).tolist()}")
    mixed: Floats = weight * lexical + (1.0 - weight) * learned
    return mixed


def query_statistics(
    scores: pd.DataFrame, bm25: str, contextualised: str, lengths: pd.Series
) -> pd.DataFrame:
    """What is known of a query without judgements: its length, the shape of both rankers' scores.

    ``scores``: ``task, query, document`` and the two systems' columns, named by ``bm25`` and
    ``contextualised``. ``lengths``: number of tokens by query. Returns, by task and query,
    ``length`` (log of tokens); ``candidates`` (log); for both systems the largest z-score
    (``top_*``), how far the tenth best lies below it (``drop_*``), the skewness of the z-scores
    (``skew_*``); and ``agreement``, the correlation of the two systems' scores.

    Beyond the thesis, which leaves query-dependent weights to future work (section 2.5.2). A ranker
    whose top stands out from its other scores is likely to know the answer: the statistics are of
    that kind.
    """
    query_codes = scores.groupby(["task", "query"]).ngroup()
    scaled = z_scale(scores[[bm25, contextualised]].to_numpy().T, query_codes)
    table = scores[["task", "query"]].assign(bm25=scaled[0], contextualised=scaled[1])
    # The mean product of two z-scores is their correlation.
    table["agreement"] = scaled[0] * scaled[1]
    queries = table.groupby(["task", "query"])
    features = pd.DataFrame({"candidates": np.log(queries.size())})
    features.insert(0, "length", np.log(lengths.reindex(features.index, level="query")))
    for ranker in ("bm25", "contextualised"):
        ten_best = queries[ranker].nlargest(10).groupby(["task", "query"])
        features[f"top_{ranker}"] = ten_best.max()
        features[f"drop_{ranker}"] = ten_best.max() - ten_best.min()
        features[f"skew_{ranker}"] = queries[ranker].agg(lambda z: (z**3).mean())
    features["agreement"] = queries["agreement"].mean()
    return features
