"""Claims of thesis chapter 4: the numbers they rest on, with intervals from queries drawn again.

``scores``: by query, columns ``queries, run, topic, measure, value``, as the notebook makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from equipoise.arrays import Floats, Integers, ratio
from equipoise.statistics import resampled
from equipoise_compendium.claims import Evidence, less_chance
from equipoise_compendium.printed import printed_table

_PRINTED = "printed cells, of which none is a sample"
_EXAMPLE = "two rankings drawn as an example: none is a sample"
_DRAWS = 999
"""Draws of what chance alone gives."""
_MOST_TIES = 0.5
"""Share of tied ranks from which on a ranker's fairness is that of an order of ties."""


def left_less_right(example: pd.DataFrame) -> Evidence:
    """How much fairer the ranking on the left is (Figure 4.1)."""
    texfair = example.set_index("ranking")["TExFAIR"]
    statement = "TExFAIR of the left ranking less that of the right"
    return Evidence(statement, texfair["left"] - texfair["right"], reason=_EXAMPLE)


def largest_nfairr(example: pd.DataFrame) -> Evidence:
    """The larger NFaiRR of the two rankings (Figure 4.1)."""
    return Evidence("larger NFaiRR of the two rankings", example["NFaiRR"].max(), reason=_EXAMPLE)


# --- rankers --------------------------------------------------------------------------------------


def not_testable(evidence: Evidence, reason: str) -> Evidence:
    """The evidence without its numbers, where there is a reason why they cannot test a claim."""
    if not reason:
        return evidence
    return Evidence(evidence.said, printed=evidence.printed, reason=reason)


def cannot_tell_apart(tied: pd.DataFrame, label: str, run: str, cutoff: int) -> str:
    """Why a ranker's lists on a query set say nothing of its fairness; empty where they do.

    ``tied``: as of `ties.tied_ranks`, up to the cut-off.
    """
    row = tied.set_index(["queries", "run"]).loc[(label, run)]
    ranks = row["number of queries"] * cutoff
    if row["tied ranks"] <= _MOST_TIES * ranks:
        return ""
    return (
        f"{row['tied ranks']:,} of {ranks:,} ranks of {run} on {label} are tied: it cannot tell "
        "apart the wordings in which each text stands there"
    )


def significantly_above(
    scores: pd.DataFrame, label: str, measure: str, baseline: str, alpha: float, printed_set: str
) -> Evidence:
    """Which share of the other rankers is significantly above the baseline on a query set.

    By a paired t-test with Bonferroni's correction, as the printed marks. "Almost all rankers" is
    said of more rankers than these few: the interval is the exact binomial one of drawing so many.
    Its upper end counts for the paper the rankers that the queries leave open, those not
    significantly below at 0.01. ``printed_set``: the query set of Table 4.1 that it is set beside.
    """
    by_run = _by_run(scores, label, measure)
    gaps = by_run.drop(columns=baseline).sub(by_run[baseline], axis=0).to_numpy()
    queries, rankers = gaps.shape
    errors = gaps.std(axis=0, ddof=1) / np.sqrt(queries)
    bound = stats.t.isf(alpha / (2 * rankers), queries - 1) * errors
    wide_bound = stats.t.isf(0.01 / (2 * rankers), queries - 1) * errors
    n_above = int((gaps.mean(axis=0) > bound).sum())
    n_not_below = max(n_above, int((gaps.mean(axis=0) >= -wide_bound).sum()))
    low = stats.binomtest(n_above, rankers).proportion_ci(0.95, "exact").low
    high = stats.binomtest(n_not_below, rankers).proportion_ci(0.95, "exact").high

    marked = printed_marks(printed_set, measure)
    statement = f"share of {rankers} rankers significantly above {baseline} in {measure} on {label}"
    printed = float(marked.mean())
    return Evidence(statement, n_above / rankers, float(low), float(high), rankers, printed)


