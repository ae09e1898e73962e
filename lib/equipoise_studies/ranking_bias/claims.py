"""Claims of thesis chapter 4: the numbers they rest on, with intervals from queries drawn again.

``topics``: scores by query, columns ``queries, run, topic, measure, value`` (`tables.by_query` and
`tables.overlaps`).
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
_DRAWN = "two rankings drawn as an example: none is a sample"


def left_less_right(example: pd.DataFrame) -> Evidence:
    """How much fairer the ranking on the left is (Figure 4.1)."""
    found = example.set_index("ranking")["TExFAIR"]
    return Evidence(
        "TExFAIR of the left ranking less that of the right",
        found["left"] - found["right"],
        reason=_DRAWN,
    )


def largest_nfairr(example: pd.DataFrame) -> Evidence:
    """The larger NFaiRR of the two rankings (Figure 4.1)."""
    return Evidence("larger NFaiRR of the two rankings", example["NFaiRR"].max(), reason=_DRAWN)


# --- the replica ----------------------------------------------------------------------------------


def _by_run(topics: pd.DataFrame, label: str, measure: str) -> pd.DataFrame:
    """Scores with a row for each query and a column for each ranker."""
    part = topics[(topics["queries"] == label) & (topics["measure"] == measure)]
    return part.pivot_table(index="topic", columns="run", values="value")


def _evidence(
    said: str, statistic: Callable[[Integers], float], units: int, printed: float | None = None
) -> Evidence:
    estimate, low, high = resampled(statistic, units, np.random.default_rng(0))
    return Evidence(said, estimate, low, high, units, printed)


def _printed(label: str, measure: str) -> pd.Series:
    """Printed numbers of the rankers by name, CRBO of Table 4.2 and the others of Table 4.1."""
    table = printed_table("thesis/table-4.2" if measure == "CRBO" else "thesis/table-4.1")
    table = table[table["queries"] == label].set_index("model" if measure == "CRBO" else "method")
    return table[measure].str.extract(r"([0-9.]+)")[0].astype(float)


def above_baseline(topics: pd.DataFrame, label: str, measure: str, baseline: str) -> Evidence:
    """How far the other rankers lie above the baseline on a query set, mean over them; printed beside it, over BM25."""
    scores, printed = _by_run(topics, label, measure), _printed(label, measure)
    gaps = scores.drop(columns=baseline).sub(scores[baseline], axis=0).mean(axis=1).to_numpy()
    said = f"{measure} on {label}, mean of {scores.shape[1] - 1} rankers less {baseline}"
    theirs = float(printed.drop("BM25").mean() - printed["BM25"])
    return _evidence(said, lambda places: float(gaps[places].mean()), len(gaps), theirs)


def beyond_all_others(
    topics: pd.DataFrame, label: str, measure: str, baseline: str, sign: int
) -> Evidence:
    """How far the baseline lies above the highest other ranker (sign 1), or below the lowest one (sign -1)."""
    scores, printed = sign * _by_run(topics, label, measure), sign * _printed(label, measure)
    own, others = scores[baseline].to_numpy(), scores.drop(columns=baseline).to_numpy()
    which, theirs = ("highest", "less") if sign > 0 else ("lowest", "subtracted from")
    said = f"{measure} on {label}, {baseline} {theirs} the {which} other ranker"
    return _evidence(
        said,
        lambda places: float(own[places].mean() - others[places].mean(axis=0).max()),
        len(own),
        float(printed["BM25"] - printed.drop("BM25").max()),
    )


def correlation(topics: pd.DataFrame, label: str) -> Evidence:
    """Pearson's r of NFaiRR and TExFAIR over the queries, mean over the rankers (Table 4.1)."""
    pair = [_by_run(topics, label, measure).to_numpy() for measure in ("NFaiRR", "TExFAIR")]
    said = f"r of NFaiRR and TExFAIR on {label}, mean of {pair[0].shape[1]} rankers"
    if any((np.ptp(scores, axis=0) == 0).any() for scores in pair):
        return Evidence(
            said, reason="a ranker has one score for every query, with which nothing is correlated"
        )

    def mean_r(places: Integers) -> float:
        first, second = (scores[places] - scores[places].mean(axis=0) for scores in pair)
        spread = np.sqrt((first**2).sum(axis=0) * (second**2).sum(axis=0))
        return float(ratio((first * second).sum(axis=0), spread, 0.0).mean())

    return _evidence(said, mean_r, len(pair[0]), float(_printed(label, "r").mean()))


