"""Sentences of the notebook of chapter 3, made from its numbers."""

from __future__ import annotations

from collections.abc import Collection

import pandas as pd

from equipoise.measures.agreement import cohen_kappa
from equipoise_studies.satisfaction.claims import Run, by_collection, few_shot, fine_tuned
from equipoise_studies.satisfaction.data import COLLECTIONS
from equipoise_studies.satisfaction.estimates import Ends, Rates
from equipoise_studies.satisfaction.study import Study
from equipoise_studies.satisfaction.tables import written_labels


def _percent(ends: Ends) -> str:
    """A share in percent with its interval."""
    found = ends.evidence("a share")
    low, high = (float("nan") if end is None else 100 * end for end in (found.low, found.high))
    return f"{100 * float(found.estimate or 0):.0f}% [{low:.0f}, {high:.0f}]"


def _read(shares: pd.DataFrame, form: str, name: str, shown: str) -> str:
    """A sentence of a row of the table of readings."""
    return form.format(
        **shares[(shares["collection"] == name) & (shares["shown"] == shown)].to_dict("records")[0]
    )


def of_readings(shares: pd.DataFrame) -> list[str]:
    """How many of the swapped responses read do not do what their label says."""
    if shares.empty:
        return [
            "Every counterfactual was confirmed by people: no label of theirs is taken to be in doubt."
        ]
    whole = (
        "Of {read} swapped responses read, {no} do not turn the user's mind ({share:.0%}, 95% interval {low:.0%} to "
        "{high:.0%}), and {unclear} are unclear."
    )
    each = (
        "Of the {read} of {collection} that are shown as dissatisfied, {no} do not and {unclear} are unclear: up to "
        "{at_most:.0%} of such labels may be wrong."
    )
    names = [name for name in shares["collection"].unique() if name != "all"]
    return [
        _read(shares, whole, "all", "all"),
        *(_read(shares, each, name, "dissatisfied") for name in names),
    ]


def of_sources(study: Study) -> str:
    """What the two collections of the thesis are."""
    named = [(name, study.collections[name]) for name in COLLECTIONS]
    return " and ".join(
        f"{name} ({one.about or f'item uss, {one.upstream}; parts of item asap'})"
        for name, one in named
    )


def _agreed(study: Study, name: str) -> str:
    """How far the annotators of a collection agree on what was written, and with its raters on what was there."""
    asked = study.annotations(study.plain[name])
    fits, satisfied = asked.agreement().values()
    there = asked.settled[~asked.settled["written"]]
    rated = cohen_kappa(there["satisfied"], ~there["dissatisfied"])
    told = f"On {name} the two agree for {fits:.0f}% of these responses on whether they fit, and on satisfaction with a"
    own = "on the responses that were there, their labels and the ratings of the data have one of"
    return f"{told} kappa of {satisfied:.2f} (0 is chance, 1 complete); {own} {rated:.2f}."


def of_written(study: Study) -> list[str]:
    """Who wrote last responses, how many, and who read them."""
    if study.writer is None or study.writer.annotations is None:
        return ["The study has no last responses written."]
    table = written_labels(study)
    readers = {1: "one reader", 2: "two annotators, and a third where they differ"}[
        study.writer.readers
    ]
    way = "an endpoint" if study.writer.endpoint else "its chat template"
    writer = study.writer.about or study.writer.model
    return [
        f"Given the prompt of Figure 3.6 through {way}, {writer} wrote {table['written'].sum():,} responses; of "
        f"{table['labelled'].sum():,} read by {readers} ({study.writer.who}), {table['turned'].sum():,} do what was "
        f"asked and {table['coherent'].sum():,} fit the dialogue.",
        *(
            _agreed(study, name)
            for name in COLLECTIONS
            if study.writer.readers == 2 and table["labelled"].all()
        ),
        "They make up the test set CF."
        if study.counterfactuals == "written"
        else "They are in no test set.",
    ]


def of_estimators(study: Study, estimated: pd.DataFrame) -> list[str]:
    """What each estimator is, and of how many dialogues it labelled samples, where not of all."""
    told = []
    for name, one in study.estimators.items():
        own = estimated[(estimated["system"] == name) & (estimated["world"] == "Main")]
        homes = own["sample"].str.partition(":")[0].groupby(own["collection"]).nunique()
        part = ", ".join(f"{count} of {collection}" for collection, count in homes.items())
        told.append(
            f"{name} is {one.about}{f'; it labelled the dialogues of a random part: {part}' if one.dialogues else ''}."
        )
    return told


