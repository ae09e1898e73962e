"""Evidence for the claims of chapter 4: intervals over queries, and published cells.

Scores of one measure come as a table with one row per query and one column per ranker (`by_query`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd
from scipy import stats

from equipoise.arrays import Floats, Integers
from equipoise.statistics import compare_pairs
from equipoise.statistics.intervals import resampled_ratios
from equipoise_compendium.evidence import bootstrapped, from_samples, minus_chance
from equipoise_compendium.printed import printed_table
from equipoise_compendium.protocol import Evidence
from equipoise_studies.ranking_bias.data import Study

RESAMPLES = 1999
PERMUTATIONS = 4999  # a p-value of a few in ten thousand remains after Holm's correction
"""Random permutations of the rankers of each query."""


def by_query(scores: pd.DataFrame, label: str, measure: str) -> pd.DataFrame:
    """Select the scores of one measure on a query set, shape (queries, rankers)."""
    rows = scores[(scores["queries"] == label) & (scores["measure"] == measure)]
    return rows.pivot_table(index="topic", columns="run", values="value")


def differences(
    scores: pd.DataFrame, labels: Sequence[str], measures: Sequence[str], baseline: str
) -> pd.DataFrame:
    """Test each ranker against the baseline by paired t-tests with Bonferroni correction.

    Returns columns ``queries, measure, run`` and the columns of `compare_pairs`.
    """
    comparisons = []
    for label in labels:
        for measure in measures:
            compared = scores[(scores["queries"] == label) & (scores["measure"] == measure)]
            pairs = compare_pairs(compared, baseline=baseline, test="t", correction="bonferroni")
            comparisons.append(pairs.assign(queries=label, measure=measure))
    return pd.concat(comparisons, ignore_index=True).rename(columns={"a": "run"})


def difference_evidence(comparisons: pd.DataFrame) -> dict[str, dict[str, Evidence]]:
    """Return evidence for each row of `differences`, by query set, ranker and measure.

    ``published``: an optional column of published differences, NaN if there is none.
    """
    parts: dict[str, dict[str, Evidence]] = {}
    for row in comparisons.to_dict("records"):
        published = row.get("published")
        evidence = Evidence(
            row["difference"],
            row["low"],
            row["high"],
            row["units"],
            None if pd.isna(published) else published,
        )
        parts.setdefault(row["queries"], {})[f"{row['run']}, {row['measure']}"] = evidence
    return parts


def correlation_evidence(
    first: pd.DataFrame, second: pd.DataFrame, published: Mapping[str, float | None]
) -> dict[str, Evidence]:
    """Correlate two measures over queries, by ranker; ``published`` is also by ranker."""
    parts = {}
    for run in first.columns:
        pairs = np.stack([first[run], second[run]])  # shape (measures, queries)
        if (np.ptp(pairs, axis=1) == 0).any():
            parts[run] = Evidence(reason="the ranker has one score for every query")
            continue
        parts[run] = bootstrapped(partial(pearson, pairs), len(first), published.get(run))
    return parts


def pearson(pairs: Floats, drawn: Integers) -> float:
    """Compute Pearson's r of two measures, shaped (2, queries), over the drawn queries.

    NaN if a measure is constant.
    """
    scores = pairs[:, drawn]
    first, second = scores - scores.mean(axis=1, keepdims=True)
    squares = (first**2).sum() * (second**2).sum()
    with np.errstate(invalid="ignore"):
        return float((first * second).sum() / np.sqrt(squares))


def against_permuted_rankers(
    first: pd.DataFrame, second: pd.DataFrame, statistic: Callable[[Floats], float]
) -> Evidence:
    """Subtract from a statistic its expectation if the rankers of each query are permuted.

    Both measures of a query are permuted together. ``statistic`` takes means, shape (rankers, 2).
    """
    scores = np.stack([first, second], axis=2)  # shape (queries, rankers, measures)
    rng = np.random.default_rng(0)
    by_chance = np.empty(PERMUTATIONS)
    for number in range(PERMUTATIONS):
        order = rng.random(scores.shape[:2]).argsort(axis=1)
        permuted = np.take_along_axis(scores, order[:, :, np.newaxis], axis=1)
        by_chance[number] = statistic(permuted.mean(axis=0))
    return minus_chance(statistic(scores.mean(axis=0)), by_chance, n=len(scores))


def smaller_lead(means: Floats) -> float:
    """Return the smaller of two leads: of the best ranker by each measure over the other one."""
    first, second = means.argmax(axis=0)
    return float(min(means[first, 0] - means[second, 0], means[second, 1] - means[first, 1]))


def clearest_reversal(means: Floats) -> float:
    """Measure how clearly two rankers have opposite orders by two measures.

    The smaller difference of a pair counts, and the largest over all pairs is returned. It is
    negative if no two orders are opposite.
    """
    first, second = np.triu_indices(len(means), 1)
    gaps = means[first] - means[second]  # shape (pairs, 2)
    smaller = np.abs(gaps).min(axis=1)
    return float(np.where(gaps.prod(axis=1) < 0, smaller, -smaller).max())


def published_leads(cells: pd.DataFrame) -> dict[str, Evidence]:
    """Return `smaller_lead` of the published values, by query set; ``cells``: Table 4.1."""
    values = cells[["NFaiRR", "TExFAIR"]].replace(r"[†‡]", "", regex=True).astype(float)
    parts = {}
    for label, of_set in values.groupby(level="queries"):
        parts[str(label)] = Evidence(smaller_lead(of_set.to_numpy()), reason="published values")
    return parts


def published_reversals(cells: pd.DataFrame) -> dict[str, Evidence]:
    """Return `clearest_reversal` of the published values of neural rankers, by query set.

    ``cells``: Table 4.2.
    """
    parts = {}
    for label, of_set in cells.drop(index="BM25", level="model").groupby(level="queries"):
        for measure in ("TExFAIR", "NFaiRR"):
            reversal = clearest_reversal(of_set[[measure, "CRBO"]].to_numpy())
            parts[f"{label}, {measure}"] = Evidence(reversal, reason="published values")
    return parts


def published_correlations(r: pd.Series, sizes: pd.Series) -> dict[str, Evidence]:
    """Return published correlations with Fisher's interval; ``sizes``: queries of each set."""
    parts = {}
    for (label, ranker), value in r.items():
        reach = stats.norm.ppf(0.975) / np.sqrt(sizes[label] - 3)
        low, high = np.tanh(np.arctanh(value) + np.array([-reach, reach]))
        parts[f"{label}, {ranker}"] = Evidence(value, low, high, n=int(sizes[label]))
    return parts


