"""Prose of chapter 4 that follows from values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from equipoise_compendium.claims import Evidence
from equipoise_studies.ranking_bias.claims import printed_gap
from equipoise_studies.ranking_bias.data import CountedCollection
from equipoise_studies.ranking_bias.study import Study

_LEAST_MOVE = 0.0005
"""Means that ties move by less are not worth a sentence: tables print three or four digits."""

_KINDS = {
    "bm25": "it counts the words that query and document share",
    "splade": "learned sparse: a model weighs the words of query and document",
    "dense": "dense: a vector for each text",
    "cross-encoder": "a re-ranker: one model reads query and document together",
    "run files": "its runs are read",
    "public runs": "its runs are public",
}


# --- what the chapter is run on -------------------------------------------------------------------


def data_of(study: Study, labels: Sequence[str]) -> str:
    """Which collections stand for which query sets of the thesis, and whose runs they have."""
    parts = []
    for label in labels:
        collection = study.query_sets[label].collection
        runs = "recorded runs" if study.recorded_rankers(label) else "public runs"
        parts.append(f"{collection} for {study.printed_set(label)}, {runs}")
    if study.stands_for == "thesis" and study.other_data:
        parts.append(f"another collection than the thesis's: {study.other_data}")
    return "; ".join(parts)


def of_collections(study: Study, collections: Mapping[str, CountedCollection]) -> list[str]:
    """What each query set is, once for each collection, and what it can show, in words."""
    sentences = []
    told_of: set[str] = set()
    for label, collection in collections.items():
        if collection.name not in told_of:
            sentences.append(f"{label}: {collection.about}.")
            told_of.add(collection.name)
        if study.query_sets[label].shows:
            sentences.append(f"{label} {study.query_sets[label].shows}.")
    return sentences


def of_passed_over(passed_over: pd.DataFrame, cutoff: int) -> list[str]:
    """How many passages at the first ranks of public runs have no text."""
    if not passed_over["without a text"].any():
        return []
    counts = []
    for label, rows in passed_over.groupby("queries", sort=False):
        lacking, ranks = rows["without a text"], rows["ranks"]
        counts.append(
            f"{lacking.sum()} of {ranks.sum():,} on {label} (at most {lacking.max()} of "
            f"{ranks.max()} of one run)"
        )
    return [
        f"Of the documents at ranks up to {cutoff} of the public runs some have no text here, so "
        f"that those behind them move up: {' and '.join(counts)}."
    ]


def of_names(study: Study) -> list[str]:
    """The rankers by name, public ones and others."""
    public: list[str] = []
    recorded: list[str] = []
    for key, ranker in study.rankers.items():
        names = public if ranker.public else recorded
        names.append(study.called(key))
    sentences = []
    if public:
        sentences.append(f"Public runs rank all passages of MS MARCO: {', '.join(public)}.")
    sentences.append(f"Recorded for this study: {', '.join(recorded)}; no model runs here.")
    return sentences


def of_rankers(study: Study) -> list[str]:
    """The rankers of a study, and that none runs here."""
    rankers = []
    public = []
    for key, ranker in study.rankers.items():
        if ranker.public:
            public.append(f"{study.called(key)} ({ranker.about})")
        else:
            rankers.append(f"{study.called(key)} ({_KINDS[ranker.kind]}; {ranker.about})")
    sentences = []
    if public:
        sentences.append(f"Public runs: {'; '.join(public)}.")
    if rankers:
        sentences.append(f"Recorded for this study: {'; '.join(rankers)}.")
    return [*sentences, "No model runs here."]


def of_what_reproduces(study: Study) -> list[str]:
    """What the numbers stand for."""
    if study.basis == "replica":
        tables = (
            "Table 4.1, Figure 4.2 and Table 4.2 are replicas: other collections and other "
            "rankers than the thesis's"
        )
    else:
        tables = (
            "Tables 4.1 and 4.2 are computed on what the config names as the thesis's own data "
            "and rankers, and compared with the printed cells, which may lie "
            f"{study.tolerance:g} off beyond their precision"
        )
    return [
        "Figure 4.1 is drawn from what it prints.",
        f"{tables}; each claim above says whether it carries over, with its interval.",
        "The exchanged columns of Table 4.2 follow from the printed cells alone.",
    ]


# --- ties -----------------------------------------------------------------------------------------


def of_ties(tied: pd.DataFrame, tied_scores: str, cutoff: int) -> list[str]:
    """How many ranks are tied, and what is made of them."""
    # rankers without ties are passed over
    most_first = tied[tied["tied ranks"] > 0].sort_values("tied ranks", ascending=False)
    rankers = []
    for row in most_first.to_dict("records"):
        rankers.append(
            f"{row['tied ranks']} of {row['run']} on {row['queries']}, "
            f"in {row['queries with ties']} of its {row['number of queries']} lists"
        )
    rules = {
        "expected": "Every measure below is the mean over all orders of the documents that are "
        "tied in a list",
        "ranked": "Effectiveness breaks ties by document id, descending, and every other measure "
        "takes lists as ranked",
    }
    counts = "; ".join(rankers) or "none"
    return [
        f"Ranks up to {cutoff} that share their score with another: {counts}.",
        f"{rules[tied_scores]}.",
    ]


def of_moves(ranges: pd.DataFrame) -> list[str]:
    """Where the ranker that ties move most stands under two orders of ids, and over all orders."""
    sentences = []
    for (label, measure), by_run in ranges.set_index("run").groupby(["queries", "measure"]):
        moves = by_run["greatest"] - by_run["least"]
        run = moves.idxmax()
        if moves[run] < _LEAST_MOVE:
            continue
        # the place among rankers whose own ties are averaged
        unmoved = by_run["mean"].drop(run)
        score = by_run.loc[run, ["ids ascending", "ids descending", "least", "greatest"]]
        place = {order: 1 + int((unmoved > score[order]).sum()) for order in score.index}
        sentences.append(
            f"{measure} of {run} on {label} is {score['ids ascending']:.3f} with ties in the "
            f"order of ids (place {place['ids ascending']} of {len(by_run)}), "
            f"{score['ids descending']:.3f} in the reverse order "
            f"(place {place['ids descending']}), and from {score['least']:.3f} "
            f"(place {place['least']}) to {score['greatest']:.3f} "
            f"(place {place['greatest']}) over all orders."
        )
    return sentences or [f"The order of ties moves no mean by {_LEAST_MOVE}."]


# --- Table 4.1 ------------------------------------------------------------------------------------


def of_two_verdicts(table: pd.DataFrame, leads: Mapping[str, Evidence]) -> list[str]:
    """Which ranker each measure calls the fairest.

    ``leads``: of `claims.another_choice`, by query set.
    """
    sentences = []
    for label, lead in leads.items():
        scores = table.loc[label]
        neutral = scores["NFaiRR"].idxmax()
        balanced = scores["TExFAIR"].idxmax()
        if neutral == balanced:
            sentences.append(f"On {label} {neutral} has the highest mean of both measures.")
            continue
        sentences.append(
            f"On {label} {neutral} has the highest NFaiRR and {balanced} the highest TExFAIR; "
            f"{_of_lead(lead)}."
        )
    return sentences


def _of_lead(lead: Evidence) -> str:
    """Whether a lead shows that two measures choose different rankers."""
    if lead.estimate is None:
        return f"nothing follows from that, since {lead.reason}"
    # only a lead whose whole interval is above 0 shows a choice
    verdict = "not shown to be more than chance"
    if lead.low is not None and lead.low > 0:
        verdict = "so the measures do choose different rankers"
    return f"the smaller of their leads, less chance, is {_with_interval(lead, 3)}, {verdict}"


def of_fairer(tests: pd.DataFrame, study: Study) -> str:
    """How often a ranker is significantly fairer or less fair than the baseline (Table 4.1).

    ``tests``: of all rankers that findings are about, on all query sets.
    """
    counts = []
    for measure, rows in tests.groupby("measure", sort=False):
        fairer = rows["significant"] & (rows["difference"] > 0)
        less_fair = rows["significant"] & (rows["difference"] < 0)
        counts.append(f"{fairer.sum()} fairer and {less_fair.sum()} less fair by {measure}")
    rankers_by_set = tests[["queries", "run"]].drop_duplicates()
    sets = ", ".join(tests["queries"].unique())
    return (
        f"Of {len(rankers_by_set)} comparisons of a neural ranker with "
        f"{study.called(study.baseline)} ({sets}), significantly {'; '.join(counts)}."
    )


def of_differences(tests: pd.DataFrame, study: Study) -> str:
    """How far the rankers differ from the baseline, by query set (Table 4.1).

    ``tests``: of all rankers that findings are about, on all query sets.
    """
    by_set = []
    for label, of_set in tests.groupby("queries", sort=False):
        ranges = []
        for measure, rows in of_set.groupby("measure", sort=False):
            differences = rows["difference"]
            ranges.append(f"{measure} {differences.min():+.3f} to {differences.max():+.3f}")
        size = f"{of_set['units'].iloc[0]:,} queries, {of_set['run'].nunique()} rankers"
        by_set.append(f"on {label} ({size}) {', '.join(ranges)}")
    return f"Neural rankers less {study.called(study.baseline)}: {'; '.join(by_set)}."


def of_intervals(tests: pd.DataFrame) -> str:
    """How many rankers the intervals show to be fairer, or less fair, than the baseline."""
    above = int((tests["low"] > 0).sum())
    below = int((tests["high"] < 0).sum())
    return f"Intervals above zero: {above} of {len(tests)}; below zero: {below}."


def of_correlations(
    correlations: Mapping[str, Evidence], sets: Mapping[str, Sequence[str]]
) -> list[str]:
    """How strongly the two measures go together, and what is printed.

    ``sets``: by query set of the thesis, what stands for it.
    """
    parts = []
    for name, labels in sets.items():
        evidence = correlations[name]
        words = f"{_with_interval(evidence, 2)} on {' and '.join(labels)}"
        if evidence.printed is not None:
            words += f", printed {evidence.printed:.2f} on {name}"
        parts.append(words)
    return [
        f"Over the queries the two measures correlate with r = {'; '.join(parts)} "
        "(means over the rankers)."
    ]


def of_named(tests: pd.DataFrame, study: Study) -> list[str]:
    """How rankers that the thesis has as well differ from the baseline, here and in print.

    ``tests``: differences from the baseline by query set, run and measure.
    """
    if study.stands_for == "thesis":
        return []
    printed_rows = {study.called(key): ranker.printed for key, ranker in study.rankers.items()}
    parts = []
    for row in tests.to_dict("records"):
        printed_row = printed_rows[row["run"]]
        if printed_row:
            printed_set = study.printed_set(row["queries"])
            gap = printed_gap(printed_set, row["measure"], printed_row)
            parts.append(
                f"{row['measure']} on {row['queries']} {row['difference']:+.3f} "
                f"[{row['low']:.3f}, {row['high']:.3f}], printed {gap:+.3f}"
            )
    if not parts:
        return []
    names = ", ".join(dict.fromkeys(run for run in tests["run"] if printed_rows[run]))
    return [
        f"{names}, which the thesis has too, less {study.called(study.baseline)}: "
        f"{'; '.join(parts)}."
    ]


# --- cut-offs, the counterfactual, and other choices ----------------------------------------------


def of_cutoffs(curves: pd.DataFrame) -> list[str]:
    """How far each measure moves over the cut-offs, mean of rankers and query sets (Figure 4.2)."""
    by_curve = curves.groupby(["measure", "queries", "run"])["value"]
    moves = (by_curve.max() - by_curve.min()).groupby("measure").mean()
    moves = moves.sort_values(ascending=False)
    moves_in_words = "; ".join(f"{measure} by {move:.2f}" for measure, move in moves.items())
    lowest, deepest = curves["cutoff"].min(), curves["cutoff"].max()
    return [
        f"Between the cut-offs {lowest} and {deepest} the measures move, on average: "
        f"{moves_in_words}."
    ]


def of_overlaps(overlaps: pd.DataFrame | None, baseline: str) -> list[str]:
    """How little the rankers notice the counterfactual (Table 4.2), if that was recorded.

    ``overlaps``: indexed by query set and run, with a column CRBO.
    """
    if overlaps is None:
        return []
    parts = []
    for label, rows in overlaps["CRBO"].groupby("queries", sort=False):
        by_run = rows.droplevel("queries")
        others = by_run.drop(baseline, errors="ignore")
        # without the baseline, or without another ranker, nothing is compared
        if len(others) in (0, len(by_run)):
            continue
        parts.append(
            f"{by_run[baseline]:.3f} for {baseline} and {others.min():.3f} to "
            f"{others.max():.3f} for the others on {label}"
        )
    if not parts:
        return []
    return [
        f"CRBO, 1 for a ranker that does not notice the exchange of genders: {'; '.join(parts)}."
    ]


def of_choices(variants: pd.DataFrame) -> list[str]:
    """How far another choice changes the order of the rankers."""
    taus = variants["tau"].dropna()
    if taus.empty:
        return ["The rankers have equal scores: there is no order that a choice could change."]
    # a tau of 1 may lack its last bit
    if taus.min() > 1 - 1e-9:
        return [
            "No choice changes the order of the rankers by either measure, "
            "though it changes the scores."
        ]
    label, measure, choice = taus.idxmin()
    return [
        f"The order of the rankers changes most with {choice} "
        f"({measure} on {label}: tau {taus.min():.2f})."
    ]


def _with_interval(evidence: Evidence, digits: int) -> str:
    if evidence.estimate is None or evidence.low is None or evidence.high is None:
        return f"not known ({evidence.reason})"
    interval = f"[{evidence.low:.{digits}f}, {evidence.high:.{digits}f}]"
    return f"{evidence.estimate:.{digits}f} {interval}"
