"""Claims of thesis chapter 4: the numbers they rest on, with intervals from queries drawn again.

``scores``: by query, columns ``queries, run, topic, measure, value``, as the notebook makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pandas as pd

from equipoise.arrays import Floats, Integers, ratio
from equipoise.statistics import resampled
from equipoise_compendium.claims import Evidence
from equipoise_compendium.printed import printed_table

_PRINTED = "printed cells, of which none is a sample"
_EXAMPLE = "two rankings drawn as an example: none is a sample"


def left_less_right(example: pd.DataFrame) -> Evidence:
    """How much fairer the ranking on the left is (Figure 4.1)."""
    texfair = example.set_index("ranking")["TExFAIR"]
    statement = "TExFAIR of the left ranking less that of the right"
    return Evidence(statement, texfair["left"] - texfair["right"], reason=_EXAMPLE)


def largest_nfairr(example: pd.DataFrame) -> Evidence:
    """The larger NFaiRR of the two rankings (Figure 4.1)."""
    return Evidence("larger NFaiRR of the two rankings", example["NFaiRR"].max(), reason=_EXAMPLE)


# --- rankers --------------------------------------------------------------------------------------


def above_baseline(scores: pd.DataFrame, label: str, measure: str, baseline: str) -> Evidence:
    """How far the other rankers lie above the baseline on a query set, mean over them.

    Printed beside it, over BM25.
    """
    by_run = _by_run(scores, label, measure)
    gaps_of_runs = by_run.drop(columns=baseline).sub(by_run[baseline], axis=0)
    gaps = gaps_of_runs.mean(axis=1).to_numpy()  # (queries,)

    printed = _printed(label, measure)
    printed_gap = float(printed.drop("BM25").mean() - printed["BM25"])
    statement = f"{measure} on {label}, mean of {gaps_of_runs.shape[1]} rankers less {baseline}"
    return _evidence(statement, lambda drawn: float(gaps[drawn].mean()), len(gaps), printed_gap)


def beyond_all_others(
    scores: pd.DataFrame, label: str, measure: str, baseline: str, sign: int
) -> Evidence:
    """How far the baseline lies above the highest other ranker, or below the lowest.

    ``sign``: 1 for above, -1 for below.
    """
    # with the sign turned, the lowest ranker is the highest
    by_run = sign * _by_run(scores, label, measure)
    of_baseline = by_run[baseline].to_numpy()  # (queries,)
    of_others = by_run.drop(columns=baseline).to_numpy()  # (queries, rankers)

    def margin(drawn: Integers) -> float:
        return float(of_baseline[drawn].mean() - of_others[drawn].mean(axis=0).max())

    printed = sign * _printed(label, measure)
    printed_margin = float(printed["BM25"] - printed.drop("BM25").max())
    relation = "less the highest" if sign > 0 else "subtracted from the lowest"
    statement = f"{measure} on {label}, {baseline} {relation} other ranker"
    return _evidence(statement, margin, len(of_baseline), printed_margin)


def correlation(scores: pd.DataFrame, label: str) -> Evidence:
    """Pearson's r of NFaiRR and TExFAIR over the queries, mean over the rankers (Table 4.1)."""
    neutral = _by_run(scores, label, "NFaiRR").to_numpy()  # (queries, rankers)
    balanced = _by_run(scores, label, "TExFAIR").to_numpy()
    statement = f"r of NFaiRR and TExFAIR on {label}, mean of {neutral.shape[1]} rankers"
    constant = (np.ptp(neutral, axis=0) == 0) | (np.ptp(balanced, axis=0) == 0)
    if constant.any():
        reason = "a ranker has one score for every query, with which nothing is correlated"
        return Evidence(statement, reason=reason)

    def mean_r(drawn: Integers) -> float:
        first = neutral[drawn] - neutral[drawn].mean(axis=0)
        second = balanced[drawn] - balanced[drawn].mean(axis=0)
        spread = np.sqrt((first**2).sum(axis=0) * (second**2).sum(axis=0))
        return float(ratio((first * second).sum(axis=0), spread, 0.0).mean())

    printed_r = float(_printed(label, "r").mean())
    return _evidence(statement, mean_r, len(neutral), printed_r)


def another_choice(scores: pd.DataFrame, label: str) -> Evidence:
    """What the best ranker by each fairness measure loses by the other one; the smaller loss."""
    nfairr = _by_run(scores, label, "NFaiRR")
    texfair = _by_run(scores, label, "TExFAIR")
    neutral = nfairr.mean().idxmax()
    balanced = texfair.mean().idxmax()
    leads = np.stack([nfairr[neutral] - nfairr[balanced], texfair[balanced] - texfair[neutral]])
    statement = (
        f"smaller lead on {label}: {neutral} over {balanced} in NFaiRR, "
        f"or {balanced} over {neutral} in TExFAIR"
    )
    return _evidence(
        statement, lambda drawn: float(leads[:, drawn].mean(axis=1).min()), leads.shape[1]
    )


def moved_by_ties(ranges: pd.DataFrame, label: str, measure: str) -> Evidence:
    """How far the order of ties moves one ranker, less the distance of the others."""
    rows = ranges[(ranges["queries"] == label) & (ranges["measure"] == measure)]
    by_run = rows.set_index("run")
    moves = (by_run["ids ascending"] - by_run["ids descending"]).abs()
    most_moved = moves.idxmax()
    spread_of_others = np.ptp(by_run["mean"].drop(most_moved))
    statement = (
        f"{measure} of {most_moved} on {label}, between ids ascending and descending, "
        "less the spread of the others"
    )
    return Evidence(
        statement,
        float(moves.max() - spread_of_others),
        reason="two orders of one set of lists: none is a sample",
    )


