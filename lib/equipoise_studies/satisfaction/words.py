"""Sentences of the notebook of chapter 3, made from its numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pandas as pd

from equipoise.measures.agreement import cohen_kappa
from equipoise_compendium.printed import printed_table
from equipoise_studies.satisfaction.annotation import Annotations
from equipoise_studies.satisfaction.claims import (
    Run,
    by_collection,
    change_on_cf,
    few_shot,
    fine_tuned,
)
from equipoise_studies.satisfaction.data import COLLECTIONS
from equipoise_studies.satisfaction.estimates import Ends, Rates
from equipoise_studies.satisfaction.study import Study

LEAST_CHANGE = 0.1
"""Change of a mean from which a title says that it rises or falls."""

MEANINGS = {
    "Main": "real dialogues of the test part",
    "swapped": "Main, with the last response of another dialogue, and its label",
    "read": "swapped responses that a language model assistant read, to see if their labels fit",
    "written": "Main, with a last response written by our language model; in no test set",
    "CF": "Main, with a last response that was written, and confirmed by people",
}
"""What a set of samples holds, by its name."""

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
        "Of {read} swapped responses that one language model assistant read, {no} would not change "
        "the user's rating ({share:.0%}, 95% interval {low:.0%} to {high:.0%}), and {unclear} are "
        "unclear."
    )
    of_collection = (
        "Of the {read} of {collection} that are labelled dissatisfied, {no} would not and "
        "{unclear} are unclear: up to {at_most:.0%} of such labels may be wrong."
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


def sample_sets(
    study: Study, read: pd.DataFrame, annotations: Mapping[str, Annotations]
) -> pd.DataFrame:
    """What each set of samples is called, what it holds, and its size with the share dissatisfied.

    ``read``: the swapped responses that were read, as of `readings.readings`.
    """
    sizes = {}
    for name in COLLECTIONS:
        collection = study.test_sets[name]
        labels = {
            "Main": collection.part("test")["dissatisfied"],
            study.world: collection.turned["dissatisfied"],
            "read": read.loc[read["collection"] == name, "shown"] == "dissatisfied",
        }
        if name in annotations:
            items = annotations[name].items
            labels["written"] = items.loc[items["written"], "dissatisfied"]
        counts = {key: (series.sum(), len(series)) for key, series in labels.items()}
        if study.world == "swapped":
            printed = printed_table("thesis/table-3.5").set_index("label")[f"{name} CF"].astype(int)
            counts["CF"] = (printed["Dissatisfaction"], printed["Total"])
        sizes[name] = {
            key: f"{total:,} ({dissatisfied / total:.0%})"
            for key, (dissatisfied, total) in counts.items()
            if total
        }
    meanings = pd.Series(MEANINGS, name="what it holds").rename_axis("set")
    table = pd.DataFrame(sizes).rename_axis("set").join(meanings)
    # In the order in which they are explained.
    in_order = [key for key in MEANINGS if key in table.index]
    return table.loc[in_order, ["what it holds", *COLLECTIONS]].reset_index()


def of_labelled(study: Study) -> str:
    """What was written, and who labelled it, as the data of a claim."""
    if study.writer is None:
        return "no written responses"
    return f"responses of {study.writer.about or study.writer.model}, labels of {study.writer.who}"


def _of_agreement(annotations: Mapping[str, Annotations]) -> str:
    """How far the annotators agree on what was written, and with the raters on what was there."""
    agreed = []
    with_ratings = []
    for name, collection_annotations in annotations.items():
        coherence, satisfaction = collection_annotations.agreement().values()
        agreed.append(
            f"on {name} they agree for {coherence:.0f}% on whether a response fits, and on "
            f"satisfaction with a kappa of {satisfaction:.2f}"
        )
        # Of the responses that were there, the data have ratings to compare with.
        settled = collection_annotations.settled
        own_responses = settled[~settled["written"]]
        kappa = cohen_kappa(own_responses["satisfied"], ~own_responses["dissatisfied"])
        with_ratings.append(f"{kappa:.2f} on {name}")
    return (
        f"Of these, {'; '.join(agreed)} (0 is chance, 1 complete). With the labels of the data, "
        "on the responses that were there, theirs have a kappa of only "
        f"{' and '.join(with_ratings)}."
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
        sentences.append(_of_agreement(annotations))
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


def title_of_curves(curves: pd.DataFrame, measure: str, name: str) -> str:
    """A figure's title: a measure's mean at both ends of the curves, by kind or by threshold.

    ``measure``: as in the table of curves; ``name``: what the title calls it.
    """
    of_measure = curves[curves["measure"] == measure].sort_values("ratio")
    values = of_measure.groupby(["collection", "run"])["value"]
    ends = pd.DataFrame({"first": values.first(), "last": values.last()})
    kinds = {
        "of fine-tuned estimators": fine_tuned(ends.index),
        "of few-shot ones": few_shot(ends.index),
    }
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
            phrases.append(f"{kind} {_change(means['first'], means['last'])}")
    return f"As all users become dissatisfied, mean {name}\n" + ",\n".join(phrases)


def _change(first: float, last: float) -> str:
    """From what to what, and whether that is up, down or hardly any change."""
    verb = "goes"
    if last - first > LEAST_CHANGE:
        verb = "rises"
    elif first - last > LEAST_CHANGE:
        verb = "falls"
    return f"{verb} from {first:.2f} to {last:.2f}"


def of_accuracy_and_recall(printed: Rates) -> str:
    """Why few-shot models keep their accuracy from Main to CF, and yet gain in macro recall."""
    points = {}
    for score in ("Acc", "R"):
        change = change_on_cf(printed, score)
        points[score] = change.iloc[0].mean()
    return (
        "Accuracy counts samples, so it follows the more common label, which is satisfied on Main "
        "and dissatisfied on CF; macro recall gives both labels the same weight. That is why the "
        f"few-shot models' mean accuracy changes by {points['Acc']:+.1f} points from Main to CF, "
        f"and their mean macro recall by {points['R']:+.1f}: they find more of CF's dissatisfied "
        "samples than of Main's."
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
            "The replica's intervals include the uncertainty about swapped responses: of {read} "
            "that one language model assistant read, {no} would not change the user's rating "
            "({share:.0%}, 95% interval {low:.0%} to {high:.0%}), and {unclear} are unclear."
        )
        sentences.append(_of_shares(shares, doubt, "all", "all"))
    return sentences
