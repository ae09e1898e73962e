"""How far the fairness of ranked lists depends on the order of documents that a ranker ties."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from equipoise.arrays import Integers
from equipoise.measures import ranking_bias as bias
from equipoise.measures.ranked_lists import by_rank, spans_by_rank
from equipoise.measures.tied_scores import orders_of_ties
from equipoise_studies.ranking_bias.data import CountedCollection

_KEYS = ["queries", "run"]


def tied_ranks(runs: pd.DataFrame, cutoff: int) -> pd.DataFrame:
    """Ranks up to the cut-off that share their score with another, by query set and run."""
    rows = []
    for (label, run), lists in runs.groupby(_KEYS, sort=False):
        tie_starts, tie_ends = spans_by_rank(lists)
        tied = (tie_starts < tie_ends)[:, :cutoff]
        rows.append((label, run, len(tied), int(tied.any(axis=1).sum()), int(tied.sum())))
    columns = [*_KEYS, "number of queries", "queries with ties", "tied ranks"]
    return pd.DataFrame(rows, columns=columns)


def extremes_over_orders(
    runs: pd.DataFrame,
    collections: Mapping[str, CountedCollection],
    groups: bias.TermGroups,
    cutoff: int,
    threshold: float,
) -> pd.DataFrame:
    """The least and the greatest mean NFaiRR and TExFAIR that the orders of ties allow.

    Of the scores that each query has over all orders of its ties, the least, and the greatest, each
    averaged over the queries. The background is the whole collection. Indexed by query set, run and
    measure; columns ``least, greatest``.
    """
    rows = []
    for (label, run), lists in runs.groupby(_KEYS, sort=False):
        term_counts = collections[label].term_counts
        scores = _scores_of_all_orders(lists, term_counts, groups, cutoff, threshold)
        by_query = scores.groupby("query")
        lowest_mean = by_query.min().mean()
        highest_mean = by_query.max().mean()
        for measure in ("NFaiRR", "TExFAIR"):
            rows.append((label, run, measure, lowest_mean[measure], highest_mean[measure]))
    table = pd.DataFrame(rows, columns=[*_KEYS, "measure", "least", "greatest"])
    return table.set_index([*_KEYS, "measure"])


def _scores_of_all_orders(
    lists: pd.DataFrame,
    term_counts: bias.TermCounts,
    groups: bias.TermGroups,
    cutoff: int,
    threshold: float,
) -> pd.DataFrame:
    """NFaiRR and TExFAIR of each order of the ties of each list, which column ``query`` numbers."""
    # the last row stands for the padding of lists that have ended, which by_rank leaves empty
    padding = np.zeros((1, len(groups.groups)))
    magnitudes = np.vstack([term_counts.magnitudes(groups), padding])
    lengths = np.append(term_counts.lengths, 0)
    omega = bias.neutrality(magnitudes, threshold=threshold)
    ideal = bias.ideal_fairr(omega[:-1], [cutoff])

    documents_by_rank = by_rank(lists, term_counts.documents)  # (queries, ranks)
    present = documents_by_rank.notna().to_numpy()
    documents = documents_by_rank.fillna(-1).to_numpy(dtype=np.int64)
    query, places = orders_of_ties(*spans_by_rank(lists), cutoff)
    in_order = _taken(documents, query, places)  # (orders, ranks)
    shown = _taken(present, query, places)

    fairr = bias.fairr(omega[in_order], [cutoff], present=shown)
    texfair = bias.texfair(magnitudes[in_order], lengths[in_order], [cutoff], present=shown)
    return pd.DataFrame(
        {
            "query": query,
            "NFaiRR": bias.nfairr(fairr, ideal, undefined=0.0)[:, 0],
            "TExFAIR": texfair[:, 0],
        }
    )


def _taken(ranked: Integers, query: Integers, places: Integers) -> Integers:
    """What stands at the places, shaped (orders, ranks), in the lists of the queries."""
    return ranked[query[:, np.newaxis], places]