def above_baseline(
    scores: pd.DataFrame, label: str, measure: str, baseline: str, printed_set: str
) -> Evidence:
    """How far the other rankers lie above the baseline on a query set, mean over them.

    Printed beside it, over BM25, on the query set ``printed_set``.
    """
    by_run = _by_run(scores, label, measure)
    gaps_of_runs = by_run.drop(columns=baseline).sub(by_run[baseline], axis=0)
    gaps = gaps_of_runs.mean(axis=1).to_numpy()  # (queries,)

    printed = _printed(printed_set, measure)
    printed_gap = float(printed.drop("BM25").mean() - printed["BM25"])
    statement = f"{measure} on {label}, mean of {gaps_of_runs.shape[1]} rankers less {baseline}"
    return _evidence(statement, lambda drawn: float(gaps[drawn].mean()), len(gaps), printed_gap)


def beyond_all_others(
    scores: pd.DataFrame, label: str, measure: str, baseline: str, sign: int, printed_set: str
) -> Evidence:
    """How far the baseline lies above the highest other ranker, or below the lowest.

    ``sign``: 1 for above, -1 for below. ``printed_set``: the query set that it is set beside.
    """
    # with the sign turned, the lowest ranker is the highest
    by_run = sign * _by_run(scores, label, measure)
    of_baseline = by_run[baseline].to_numpy()  # (queries,)
    of_others = by_run.drop(columns=baseline).to_numpy()  # (queries, rankers)

    def margin(drawn: Integers) -> float:
        return float(of_baseline[drawn].mean() - of_others[drawn].mean(axis=0).max())

    printed = sign * _printed(printed_set, measure)
    printed_margin = float(printed["BM25"] - printed.drop("BM25").max())
    relation = "less the highest" if sign > 0 else "subtracted from the lowest"
    statement = f"{measure} on {label}, {baseline} {relation} other ranker"
    return _evidence(statement, margin, len(of_baseline), printed_margin)


def correlation(scores: pd.DataFrame, label: str, printed_set: str) -> Evidence:
    """Pearson's r of NFaiRR and TExFAIR over the queries, mean over the rankers (Table 4.1).

    ``printed_set``: the query set of Table 4.1 that it is set beside.
    """
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

    printed_r = float(_printed(printed_set, "r").mean())
    return _evidence(statement, mean_r, len(neutral), printed_r)


def another_choice(scores: pd.DataFrame, label: str) -> Evidence:
    """What the best ranker by each fairness measure loses by the other one; the smaller loss.

    Two rankers that differ by chance alone lead each other too: in each draw of that, in which the
    rankers of each query are exchanged, the best ones are chosen anew.
    """
    nfairr = _by_run(scores, label, "NFaiRR")
    texfair = _by_run(scores, label, "TExFAIR")
    both_measures = np.stack([nfairr, texfair], axis=2)  # (queries, rankers, 2)

    def smaller_lead(means: Floats) -> float:
        neutral, balanced = means.argmax(axis=0)
        lead_in_nfairr = means[neutral, 0] - means[balanced, 0]
        lead_in_texfair = means[balanced, 1] - means[neutral, 1]
        return float(min(lead_in_nfairr, lead_in_texfair))

    neutral, balanced = nfairr.columns[both_measures.mean(axis=0).argmax(axis=0)]
    statement = (
        f"smaller lead on {label}: {neutral} over {balanced} in NFaiRR, "
        f"or {balanced} over {neutral} in TExFAIR"
    )
    return _above_exchanged_rankers(statement, both_measures, smaller_lead)


def moved_by_ties(ranges: pd.DataFrame, label: str, measure: str, run: str) -> Evidence:
    """How far the order of ties moves a ranker, less the distance of the others."""
    rows = ranges[(ranges["queries"] == label) & (ranges["measure"] == measure)]
    by_run = rows.set_index("run")
    move = abs(by_run.loc[run, "ids ascending"] - by_run.loc[run, "ids descending"])
    spread_of_others = np.ptp(by_run["mean"].drop(run))
    statement = (
        f"{measure} of {run} on {label}, between ids ascending and descending ({move:.3f}), "
        f"less the spread of the others ({spread_of_others:.3f})"
    )
    return Evidence(
        statement,
        float(move - spread_of_others),
        reason="two orders of one set of lists: none is a sample",
    )