def of_chance(left_out: Collection[Run]) -> str:
    """Which estimators are at chance level."""
    return f"At chance level on Main: {by_collection(left_out) or 'none'}."


def of_constant(counted: pd.DataFrame) -> str:
    """Which estimators call no sample dissatisfied."""
    called = counted["correct_dissatisfied"] + counted["satisfied"] - counted["correct_satisfied"]
    runs = called.groupby([counted["collection"], counted["run"]]).sum()
    same = by_collection(key for key in runs.index[runs == 0] if key[1] != "constant")
    return f"Estimators that call no sample of either set dissatisfied, as the constant one: {same or 'none'}."


def of_labels_by_chance(tested: pd.DataFrame, left_out: Collection[Run]) -> str:
    """Which few-shot estimators are left out for their labels, and how often they say dissatisfied."""
    said = tested[tested["world"] == "Main"].groupby(["collection", "run"])["predicted"].mean()
    told = "; ".join(
        f"{run} on {name} ({said[name, run]:.1%} of Main)" for name, run in sorted(left_out)
    )
    return (
        "Few-shot estimators that are not shown to say dissatisfied more often of dissatisfied samples than of others, "
        f"and are left out, with how often they say so: {told or 'none'}."
    )


def of_ends(curves: pd.DataFrame) -> str:
    """Mean accuracy of kinds of estimators at both ends of the curves; at both thresholds where there are two."""
    own = (
        curves[curves["measure"] == "Acc"]
        .sort_values("ratio")
        .groupby(["collection", "run"])["value"]
    )
    ends = pd.DataFrame({"first": own.first(), "last": own.last()})
    kinds = {"fine-tuned": fine_tuned(ends.index), "few-shot": few_shot(ends.index)}
    if any("(chosen)" in run for _, run in ends.index):
        kinds = {
            f"at the {cut} threshold": [run for run in ends.index if cut in run[1]]
            for cut in ("usual", "chosen")
        }
    told = [
        f"{kind} {ends.loc[runs, 'first'].mean():.2f} and {ends.loc[runs, 'last'].mean():.2f}"
        for kind, runs in kinds.items()
        if runs
    ]
    return f"Mean accuracy with as many dissatisfied samples as Main holds, and with no others: {'; '.join(told)}"


def of_undecided(recorded: pd.DataFrame) -> str:
    """How many answers of few-shot estimators held no label."""
    none = int((recorded.loc[recorded["setup"] == "Few-shot", "dissatisfaction"] == 0.5).sum())
    if not none:
        return "Every answer of a few-shot estimator held a label."
    return f"{none:,} answers of few-shot estimators held no label, and count as dissatisfied at the threshold of 0.5."


def answer(
    printed: Rates, rates: Rates, shares: pd.DataFrame, left_out: Collection[Run]
) -> list[str]:
    """What the chapter's question comes to, in the printed numbers and in the replica."""
    theirs, ours = printed.kept(), rates.kept()
    wide = theirs.value.columns
    keep = [_percent(theirs.mean(runs)) for runs in (fine_tuned(wide), few_shot(wide))]
    tuned = _percent(ours.mean(fine_tuned(ours.value, left_out=left_out)))
    each = [
        f"{_percent(ours.mean([run]))} on {run[0]}"
        for run in few_shot(ours.value)
        if run not in left_out
    ]
    few = (
        f"keeps {' and '.join(each)}"
        if each
        else "is at chance level, by its scores or by its labels, and is not compared"
    )
    doubt = (
        "The replica's intervals hold the doubt about swapped responses: of {read} read, {no} do not turn the user's "
        "mind ({share:.0%}, 95% interval {low:.0%} to {high:.0%}), and {unclear} are unclear."
    )
    return [
        f"By the printed numbers, fine-tuned models keep {keep[0]} of their accuracy on Main when all users are "
        f"dissatisfied, and few-shot models {keep[1]}.",
        f"In the replica, with small models and swapped responses, fine-tuned estimators keep {tuned}; the few-shot "
        f"one {few} (95% intervals in brackets).",
        *([] if shares.empty else [_read(shares, doubt, "all", "all")]),
    ]
