"""Numbers behind the claims of chapter 4: bootstraps over queries, and published cells.

Scores of one measure come as a table with one row per query and one column per ranker (`by_query`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from equipoise.arrays import Floats, Integers, ratio
from equipoise.statistics import compare_pairs, resampled
from equipoise_compendium.claims import Evidence, less_chance
from equipoise_compendium.printed import printed_table

PERMUTATIONS = 999
"""Random permutations of the rankers of each query."""


def by_query(scores: pd.DataFrame, label: str, measure: str) -> pd.DataFrame:
    """Scores of one measure on a query set, shape (queries, rankers)."""
    rows = scores[(scores["queries"] == label) & (scores["measure"] == measure)]
    return rows.pivot_table(index="topic", columns="run", values="value")


def bootstrapped(
    said: str,
    statistic: Callable[[Integers], float],
    queries: int,
    published: float | None = None,
) -> Evidence:
    """Evidence with a 95% interval over resampled queries.

    ``statistic`` takes the places of the resampled queries.
    """
    estimate, low, high = resampled(statistic, queries, np.random.default_rng(0))
    return Evidence(said, estimate, low, high, queries, published)


def mean_evidence(said: str, values: pd.Series, published: float | None = None) -> Evidence:
    """Evidence of a mean over queries."""
    numbers = values.to_numpy()
    return bootstrapped(said, lambda places: float(numbers[places].mean()), len(values), published)


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
    return pd.concat(comparisons).rename(columns={"a": "run"})


# --- statistics of several rankers ----------------------------------------------------------------


def share_above(
    said: str, scores: pd.DataFrame, baseline: str, alpha: float, published: float
) -> Evidence:
    """Share of the other rankers that are significantly above the baseline.

    Paired t-tests with Bonferroni's correction. The interval is the exact binomial one for so few
    rankers. Its upper end counts each ranker that is not significantly below at 0.01, since the
    queries leave these open.
    """
    gaps = scores.drop(columns=baseline).sub(scores[baseline], axis=0).to_numpy()
    queries, rankers = gaps.shape
    errors = gaps.std(axis=0, ddof=1) / np.sqrt(queries)
    bound = stats.t.isf(alpha / (2 * rankers), queries - 1) * errors
    wide_bound = stats.t.isf(0.01 / (2 * rankers), queries - 1) * errors
    n_above = int((gaps.mean(axis=0) > bound).sum())
    n_not_below = max(n_above, int((gaps.mean(axis=0) >= -wide_bound).sum()))
    low = stats.binomtest(n_above, rankers).proportion_ci(0.95, "exact").low
    high = stats.binomtest(n_not_below, rankers).proportion_ci(0.95, "exact").high
    return Evidence(said, n_above / rankers, float(low), float(high), rankers, published)


def lead_over_others(said: str, scores: pd.DataFrame, baseline: str, published: float) -> Evidence:
    """The baseline minus the highest other ranker."""
    own = scores[baseline].to_numpy()
    others = scores.drop(columns=baseline).to_numpy()

    def lead(places: Integers) -> float:
        return float(own[places].mean() - others[places].mean(axis=0).max())

    return bootstrapped(said, lead, len(own), published)


def mean_correlation(
    said: str, first: pd.DataFrame, second: pd.DataFrame, published: float
) -> Evidence:
    """Pearson's r of two measures over queries, mean over the rankers."""
    one, other = first.to_numpy(), second.to_numpy()
    if ((np.ptp(one, axis=0) == 0) | (np.ptp(other, axis=0) == 0)).any():
        return Evidence(said, reason="a ranker has one score for every query")

    def mean_r(places: Integers) -> float:
        x = one[places] - one[places].mean(axis=0)
        y = other[places] - other[places].mean(axis=0)
        spread = np.sqrt((x**2).sum(axis=0) * (y**2).sum(axis=0))
        return float(ratio((x * y).sum(axis=0), spread, 0.0).mean())

    return bootstrapped(said, mean_r, len(one), published)


def against_permuted_rankers(
    said: str, first: pd.DataFrame, second: pd.DataFrame, statistic: Callable[[Floats], float]
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
    return less_chance(said, statistic(scores.mean(axis=0)), by_chance, n=len(scores))


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
    said: str, fairness: pd.DataFrame, labels: Sequence[str], cutoffs: Sequence[int]
) -> Evidence:
    """How much more TExFAIR without RBDF changes over the cut-offs than TExFAIR and NFaiRR.

    A change is the largest minus the smallest mean over queries, averaged over rankers; of the
    other two measures the one that changes more counts. Query sets are averaged, and their queries
    resampled together.
    """
    by_set = []
    for label in labels:
        set_rows = []
        for measure in ("TExFAIR(proportional=False)", "TExFAIR", "NFaiRR"):
            set_rows.append([by_query(fairness, label, f"{measure}@{k}") for k in cutoffs])
        by_set.append(np.array(set_rows).transpose(2, 0, 1, 3))  # queries, measures, cut-offs, runs
    ends = np.cumsum([len(scores) for scores in by_set])

    def mean_excess(places: Integers) -> float:
        set_of_query = np.searchsorted(ends, places, side="right")
        excess = []
        for number, scores in enumerate(by_set):
            rows = places[set_of_query == number] - (ends[number] - len(scores))
            changes = np.ptp(scores[rows].mean(axis=0), axis=1).mean(axis=1)
            excess.append(changes[0] - changes[1:].max())
        return float(np.mean(excess))

    return bootstrapped(said, mean_excess, int(ends[-1]))


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


def published_marks(label: str, measure: str) -> pd.Series:
    """Whether Table 4.1 marks each ranker except BM25 as significantly above BM25."""
    table = printed_table("thesis/table-4.1").set_index("method")
    return table.loc[table["queries"] == label, measure].drop("BM25").str.endswith("‡")
