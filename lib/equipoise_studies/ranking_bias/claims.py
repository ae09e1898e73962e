"""Evidence for the claims of chapter 4: intervals over queries, and published cells.

Scores of one measure come as a table with one row per query and one column per ranker (`by_query`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd

from equipoise.arrays import Floats, Integers
from equipoise.statistics import compare_pairs, resampled
from equipoise_compendium.claims import Evidence, minus_chance
from equipoise_compendium.printed import printed_table
from equipoise_studies.ranking_bias.data import Study

PERMUTATIONS = 999
"""Random permutations of the rankers of each query."""


def by_query(scores: pd.DataFrame, label: str, measure: str) -> pd.DataFrame:
    """Scores of one measure on a query set, shape (queries, rankers)."""
    rows = scores[(scores["queries"] == label) & (scores["measure"] == measure)]
    return rows.pivot_table(index="topic", columns="run", values="value")


def bootstrapped(
    statistic: Callable[[Integers], float], queries: int, published: float | None = None
) -> Evidence:
    """Evidence with a 95% interval over resampled queries.

    ``statistic`` takes the positions of the resampled queries.
    """
    estimate, low, high = resampled(statistic, queries, np.random.default_rng(0))
    return Evidence(estimate, low, high, queries, published)


def mean_evidence(values: pd.Series, published: float | None = None) -> Evidence:
    """Evidence of a mean over queries."""
    numbers = values.to_numpy()
    return bootstrapped(lambda places: float(numbers[places].mean()), len(values), published)


def differences(
    scores: pd.DataFrame, labels: Sequence[str], measures: Sequence[str], baseline: str
) -> pd.DataFrame:
    """Paired t-tests of each ranker against the baseline, with Bonferroni's correction.

    Columns ``queries, measure, run`` and those of `compare_pairs`.
    """
    comparisons = []
    for label in labels:
        for measure in measures:
            compared = scores[(scores["queries"] == label) & (scores["measure"] == measure)]
            pairs = compare_pairs(compared, baseline=baseline, test="t", correction="bonferroni")
            comparisons.append(pairs.assign(queries=label, measure=measure))
    return pd.concat(comparisons, ignore_index=True).rename(columns={"a": "run"})


def difference_evidence(comparisons: pd.DataFrame) -> dict[str, dict[str, Evidence]]:
    """Evidence of each row of `differences`, by query set and by ranker and measure.

    A column ``published`` has the published differences, NaN where there is none.
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
    """Pearson's r of two measures over queries, by ranker; ``published`` also by ranker."""
    parts = {}
    for run in first.columns:
        pairs = np.stack([first[run], second[run]])  # shape (measures, queries)
        if (np.ptp(pairs, axis=1) == 0).any():
            parts[run] = Evidence(reason="the ranker has one score for every query")
            continue
        parts[run] = bootstrapped(partial(pearson, pairs), pairs.shape[1], published.get(run))
    return parts


def pearson(pairs: Floats, places: Integers) -> float:
    """Pearson's r of two measures on some queries, NaN where one of them is constant."""
    drawn = pairs[:, places]
    first, second = drawn - drawn.mean(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return float(first @ second / np.sqrt((first @ first) * (second @ second)))


def against_permuted_rankers(
    first: pd.DataFrame, second: pd.DataFrame, statistic: Callable[[Floats], float]
) -> Evidence:
    """A statistic minus its expectation where the rankers of each query are randomly permuted.

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
    """What the best ranker by each of two measures loses by the other; the smaller loss."""
    first, second = means.argmax(axis=0)
    return float(min(means[first, 0] - means[second, 0], means[second, 1] - means[first, 1]))


def clearest_reversal(means: Floats) -> float:
    """How clearly two rankers are in opposite orders by two measures; negative where none are.

    Of two rankers the smaller of both differences counts, and of all pairs the largest.
    """
    first, second = np.triu_indices(len(means), 1)
    gaps = means[first] - means[second]  # shape (pairs, 2)
    smaller = np.abs(gaps).min(axis=1)
    return float(np.where(gaps.prod(axis=1) < 0, smaller, -smaller).max())


def excess_change(
    fairness: pd.DataFrame, label: str, measure: str, cutoffs: Sequence[int]
) -> Evidence:
    """How much more TExFAIR without RBDF changes over the cut-offs than another measure.

    A change is the largest minus the smallest mean over queries, averaged over rankers.
    """
    names = ("TExFAIR(proportional=False)", measure)
    # shape (measures, cut-offs, queries, rankers)
    scores = np.array(
        [[by_query(fairness, label, f"{name}@{k}") for k in cutoffs] for name in names]
    )

    def excess(places: Integers) -> float:
        changes = np.ptp(scores[:, :, places].mean(axis=2), axis=1).mean(axis=1)
        return float(changes[0] - changes[1])

    return bootstrapped(excess, scores.shape[2])


# --- published cells ------------------------------------------------------------------------------


def published(label: str, measure: str) -> pd.Series:
    """Published numbers by ranker: CRBO of Table 4.2, other measures of Table 4.1."""
    name, column = ("4.2", "model") if measure == "CRBO" else ("4.1", "method")
    table = printed_table(f"thesis/table-{name}").set_index(column)
    cells = table.loc[table["queries"] == label, measure]
    # some cells have a mark of significance
    return cells.str.extract(r"([0-9.]+)")[0].astype(float)


def published_gaps(label: str, measure: str) -> pd.Series:
    """Published differences of the other rankers from BM25."""
    numbers = published(label, measure)
    return numbers.drop("BM25") - numbers["BM25"]


def with_published(table: pd.DataFrame, measures: Sequence[str], study: Study) -> pd.DataFrame:
    """Add a column of published values per measure, for the rankers that the thesis has, too.

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


def published_evidence(cells: pd.DataFrame) -> dict[str, Evidence]:
    """Evidence of published cells, one part per cell, named by its row and column."""
    parts = {}
    for key, row in cells.iterrows():
        row_name = key if isinstance(key, str) else ", ".join(map(str, key))
        for column, value in row.items():
            parts[f"{row_name}, {column}"] = Evidence(float(value), reason="nothing is sampled")
    return parts
