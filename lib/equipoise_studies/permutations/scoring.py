"""Many alternative rankings of the same queries, scored by ir_measures."""

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
    parsed = parsed_measure(measure)
    if ranked.shape[1] < min(parsed.params.get("cutoff", 0), len(documents)):
        raise ValueError(f"{measure} looks further than the {ranked.shape[1]} ranks that are kept")
    query_ids, query_of_ranking = np.unique(np.asarray(queries, dtype=str), return_inverse=True)
    judged = qrels[qrels["query"].isin(query_ids)]
    unjudged = sorted(set(query_ids.tolist()) - set(judged["query"]))
    if unjudged:
        raise ValueError(
            f"no judgement for {', '.join(unjudged)}: leave these queries out, or judge them"
        )

    evaluator = ir_measures.evaluator([parsed], _by_query(judged))
    with_query = np.column_stack([query_of_ranking, ranked])
    distinct, place_of_ranking = np.unique(with_query, axis=0, return_inverse=True)
    distinct_queries = query_ids[distinct[:, 0]]
    distinct_documents = np.array(documents, dtype=object)[distinct[:, 1:]]

    # A run holds one ranking of each query: the n-th run holds the n-th different ranking of every
    # query that has so many.
    run_of_ranking = ranks(starts(distinct[:, 0]), len(distinct))
    falling_scores = np.arange(ranked.shape[1], 0, -1, dtype=np.float64).tolist()
    values = np.empty(len(distinct))
    for number in range(run_of_ranking.max(initial=-1) + 1):
        of_run = np.flatnonzero(run_of_ranking == number)
        run = {}
        for query, best in zip(distinct_queries[of_run], distinct_documents[of_run], strict=True):
            run[str(query)] = dict(zip(best, falling_scores, strict=True))
        value_of_query = {result.query_id: result.value for result in evaluator.iter_calc(run)}
        values[of_run] = [value_of_query[query] for query in distinct_queries[of_run]]
    return values[place_of_ranking.ravel()]


def _by_query(judged: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Grade of each judged document by query: the form in which ir_measures takes them fastest."""
    columns = [judged[name].tolist() for name in ("query", "document", "grade")]
    grade_of_document: dict[str, dict[str, int]] = {}
    for query, document, grade in zip(*columns, strict=True):
        grade_of_document.setdefault(query, {})[document] = grade
    return grade_of_document


def grades(
    queries: Sequence[str], documents: Sequence[str], qrels: pd.DataFrame
) -> NDArray[np.intp]:
    """Grade of each document for each query, shaped (queries, documents); -1 where not judged."""
    judged = qrels[qrels["query"].isin(queries) & qrels["document"].isin(documents)]
    wide = judged.pivot_table(
        index="query", columns="document", values="grade", aggfunc="first", sort=False
    )
    table = wide.reindex(index=list(queries), columns=list(documents)).fillna(-1)
    return table.to_numpy(dtype=np.intp)


def optimistic(
    queries: Sequence[str],
    rankings: ArrayLike,
    documents: Sequence[str],
    qrels: pd.DataFrame,
    measure: str = "nDCG@3",
) -> Floats:
    r"""Upper bound of nDCG of each ranking, whatever its unjudged documents are worth.

    .. math:: \min\Bigl(1, \frac{\sum_{r \le k} g_r / \log_2 (r + 1)}{IDCG}\Bigr)

    with the highest grade of the judgements for every unjudged document; the ideal ranking, made
    from the judgements, can only gain by further ones, which lowers the true value. Takes what
    `score_alternatives` takes.
    """
    ranked = np.asarray(rankings, dtype=np.intp)
    depth = ranked.shape[1]
    if measure != f"nDCG@{depth}":
        raise ValueError(
            f"the bound is of nDCG@{depth} for rankings of this depth, not of {measure}"
        )
    query_ids, query_of_ranking = np.unique(np.asarray(queries, dtype=str), return_inverse=True)
    gains = grades(query_ids.tolist(), documents, qrels)[query_of_ranking[:, None], ranked]
    gains[gains < 0] = qrels["grade"].max()
    discounts = 1 / np.log2(np.arange(2, depth + 2))

    ideal_of_query = {}
    judged_queries = qrels[qrels["query"].isin(query_ids)]
    for query, judged in judged_queries.groupby("query")["grade"]:
        best = np.sort(judged.to_numpy())[::-1][:depth]
        ideal_of_query[query] = float(best @ discounts[: len(best)])
    ideal = np.array([ideal_of_query[query] for query in query_ids])[query_of_ranking]
    scores = np.divide(gains @ discounts, ideal, out=np.zeros(len(ideal)), where=ideal > 0)
    return np.minimum(1.0, scores)
