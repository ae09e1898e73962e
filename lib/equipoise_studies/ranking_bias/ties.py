"""How far the fairness of ranked lists depends on the order of documents that a ranker scores alike."""

from __future__ import annotations

import numpy as np
import pandas as pd

from equipoise.arrays import Integers
from equipoise.measures import ranking_bias as bias
from equipoise.measures.ranked_lists import by_rank, spans_by_rank
from equipoise.measures.tied_scores import orders_of_ties
from equipoise_studies.ranking_bias.tables import Counts


def tied_ranks(runs: pd.DataFrame, cutoff: int) -> pd.DataFrame:
    """Ranks up to the cut-off that share their score with another, and the queries with any, by query set and run."""
    rows = []
    for (label, run), part in runs.groupby(["queries", "run"], sort=False):
        first, last = spans_by_rank(part)
        tied = (first < last)[:, :cutoff]
        rows.append((label, run, len(tied), int(tied.any(axis=1).sum()), int(tied.sum())))
    return pd.DataFrame(
        rows, columns=["queries", "run", "number of queries", "queries with ties", "tied ranks"]
    )


def _ranges(
    lists: pd.DataFrame,
    counts: bias.TermCounts,
    groups: bias.TermGroups,
    cutoff: int,
    threshold: float,
) -> pd.DataFrame:
    magnitudes = np.vstack([counts.magnitudes(groups), np.zeros((1, len(groups.groups)))])
    lengths, omega = np.append(counts.lengths, 0), bias.neutrality(magnitudes, threshold=threshold)
    ideal = bias.ideal_fairr(omega[:-1], [cutoff])
    laid, (first, last) = by_rank(lists, counts.documents), spans_by_rank(lists)
    listed, present = laid.fillna(-1).to_numpy(dtype=np.int64), laid.notna().to_numpy()

    def scores(own: Integers, places: Integers) -> pd.DataFrame:
        at = (own[:, np.newaxis], places)
        fair = bias.nfairr(
            bias.fairr(omega[listed[at]], [cutoff], present=present[at]), ideal, undefined=0.0
        )
        balanced = bias.texfair(
            magnitudes[listed[at]], lengths[listed[at]], [cutoff], present=present[at]
        )
        return pd.DataFrame({"NFaiRR": fair[:, 0], "TExFAIR": balanced[:, 0]})

    by_id = np.append(counts.documents.argsort().argsort(), -1)[listed]
    ways = {
        "ids ascending": np.lexsort((by_id, first)),
        "ids descending": np.lexsort((-by_id, first)),
    }
    columns = {name: scores(np.arange(len(listed)), places).mean() for name, places in ways.items()}
    own, places = orders_of_ties(first, last, cutoff)
    each = scores(own, places).groupby(own)
    columns |= {
        "least": each.min().mean(),
        "mean": each.mean().mean(),
        "greatest": each.max().mean(),
    }
    return pd.DataFrame(columns)


def ranges_over_ties(
    runs: pd.DataFrame,
    counts: Counts,
    groups: bias.TermGroups,
    cutoff: int,
    threshold: float,
) -> pd.DataFrame:
    """Mean NFaiRR and TExFAIR of each ranker under the orders of its ties, by query set, measure and run.

    Ties broken by document id, ``ids ascending`` and ``ids descending``; and of the scores that
    each query has over all orders of its ties, the ``least``, the ``mean`` and the ``greatest``.
    The background is the whole collection.
    """
    parts = {
        key: _ranges(part, counts[key[0]], groups, cutoff, threshold)
        for key, part in runs.groupby(["queries", "run"], sort=False)
    }
    return pd.concat(parts, names=["queries", "run", "measure"]).reset_index()


def moved(ranges: pd.DataFrame) -> pd.DataFrame:
    """The rows of `ranges_over_ties` that depend on the order of ties at all; the first row where there is none."""
    depends = ranges["greatest"] - ranges["least"] > 5e-5
    return ranges[depends if depends.any() else ranges.index == 0].reset_index(drop=True)
