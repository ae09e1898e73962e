"""Rankings scored by ir_measures: many alternative ones of the same queries, and those of public runs."""

from __future__ import annotations

from collections.abc import Sequence

import ir_measures
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from equipoise.arrays import Floats, ranks, starts
from equipoise.measures.effectiveness import parsed_measure


def score_alternatives(
    queries: Sequence[str],
    rankings: ArrayLike,
    documents: Sequence[str],
    qrels: pd.DataFrame,
    measure: str = "nDCG@3",
) -> Floats:
    """Score of each ranking; a query may have any number of them.

    ``rankings`` (shaped (rankings, k)): places in `documents`, best first; k below the cut-off of
    the measure, where there are more documents, is refused. ``qrels`` (columns query, document,
    grade): all judgements, of documents that cannot be retrieved too: the ideal ranking is made
    from them. Every different ranking of a query is scored once.

    permutations, section 4 (nDCG with cut-off 3: gain = grade, discount log2(rank + 1)).
    """
    ranked = np.asarray(rankings, dtype=np.intp)
    if ranked.ndim != 2 or len(ranked) != len(queries):
        raise ValueError(
            f"{len(queries)} rankings are wanted, one a query, found shape {ranked.shape}"
        )
    scored = parsed_measure(measure)
    if ranked.shape[1] < min(scored.params.get("cutoff", 0), len(documents)):
        raise ValueError(f"{measure} looks further than the {ranked.shape[1]} ranks that are kept")
    names, codes = np.unique(np.asarray(queries, dtype=str), return_inverse=True)
    fields = {"query": "query_id", "document": "doc_id", "grade": "relevance"}
    judged = qrels[qrels["query"].isin(names)].rename(columns=fields)
    evaluator = ir_measures.evaluator([scored], judged)
    if unjudged := sorted({*names.tolist()} - {*judged["query_id"]}):
        raise ValueError(
            f"no judgement for {', '.join(unjudged)}: leave these queries out, or judge them"
        )
    different, which = np.unique(np.column_stack([codes, ranked]), axis=0, return_inverse=True)
    # one run holds one ranking of each query: the n-th run holds the n-th different ranking of
    # every query
    run = ranks(starts(different[:, 0]), len(different))
    values = np.empty(len(different))
    ids = np.array(documents, dtype=object)
    falling = np.arange(ranked.shape[1], 0, -1, dtype=np.float64).tolist()
    for number in range(run.max(initial=-1) + 1):
        rows = np.flatnonzero(run == number)
        listed = zip(names[different[rows, 0]], ids[different[rows, 1:]], strict=True)
        rankings_now = {str(name): dict(zip(best, falling, strict=True)) for name, best in listed}
        found = {result.query_id: result.value for result in evaluator.iter_calc(rankings_now)}
        values[rows] = [found[name] for name in names[different[rows, 0]]]
    return values[which.ravel()]


def grades(
    queries: Sequence[str], documents: Sequence[str], qrels: pd.DataFrame
) -> NDArray[np.intp]:
    """Grade of each document for each query, shaped (queries, documents); -1 where it is not judged."""
    judged = qrels.pivot_table(
        index="query", columns="document", values="grade", aggfunc="first", sort=False
    )
    table = judged.reindex(index=list(queries), columns=list(documents)).fillna(-1)
    return table.to_numpy(dtype=np.intp)


def optimistic(
    queries: Sequence[str],
    rankings: ArrayLike,
    documents: Sequence[str],
    qrels: pd.DataFrame,
    measure: str = "nDCG@3",
) -> Floats:
    r"""Upper bound of nDCG of each ranking, whatever the unjudged documents that it holds are worth.

    .. math:: \min\Bigl(1, \frac{\sum_{r \le k} g_r / \log_2 (r + 1)}{IDCG}\Bigr)

    with the highest grade of the judgements for every unjudged document; the ideal ranking, made
    from the judgements, can only gain by further ones, which lowers the true value. Takes what
    `score_alternatives` takes.
    """
    ranked = np.asarray(rankings, dtype=np.intp)
    if (wanted := f"nDCG@{ranked.shape[1]}") != measure:
        raise ValueError(f"the bound is of {wanted} for rankings of this depth, not of {measure}")
    names, codes = np.unique(np.asarray(queries, dtype=str), return_inverse=True)
    gains = grades(names.tolist(), documents, qrels)[codes[:, None], ranked]
    gains[gains < 0] = qrels["grade"].max()
    discounts = 1 / np.log2(np.arange(2, ranked.shape[1] + 2))
    best = (
        qrels.sort_values("grade", ascending=False)
        .groupby("query")["grade"]
        .agg(lambda one: float(one.to_numpy()[: len(discounts)] @ discounts[: len(one)]))
    )
    ideal = best.reindex(names).to_numpy()[codes]
    return np.minimum(
        1.0, np.divide(gains @ discounts, ideal, out=np.zeros(len(ideal)), where=ideal > 0)
    )