def excess_change(
    fairness: pd.DataFrame, label: str, measure: str, cutoffs: Sequence[int]
) -> Evidence:
    """Compare changes over the cut-offs: TExFAIR without RBDF minus another measure.

    A change is the largest minus the smallest mean over queries, averaged over rankers.
    """
    names = ("TExFAIR(proportional=False)", measure)
    fairness = fairness[fairness["queries"] == label]
    scores = np.array(
        [[by_query(fairness, label, f"{name}@{k}") for k in cutoffs] for name in names]
    )
    scores = np.moveaxis(scores, 2, 0)  # shape (queries, measures, cut-offs, rankers)
    n_queries = len(scores)
    columns = scores.reshape(n_queries, -1)
    sampled = resampled_ratios(columns, np.ones((n_queries, 1)), 0, RESAMPLES)
    means = np.vstack([columns.mean(axis=0), sampled]).reshape(-1, *scores.shape[1:])
    changes = np.ptp(means, axis=2).mean(axis=2)  # shape (1 + samples, measures)
    excess, *samples = changes[:, 0] - changes[:, 1]
    return from_samples(float(excess), samples, n_queries)


# --- published cells ------------------------------------------------------------------------------


def published(label: str, measure: str) -> pd.Series:
    """Read published numbers by ranker: CRBO of Table 4.2, other measures of Table 4.1."""
    name, column = ("4.2", "model") if measure == "CRBO" else ("4.1", "method")
    table = printed_table(f"thesis/table-{name}").set_index(column)
    cells = table.loc[table["queries"] == label, measure]
    # some cells have a mark of significance
    return cells.str.extract(r"([0-9.]+)")[0].astype(float)


def published_gaps(label: str, measure: str) -> pd.Series:
    """Return the published numbers of the other rankers minus the number of BM25."""
    numbers = published(label, measure)
    return numbers.drop("BM25") - numbers["BM25"]


def published_ranges(labels: Sequence[str], study: Study) -> pd.DataFrame:
    """Return the range of `published_gaps`: columns queries, measure, low, high."""
    rows = []
    for label in labels:
        for measure in ("NFaiRR", "TExFAIR"):
            gaps = published_gaps(study.printed_set(label), measure)
            rows.append((label, measure, gaps.min(), gaps.max()))
    return pd.DataFrame(rows, columns=["queries", "measure", "low", "high"])


def with_published(table: pd.DataFrame, measures: Sequence[str], study: Study) -> pd.DataFrame:
    """Add a column of published values per measure, for rankers that the thesis also has.

    ``table``: indexed by query set and run.
    """
    names = study.in_thesis()
    wide = table.copy()
    for measure in measures:
        cells = {label: published(study.printed_set(label), measure) for label in study.query_sets}
        wide[f"{measure}, published"] = [
            cells[label].get(names.get(run)) for label, run in table.index
        ]
    return wide