def _over_sets(
    statistic: Callable[[Floats], float], sets: Sequence[Floats]
) -> tuple[Callable[[Integers], float], int]:
    """Mean of a statistic over query sets, each shaped (queries, ...), as one of the queries of all."""
    ends = np.cumsum([len(scores) for scores in sets])

    def mean(places: Integers) -> float:
        number = np.searchsorted(ends, places, side="right")
        parts = [
            places[number == at] - end + len(scores)
            for at, (end, scores) in enumerate(zip(ends, sets, strict=True))
        ]
        return float(
            np.mean([statistic(scores[part]) for scores, part in zip(sets, parts, strict=True)])
        )

    return mean, int(ends[-1])


def cutoff_sensitivity(
    fair: pd.DataFrame, labels: Iterable[str], cutoffs: Sequence[int]
) -> Evidence:
    """How much more TExFAIR without RBDF changes over the cut-offs than the one of the other two that changes most.

    A change is the largest less the smallest mean over the queries, averaged over rankers and query
    sets (Figure 4.2).
    """
    topics, names = fair[fair["topic"] != ""], ("TExFAIR(proportional=False)", "TExFAIR", "NFaiRR")
    sets = [
        np.stack(
            [[_by_run(topics, label, f"{name}@{k}").to_numpy() for k in cutoffs] for name in names]
        ).transpose(2, 0, 1, 3)
        for label in labels
    ]

    def more(scores: Floats) -> float:
        plain, *others = np.ptp(scores.mean(axis=0), axis=1).mean(axis=1)
        return float(plain - max(others))

    said = f"change over cut-offs {min(cutoffs)} to {max(cutoffs)}, TExFAIR without RBDF less the larger of the others"
    return _evidence(said, *_over_sets(more, sets))


def agreement_with_crbo(
    topics: pd.DataFrame, labels: Iterable[str], measure: str, baseline: str
) -> Evidence:
    """Kendall's tau of CRBO and a fairness measure over the rankers but the baseline, mean of the query sets."""
    pairs = [
        [_by_run(topics, label, name).drop(columns=baseline) for name in ("CRBO", measure)]
        for label in labels
    ]
    sets = [
        np.stack([kept, scores[kept.columns]], axis=1) for kept, scores in pairs
    ]  # rankers of both worlds
    first, second = np.triu_indices(sets[0].shape[2], 1)
    said = f"Kendall's tau of CRBO and {measure} over the rankers but {baseline}, mean of the query sets"
    if not len(first):
        return Evidence(said, reason="there is one such ranker only")

    def tau(scores: Floats) -> float:
        means = scores.mean(axis=0)
        return float(np.sign(means[:, first] - means[:, second]).prod(axis=0).mean())

    return _evidence(said, *_over_sets(tau, sets))


def another_choice(topics: pd.DataFrame, label: str) -> Evidence:
    """What the best ranker by each fairness measure loses by the other measure, the smaller of the two losses."""
    pair = [_by_run(topics, label, measure) for measure in ("NFaiRR", "TExFAIR")]
    neutral, balanced = (scores.mean().idxmax() for scores in pair)
    gaps = np.stack([pair[0][neutral] - pair[0][balanced], pair[1][balanced] - pair[1][neutral]])
    said = f"smaller lead on {label}: {neutral} over {balanced} in NFaiRR, or {balanced} over {neutral} in TExFAIR"
    return _evidence(said, lambda places: float(gaps[:, places].mean(axis=1).min()), gaps.shape[1])


def moved_by_ties(ranges: pd.DataFrame, label: str, measure: str) -> Evidence:
    """How far the order of ties moves one ranker, less the distance of the other rankers from each other."""
    table = ranges[(ranges["queries"] == label) & (ranges["measure"] == measure)].set_index("run")
    moved = (table["ids ascending"] - table["ids descending"]).abs()
    others = table["mean"].drop(moved.idxmax())
    said = f"{measure} of {moved.idxmax()} on {label}, between ids ascending and descending, less the spread of the others"
    return Evidence(
        said,
        float(moved.max() - np.ptp(others)),
        reason="two orders of one set of lists: none is a sample",
    )


# --- printed cells --------------------------------------------------------------------------------


def share_equal(checks: pd.DataFrame, reading: str) -> Evidence:
    """Share of the cells printed in both tables that agree, the query sets as labelled or exchanged."""
    row = checks.set_index("reading").loc[reading]
    said = f"share of the {row['cells']} cells of Table 4.2 that equal those of Table 4.1, query sets {reading}"
    return Evidence(said, float(row["equal cells"] / row["cells"]), reason=_PRINTED)


def largest_printed_r() -> Evidence:
    """The highest printed correlation (Table 4.1)."""
    highest = max(float(_printed(label, "r").max()) for label in ("QS1", "QS2"))
    return Evidence("highest printed r", highest, reason=_PRINTED)


def non_gendered_queries(public: pd.DataFrame) -> Evidence:
    """Queries without gender in the public file."""
    count = public.set_index("kind")["queries"]["non-gendered"]
    return Evidence(
        "non-gendered queries in the public file", float(count), reason="a count of a whole file"
    )
