"""Prose of chapter 4 that follows from values."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from equipoise_compendium.claims import Evidence
from equipoise_studies.ranking_bias.data import CountedCollection
from equipoise_studies.ranking_bias.study import Study

_KINDS = {
    "bm25": "it counts the words that query and document share",
    "splade": "learned sparse: a model weighs the words of query and document",
    "dense": "dense: a vector for each text",
    "cross-encoder": "a re-ranker: one model reads query and document together",
    "run files": "its runs are read",
}


def names_of(collections: Mapping[str, CountedCollection]) -> str:
    """Which collection stands for each query set, by name."""
    names = [f"{collection.name} for {label}" for label, collection in collections.items()]
    return " and ".join(names)


def of_collections(collections: Mapping[str, CountedCollection]) -> list[str]:
    """What stands for each query set, in words."""
    return [f"{label} is {collection.about}." for label, collection in collections.items()]


def of_rankers(study: Study) -> list[str]:
    """The rankers of a study, and that none runs here."""
    said = "; ".join(
        f"{study.called(key)} ({_KINDS[ranker.kind]}; {ranker.about})"
        for key, ranker in study.rankers.items()
    )
    return [
        f"There are {len(study.rankers)} rankers: {said}.",
        "What they returned is recorded; no model runs here.",
    ]


def of_what_reproduces(study: Study) -> list[str]:
    """What the numbers stand for."""
    what = {
        "replica": "Table 4.1, Figure 4.2 and Table 4.2 are replicas: other collections and other rankers than the "
        "thesis's",
        "thesis": "Tables 4.1 and 4.2 are computed on what the config names as the thesis's own data and rankers, and "
        f"compared with the printed cells, which may lie {study.tolerance:g} off beyond their precision",
    }
    first = "Figure 4.1 is drawn from what it prints."
    last = "The exchanged columns of Table 4.2 follow from the printed cells alone."
    return [
        first,
        f"{what[study.stands_for]}; each claim above says whether it carries over, with its interval.",
        last,
    ]


def of_ties(tied: pd.DataFrame, tied_scores: str, cutoff: int) -> list[str]:
    """How many ranks are tied, and what is made of them."""
    rows = tied[tied["tied ranks"] > 0].sort_values("tied ranks", ascending=False)
    found = "; ".join(
        f"{row['tied ranks']} of {row['run']} on {row['queries']}, in {row['queries with ties']} of its "
        f"{row['number of queries']} lists"
        for row in rows.to_dict("records")
    )
    rule = {
        "expected": "Every measure below is the mean over all orders of the documents that are tied in a list",
        "ranked": "Effectiveness breaks ties by document id, descending, and every other measure takes lists as ranked",
    }
    return [
        f"Ranks up to {cutoff} that share their score with another: {found or 'none'}.",
        f"{rule[tied_scores]}.",
    ]


def of_cutoffs(curves: pd.DataFrame) -> list[str]:
    """How far each measure moves over the cut-offs, mean of the rankers and query sets (Figure 4.2)."""
    spread = curves.groupby(["measure", "queries", "run"])["value"].agg(
        lambda values: values.max() - values.min()
    )
    by_measure = spread.groupby("measure").mean().sort_values(ascending=False)
    ends = curves["cutoff"].agg(["min", "max"])
    said = "; ".join(f"{name} by {value:.2f}" for name, value in by_measure.items())
    return [
        f"Between the cut-offs {ends['min']} and {ends['max']} the measures move, on average: {said}."
    ]


def of_substitution(account: pd.DataFrame) -> list[str]:
    """How much of each collection was written anew, and how many queries can notice by their words alone."""
    rows = account.set_index("what").to_dict()
    return [
        f"On {name}, {told['documents changed'] / told['documents']:.0%} of the documents were changed, and "
        f"substituting twice gives back {told['share of words restored']:.1%} of the words; "
        f"{told['queries with such a word']} of {told['queries']} queries hold a word that was substituted somewhere."
        for name, told in rows.items()
    ]


def of_choices(variants: pd.DataFrame) -> list[str]:
    """How far another choice changes the order of the rankers."""
    taus = variants["tau"].dropna()
    if taus.empty:
        return ["The rankers have equal scores: there is no order that a choice could change."]
    (label, measure, choice), tau = taus.idxmin(), taus.min()
    if tau > 1 - 1e-9:
        return [
            "No choice changes the order of the rankers by either measure, though it changes the scores."
        ]
    return [
        f"The order of the rankers changes most with {choice} ({measure} on {label}: tau {tau:.2f})."
    ]


def of_moves(ranges: pd.DataFrame) -> list[str]:
    """Where the ranker that ties move most stands under two orders of ids, by each measure and query set."""
    said = []
    for (label, measure), part in ranges.set_index("run").groupby(["queries", "measure"]):
        ways = part[["ids ascending", "ids descending", "least", "greatest"]]
        moved = (part["greatest"] - part["least"]).idxmax()
        if part["greatest"][moved] - part["least"][moved] < 0.0005:
            continue
        places = [1 + int((part["mean"].drop(moved) > ways.loc[moved, way]).sum()) for way in ways]
        said.append(
            f"{measure} of {moved} on {label} is {ways.loc[moved, 'ids ascending']:.3f} with ties in the order of ids "
            f"(place {places[0]} of {len(part)}), {ways.loc[moved, 'ids descending']:.3f} in the reverse order "
            f"(place {places[1]}), and from {ways.loc[moved, 'least']:.3f} (place {places[2]}) to "
            f"{ways.loc[moved, 'greatest']:.3f} (place {places[3]}) over all orders."
        )
    return said or ["The order of ties moves no mean by 0.0005."]


def of_two_verdicts(table: pd.DataFrame, leads: Mapping[str, Evidence]) -> list[str]:
    """Which ranker each measure calls the fairest; ``leads``: of `claims.another_choice`, by query set."""
    said = []
    for label, lead in leads.items():
        scores = table.loc[label, ["NFaiRR", "TExFAIR"]]
        neutral, balanced = scores.idxmax()
        if neutral == balanced:
            said.append(f"On {label} {neutral} has the highest mean of both measures.")
            continue
        (first, second), (third, fourth) = scores.loc[[neutral, balanced]].to_numpy()
        verdict = (
            "so the two measures choose different rankers"
            if lead.low is not None and lead.low > 0
            else "so they are not shown to choose different rankers"
        )
        said.append(
            f"On {label} {neutral} has the highest NFaiRR ({first:.3f}; TExFAIR {second:.3f}) and {balanced} the "
            f"highest TExFAIR ({fourth:.3f}; NFaiRR {third:.3f}); the smaller of the two leads is "
            f"{_with_interval(lead, 3)}, {verdict}."
        )
    return said


def of_composition(composition: pd.DataFrame, correlations: Mapping[str, Evidence]) -> list[str]:
    """What the lists hold beside how strongly the two measures go together."""
    return [
        f"On {row['queries']} {row['judged for the query']:.0%} of the documents are judged for the query; "
        f"{row['leaning']:.0%} lean to one gender, and {row['leaning as their list']:.0%} of these lean as most of "
        f"their list does; the two measures correlate with r = {_with_interval(correlations[row['queries']], 2)}."
        for row in composition.to_dict("records")
    ]


def of_correlations(correlations: Mapping[str, Evidence]) -> list[str]:
    """How strongly the two measures go together, and what is printed."""
    parts = [
        f"{_with_interval(found, 2)} on {label}, printed {found.printed:.2f}"
        for label, found in correlations.items()
    ]
    return [
        f"Over the queries the two measures correlate with r = {'; '.join(parts)} (means over the rankers)."
    ]


def _with_interval(found: Evidence, digits: int) -> str:
    if found.estimate is None or found.low is None or found.high is None:
        return f"not known ({found.reason})"
    return f"{found.estimate:.{digits}f} [{found.low:.{digits}f}, {found.high:.{digits}f}]"