# --- both query sets ------------------------------------------------------------------------------


def cutoff_sensitivity(
    fairness: pd.DataFrame, labels: Iterable[str], cutoffs: Sequence[int]
) -> Evidence:
    """How much more TExFAIR without RBDF changes over the cut-offs than TExFAIR and NFaiRR do.

    A change is the largest less the smallest mean over the queries, averaged over rankers and query
    sets; of the other two measures the one counts that changes most (Figure 4.2).
    """
    by_query = fairness[fairness["topic"] != ""]
    measures = ("TExFAIR(proportional=False)", "TExFAIR", "NFaiRR")
    scores_by_set = []
    for label in labels:
        of_measures = []
        for measure in measures:
            at_cutoffs = [_by_run(by_query, label, f"{measure}@{k}").to_numpy() for k in cutoffs]
            of_measures.append(at_cutoffs)
        # (measures, cut-offs, queries, rankers), queries first
        scores_by_set.append(np.stack(of_measures).transpose(2, 0, 1, 3))

    def excess(scores: Floats) -> float:
        means = scores.mean(axis=0)  # (measures, cut-offs, rankers)
        changes = np.ptp(means, axis=1).mean(axis=1)
        return float(changes[0] - changes[1:].max())

    statement = (
        f"change over cut-offs {min(cutoffs)} to {max(cutoffs)}, TExFAIR without RBDF "
        "less the larger of the others"
    )
    return _evidence_over_sets(statement, excess, scores_by_set)


def agreement_with_crbo(
    scores: pd.DataFrame, labels: Iterable[str], measure: str, baseline: str
) -> Evidence:
    """Kendall's tau of CRBO and a fairness measure over the rankers but the baseline.

    The mean of the query sets.
    """
    scores_by_set = []
    for label in labels:
        overlap = _by_run(scores, label, "CRBO").drop(columns=baseline)
        # only rankers of both worlds have CRBO
        fairness = _by_run(scores, label, measure)[overlap.columns]
        scores_by_set.append(np.stack([overlap, fairness], axis=1))  # (queries, 2, rankers)
    statement = (
        f"Kendall's tau of CRBO and {measure} over the rankers but {baseline}, "
        "mean of the query sets"
    )
    first, second = np.triu_indices(scores_by_set[0].shape[2], 1)
    if not len(first):
        return Evidence(statement, reason="there is one such ranker only")

    def tau(both_measures: Floats) -> float:
        means = both_measures.mean(axis=0)
        order = np.sign(means[:, first] - means[:, second])  # (2, pairs of rankers)
        return float(order.prod(axis=0).mean())

    return _evidence_over_sets(statement, tau, scores_by_set)


def _evidence_over_sets(
    statement: str, statistic: Callable[[Floats], float], scores_by_set: Sequence[Floats]
) -> Evidence:
    """Mean of a statistic over query sets, whose queries are drawn again all together.

    ``scores_by_set``: shaped (queries, ...) each.
    """
    ends = np.cumsum([len(scores) for scores in scores_by_set])

    def mean(drawn: Integers) -> float:
        set_of_query = np.searchsorted(ends, drawn, side="right")
        values = []
        for number, scores in enumerate(scores_by_set):
            start = ends[number] - len(scores)
            values.append(statistic(scores[drawn[set_of_query == number] - start]))
        return float(np.mean(values))

    return _evidence(statement, mean, int(ends[-1]))


# --- printed cells --------------------------------------------------------------------------------


def share_equal(checks: pd.DataFrame, reading: str) -> Evidence:
    """Share of the cells printed in both tables that agree, under a reading of the query sets."""
    row = checks.set_index("reading").loc[reading]
    statement = (
        f"share of the {row['cells']} cells of Table 4.2 that equal those of Table 4.1, "
        f"query sets {reading}"
    )
    return Evidence(statement, float(row["equal cells"] / row["cells"]), reason=_PRINTED)


def largest_printed_r() -> Evidence:
    """The highest printed correlation (Table 4.1)."""
    highest = max(_printed("QS1", "r").max(), _printed("QS2", "r").max())
    return Evidence("highest printed r", float(highest), reason=_PRINTED)


def non_gendered_queries(public: pd.DataFrame) -> Evidence:
    """Queries without gender in the public file."""
    count = public.set_index("kind")["queries"]["non-gendered"]
    statement = "non-gendered queries in the public file"
    return Evidence(statement, float(count), reason="a count of a whole file")


# --- shared ---------------------------------------------------------------------------------------


def _by_run(scores: pd.DataFrame, label: str, measure: str) -> pd.DataFrame:
    """Scores with a row for each query and a column for each ranker."""
    rows = scores[(scores["queries"] == label) & (scores["measure"] == measure)]
    return rows.pivot_table(index="topic", columns="run", values="value")


def _printed(label: str, measure: str) -> pd.Series:
    """Printed numbers of the rankers by name: CRBO of Table 4.2, the others of Table 4.1."""
    if measure == "CRBO":
        table = printed_table("thesis/table-4.2").set_index("model")
    else:
        table = printed_table("thesis/table-4.1").set_index("method")
    cells = table.loc[table["queries"] == label, measure]
    # some cells carry a mark of significance
    return cells.str.extract(r"([0-9.]+)")[0].astype(float)


def _evidence(
    statement: str,
    statistic: Callable[[Integers], float],
    queries: int,
    printed: float | None = None,
) -> Evidence:
    """A number with the interval that it has over queries drawn again.

    ``statistic``: of the places of the drawn queries.
    """
    estimate, low, high = resampled(statistic, queries, np.random.default_rng(0))
    return Evidence(statement, estimate, low, high, queries, printed)
