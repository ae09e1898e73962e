"""Sentences of the notebook of chapter 3, made from its numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pandas as pd

from equipoise.measures.agreement import cohen_kappa
from equipoise_studies.satisfaction.annotation import Annotations
from equipoise_studies.satisfaction.claims import Run, by_collection, few_shot, fine_tuned
from equipoise_studies.satisfaction.data import COLLECTIONS
from equipoise_studies.satisfaction.estimates import Ends, Rates
from equipoise_studies.satisfaction.study import Study

READERS = {1: "one reader", 2: "two annotators, and a third where they differ"}


def _percent(ends: Ends) -> str:
    """A share in percent with its interval."""
    share = ends.evidence("a share")
    # There is none where no estimator of a kind is left.
    if share.estimate is None or share.low is None or share.high is None:
        return "0% [nan, nan]"
    return f"{100 * share.estimate:.0f}% [{100 * share.low:.0f}, {100 * share.high:.0f}]"


def _of_shares(shares: pd.DataFrame, template: str, name: str, shown: str) -> str:
    """A sentence of a row of the table of readings."""
    row = shares[(shares["collection"] == name) & (shares["shown"] == shown)].iloc[0]
    return template.format(**row.to_dict())


def of_readings(shares: pd.DataFrame) -> list[str]:
    """How many of the swapped responses read do not do what their label says."""
    if shares.empty:
        return [
            "Every counterfactual was confirmed by people: no label of theirs is taken to be in "
            "doubt."
        ]
    overall = (
        "Of {read} swapped responses that one language model assistant read, {no} do not turn the "
        "user's mind ({share:.0%}, 95% interval {low:.0%} to {high:.0%}), and {unclear} are "
        "unclear."
    )
    of_collection = (
        "Of the {read} of {collection} that are shown as dissatisfied, {no} do not and {unclear} "
        "are unclear: up to {at_most:.0%} of such labels may be wrong."
    )
    sentences = [_of_shares(shares, overall, "all", "all")]
    for name in shares["collection"].unique():
        if name != "all":
            sentences.append(_of_shares(shares, of_collection, name, "dissatisfied"))
    return sentences


def of_sources(study: Study) -> str:
    """What the two collections of the thesis are."""
    phrases = []
    for name in COLLECTIONS:
        source = study.collections[name]
        about = source.about or f"item uss, {source.upstream}; parts of item asap"
        phrases.append(f"{name} ({about})")
    sources = " and ".join(phrases)
    if study.stands_for == "thesis" and study.other_data:
        sources += f"; another collection than the thesis's: {study.other_data}"
    return sources


def of_labelled(study: Study) -> str:
    """What was written, and who labelled it, as the data of a claim."""
    if study.writer is None:
        return "no written responses"
    return f"responses of {study.writer.about or study.writer.model}, labels of {study.writer.who}"


def _of_agreement(name: str, annotations: Annotations) -> str:
    """How far the annotators agree on what was written, and with the raters on what was there."""
    coherence, satisfaction = annotations.agreement().values()
    # Of the responses that were there, the data have ratings to compare with.
    own_responses = annotations.settled[~annotations.settled["written"]]
    with_ratings = cohen_kappa(own_responses["satisfied"], ~own_responses["dissatisfied"])
    return (
        f"On {name} the two agree for {coherence:.0f}% of these responses on whether they fit, and "
        f"on satisfaction with a kappa of {satisfaction:.2f} (0 is chance, 1 complete); on the "
        "responses that were there, their labels and the ratings of the data have one of "
        f"{with_ratings:.2f}."
    )


def of_written(
    study: Study, annotations: Mapping[str, Annotations], written: pd.DataFrame
) -> list[str]:
    """Who wrote last responses, how many, and who read them."""
    if study.writer is None or not annotations:
        return ["The study has no last responses written."]
    writer = study.writer.about or study.writer.model
    way = "an endpoint" if study.writer.endpoint else "its chat template"
    sentences = [
        f"Given the prompt of Figure 3.6 through {way}, {writer} wrote "
        f"{written['written'].sum():,} responses; of {written['labelled'].sum():,} read by "
        f"{READERS[study.writer.readers]} ({study.writer.who}), {written['turned'].sum():,} do "
        f"what was asked and {written['coherent'].sum():,} fit the dialogue."
    ]
    # One reader agrees with nobody, and so does who has not finished.
    if study.writer.readers == 2 and written["labelled"].all():
        for name, collection_annotations in annotations.items():
            sentences.append(_of_agreement(name, collection_annotations))
    if study.counterfactuals == "written":
        sentences.append("They make up the test set CF.")
    else:
        sentences.append("They are in no test set.")
    return sentences


def of_estimators(study: Study, estimated: pd.DataFrame) -> list[str]:
    """What each estimator is, and of how many dialogues it labelled samples, where not of all."""
    sentences = []
    for name, estimator in study.estimators.items():
        sentence = f"{name} is {estimator.about}"
        # 0 stands for all dialogues.
        if estimator.dialogues:
            of_main = (estimated["system"] == name) & (estimated["world"] == "Main")
            samples = estimated[of_main]
            dialogues = samples["sample"].str.partition(":")[0]
            counts = dialogues.groupby(samples["collection"]).nunique()
            phrases = [f"{count} of {collection}" for collection, count in counts.items()]
            sentence += f"; it labelled the dialogues of a random part: {', '.join(phrases)}"
        sentences.append(f"{sentence}.")
    return sentences


def of_chance(left_out: Collection[Run]) -> str:
    """Which estimators are at chance level."""
    return f"At chance level on Main: {by_collection(left_out) or 'none'}."


def of_constant(counted: pd.DataFrame) -> str:
    """Which estimators call no sample dissatisfied."""
    wrongly_dissatisfied = counted["satisfied"] - counted["correct_satisfied"]
    called = counted["correct_dissatisfied"] + wrongly_dissatisfied
    by_run = called.groupby([counted["collection"], counted["run"]]).sum()
    runs = [run for run in by_run.index[by_run == 0] if run[1] != "constant"]
    return (
        "Estimators that call no sample of either set dissatisfied, as the constant one: "
        f"{by_collection(runs) or 'none'}."
    )


def of_labels_by_chance(tested: pd.DataFrame, left_out: Collection[Run]) -> str:
    """Which few-shot estimators are left out for their labels, and how often they say so."""
    main = tested[tested["world"] == "Main"]
    shares = main.groupby(["collection", "run"])["predicted"].mean()
    phrases = []
    for name, run in sorted(left_out):
        phrases.append(f"{run} on {name} ({shares[name, run]:.1%} of Main)")
    return (
        "Few-shot estimators that are not shown to say dissatisfied more often of dissatisfied "
        "samples than of others, and are left out, with how often they say so: "
        f"{'; '.join(phrases) or 'none'}."
    )


def of_ends(curves: pd.DataFrame) -> str:
    """Mean accuracy of kinds of estimators at both ends of the curves, or by threshold."""
    accuracy = curves[curves["measure"] == "Acc"].sort_values("ratio")
    values = accuracy.groupby(["collection", "run"])["value"]
    ends = pd.DataFrame({"first": values.first(), "last": values.last()})
    kinds = {"fine-tuned": fine_tuned(ends.index), "few-shot": few_shot(ends.index)}
    # The same estimators at two thresholds: then these are compared.
    if any("(chosen)" in run for _, run in ends.index):
        kinds = {}
        for threshold in ("usual", "chosen"):
            runs = [run for run in ends.index if threshold in run[1]]
            kinds[f"at the {threshold} threshold"] = runs
    phrases = []
    for kind, runs in kinds.items():
        if runs:
            means = ends.loc[runs].mean()
            phrases.append(f"{kind} {means['first']:.2f} and {means['last']:.2f}")
    return (
        "Mean accuracy with as many dissatisfied samples as Main holds, and with no others: "
        f"{'; '.join(phrases)}"
    )


def of_undecided(recorded: pd.DataFrame) -> str:
    """How many answers of few-shot estimators held no label."""
    few_shot_scores = recorded.loc[recorded["setup"] == "Few-shot", "dissatisfaction"]
    n_undecided = int(few_shot_scores.isna().sum())
    if not n_undecided:
        return "Every answer of a few-shot estimator held a label."
    return (
        f"{n_undecided:,} of {len(few_shot_scores):,} answers of few-shot estimators held no "
        "label: these are no answers, and count neither as satisfied nor as dissatisfied."
    )


def answer(
    printed: Rates, rates: Rates, shares: pd.DataFrame, left_out: Collection[Run]
) -> list[str]:
    """What the chapter's question comes to, in the printed numbers and in the replica."""
    thesis, replica = printed.kept(), rates.kept()
    thesis_runs = thesis.value.columns
    thesis_fine_tuned = _percent(thesis.mean(fine_tuned(thesis_runs)))
    thesis_few_shot = _percent(thesis.mean(few_shot(thesis_runs)))

    replica_fine_tuned = _percent(replica.mean(fine_tuned(replica.value, left_out=left_out)))
    phrases = []
    for run in few_shot(replica.value):
        if run not in left_out:
            phrases.append(f"{_percent(replica.mean([run]))} on {run[0]}")
    replica_few_shot = "is at chance level, by its scores or by its labels, and is not compared"
    if phrases:
        replica_few_shot = f"keeps {' and '.join(phrases)}"

    sentences = [
        f"By the printed numbers, fine-tuned models keep {thesis_fine_tuned} of their accuracy on "
        f"Main when all users are dissatisfied, and few-shot models {thesis_few_shot}.",
        "In the replica, with small models and swapped responses, fine-tuned estimators keep "
        f"{replica_fine_tuned}; the few-shot one {replica_few_shot} (95% intervals in brackets).",
    ]
    if not shares.empty:
        doubt = (
            "The replica's intervals hold the doubt about swapped responses: of {read} that one "
            "language model assistant read, {no} do not turn the user's mind ({share:.0%}, 95% "
            "interval {low:.0%} to {high:.0%}), and {unclear} are unclear."
        )
        sentences.append(_of_shares(shares, doubt, "all", "all"))
    return sentences