def clearest_reversal(scores: pd.DataFrame, label: str, measure: str, baseline: str) -> Evidence:
    """How clearly two rankers stand in one order by CRBO and in the other by fairness.

    Of two rankers but the baseline the smaller of both leads, below zero where the orders agree; of
    all pairs the greatest. Rankers that differ by chance alone are reversed somewhere too.
    """
    overlap = _by_run(scores, label, "CRBO").drop(columns=baseline)
    # only rankers of both worlds have CRBO
    fairness = _by_run(scores, label, measure)[overlap.columns]
    both_measures = np.stack([fairness, overlap], axis=2)  # (queries, rankers, 2)
    statement = (
        f"leads of two rankers but {baseline} on {label} in {measure} and, the other way round, "
        "in CRBO: the smaller one, where it is greatest"
    )
    first, second = np.triu_indices(both_measures.shape[1], 1)
    if not len(first):
        return Evidence(statement, reason="there is one such ranker only")

    def reversal(means: Floats) -> float:
        gaps = means[first] - means[second]  # (pairs of rankers, 2)
        smaller = np.abs(gaps).min(axis=1)
        return float(np.where(gaps.prod(axis=1) < 0, smaller, -smaller).max())

    return _above_exchanged_rankers(statement, both_measures, reversal)


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


def share_of_marks() -> Evidence:
    """Share of the rankers but BM25 that are marked as significantly fairer (Table 4.1)."""
    marks = []
    for label in ("QS1", "QS2"):
        for measure in ("NFaiRR", "TExFAIR"):
            marks.append(printed_marks(label, measure))
    marked = pd.concat(marks)
    statement = f"share marked of {len(marked)} printed scores of fairness of rankers but BM25"
    return Evidence(statement, float(marked.mean()), reason=_PRINTED)


def least_excess_over_crbo() -> Evidence:
    """How much further a printed ranker lies from BM25 in fairness than in CRBO, at least.

    Query sets as Table 4.2 labels them, so that its cells are compared with each other.
    """
    table = printed_table("thesis/table-4.2").set_index(["queries", "model"]).astype(float)
    of_baseline = table.xs("BM25", level="model")
    others = table.drop(index="BM25", level="model")
    gaps = (others - of_baseline.reindex(others.index, level="queries")).abs()
    excess = gaps[["TExFAIR", "NFaiRR"]].sub(gaps["CRBO"], axis=0)
    statement = f"least of {excess.size} distances from BM25 in fairness, less that in CRBO"
    return Evidence(statement, float(excess.min(axis=None)), reason=_PRINTED)


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


def printed_gaps(printed_sets: Mapping[str, str]) -> pd.DataFrame:
    """The range of the printed differences from BM25 in fairness, over the ten other rankers.

    ``printed_sets``: the query set of Table 4.1 by label. Columns ``queries, measure, low, high``.
    """
    rows = []
    for label, printed_set in printed_sets.items():
        for measure in ("NFaiRR", "TExFAIR"):
            printed = _printed(printed_set, measure)
            gaps = printed.drop("BM25") - printed["BM25"]
            rows.append((label, measure, gaps.min(), gaps.max()))
    return pd.DataFrame(rows, columns=["queries", "measure", "low", "high"])


def printed_gap(printed_set: str, measure: str, row: str) -> float:
    """The printed difference of a row of Table 4.1 from BM25."""
    printed = _printed(printed_set, measure)
    return float(printed[row] - printed["BM25"])


def printed_marks(label: str, measure: str) -> pd.Series:
    """Whether each ranker but BM25 is marked in Table 4.1 as significantly above it."""
    table = printed_table("thesis/table-4.1").set_index("method")
    cells = table.loc[table["queries"] == label, measure].drop("BM25")
    return cells.str.endswith("‡")


def _above_exchanged_rankers(
    statement: str, scores: Floats, statistic: Callable[[Floats], float]
) -> Evidence:
    """A statistic of the rankers' means, less what it is where rankers differ by chance alone.

    ``scores``: shaped (queries, rankers, measures); in each draw of chance the rankers of each
    query are exchanged, all its measures together. ``statistic``: of means (rankers, measures).
    """
    rng = np.random.default_rng(0)
    by_chance = np.empty(_DRAWS)
    for draw in range(_DRAWS):
        order = rng.random(scores.shape[:2]).argsort(axis=1)
        exchanged = np.take_along_axis(scores, order[:, :, np.newaxis], axis=1)
        by_chance[draw] = statistic(exchanged.mean(axis=0))
    return less_chance(statement, statistic(scores.mean(axis=0)), by_chance, n=len(scores))


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
