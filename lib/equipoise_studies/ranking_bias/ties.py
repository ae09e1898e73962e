"""Effect of the order of documents with equal scores on the fairness of a ranking."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from equipoise.measures import ranking_bias as bias
from equipoise.measures.ranked_lists import by_rank, spans_by_rank
from equipoise.measures.tied_scores import orders_of_ties
from equipoise_studies.ranking_bias.data import Collection


def tied_ranks(runs: pd.DataFrame, cutoff: int) -> pd.DataFrame:
    """Count the ranks up to the cut-off that share their score, by query set and run."""
    rows = []
    for (label, run), lists in runs.groupby(["queries", "run"], sort=False):
        tie_starts, tie_ends = spans_by_rank(lists)
        tied = (tie_starts < tie_ends)[:, :cutoff]
        rows.append((label, run, len(tied), int(tied.any(axis=1).sum()), int(tied.sum())))
    columns = ["queries", "run", "number of queries", "queries with ties", "tied ranks"]
    return pd.DataFrame(rows, columns=columns)


def extremes(
    runs: pd.DataFrame,
    collections: Mapping[str, Collection],
    groups: bias.TermGroups,
    cutoff: int,
    threshold: float,
) -> pd.DataFrame:
    """Return the least and greatest mean NFaiRR and TExFAIR over all permutations of ties.

    Each query has its least, or greatest, score. The background is the whole collection. Columns
    ``least, greatest``, indexed by queries, run and measure.
    """
    rows = []
    for (label, run), lists in runs.groupby(["queries", "run"], sort=False):
        counts = collections[label].term_counts
        # the last row pads the shorter rankings
        magnitudes = np.vstack([counts.magnitudes(groups), np.zeros((1, len(groups.groups)))])
        lengths = np.append(counts.lengths, 0)
        omega = bias.neutrality(magnitudes, threshold=threshold)
        ideal = bias.ideal_fairr(omega[:-1], [cutoff])

        ranked = by_rank(lists, counts.documents)  # shape (queries, ranks)
        query, places = orders_of_ties(*spans_by_rank(lists), cutoff)
        # shape (orders, ranks)
        present = ranked.notna().to_numpy()[query[:, np.newaxis], places]
        documents = ranked.fillna(-1).to_numpy(np.int64)[query[:, np.newaxis], places]
        fairr = bias.fairr(omega[documents], [cutoff], present=present)
        texfair = bias.texfair(magnitudes[documents], lengths[documents], [cutoff], present=present)
        scores = pd.DataFrame(
            {"NFaiRR": bias.nfairr(fairr, ideal, undefined=0.0)[:, 0], "TExFAIR": texfair[:, 0]}
        )
        by_list = scores.groupby(query)
        means = pd.DataFrame({"least": by_list.min().mean(), "greatest": by_list.max().mean()})
        rows.append(means.rename_axis("measure").reset_index().assign(queries=label, run=run))
    return pd.concat(rows).set_index(["queries", "run", "measure"])
