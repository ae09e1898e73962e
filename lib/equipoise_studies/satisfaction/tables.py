"""Tables of chapter 3 that are computed from data: of the rated dialogues and swapped responses, of the replica."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import get_args

import numpy as np
import pandas as pd

from equipoise.arrays import Integers
from equipoise.measures.agreement import cohen_kappa
from equipoise.statistics import bootstrap_interval
from equipoise_studies.satisfaction.accuracy import (
    COUNTS,
    SCORES,
    balanced_threshold,
    binary_scores,
)
from equipoise_studies.satisfaction.agreement import shared_context_jaccard
from equipoise_studies.satisfaction.data import COLLECTIONS, Collection, load_relabelled
from equipoise_studies.satisfaction.dialogues import Ties, label_of, without_dissenters
from equipoise_studies.satisfaction.redrawn import interval, label_rates, shared
from equipoise_studies.satisfaction.robustness import robustness_table
from equipoise_studies.satisfaction.study import Study
from equipoise_studies.satisfaction.systems import constant

RUN = ["collection", "run"]
"""Columns that identify an estimator."""


# --- the rated dialogues --------------------------------------------------------------------------


def rating_counts(held: Mapping[str, Collection]) -> pd.DataFrame:
    """Rated rows by rating, for each collection and each rule that makes one rating of several."""
    counts: dict[tuple[str, str], Integers] = {}
    for name, part in held.items():
        ratings = part.dialogues[part.dialogues["speaker"] == "USER"].set_index("dialogue")[
            "ratings"
        ]
        labels = {str(rule): label_of(ratings.tolist(), rule) for rule in get_args(Ties)}
        labels["four raters"] = label_of(without_dissenters(ratings).tolist())
        counts |= {
            (name, rule): np.bincount(found, minlength=6)[1:] for rule, found in labels.items()
        }
    return pd.DataFrame(counts, index=pd.RangeIndex(1, 6, name="rating"))


def label_table(counts: pd.DataFrame, rule: str) -> pd.DataFrame:
    """Table 3.1: ratings by one rule, and as labels."""
    if rule not in (rules := counts.columns.unique(level=1)):
        raise ValueError(f"no rule named {rule!r}; there are {', '.join(rules)}")
    chosen = counts.xs(rule, axis=1, level=1)
    chosen.loc["Dissatisfaction"] = chosen.loc[[1, 2]].sum()
    chosen.loc["Satisfaction"] = chosen.loc[[3, 4, 5]].sum()
    return chosen.set_axis(chosen.index.map(str)).rename_axis("rating").reset_index()


def rule_distances(counts: pd.DataFrame, printed: pd.DataFrame) -> pd.DataFrame:
    """How far each rule is from the printed Table 3.1, in labels that would have to move."""
    wanted = (
        printed.set_index("rating")
        .loc[counts.index.map(str)]
        .replace(",", "", regex=True)
        .astype(int)
    )
    moved = counts.sub(wanted.set_axis(counts.index), level=0).clip(lower=0).sum().swaplevel()
    return moved.rename_axis(["rule", "collection"]).reset_index(
        name="labels that would have to move"
    )


def part_sizes(held: Mapping[str, Collection]) -> pd.DataFrame:
    """Table 3.2: samples of each part by label."""
    columns = {}
    for name, part in held.items():
        for key, title in {"train": "Train", "valid": "Valid.", "test": "Test"}.items():
            truth = part.part(key)["dissatisfied"]
            columns[f"{name} {title}"] = [(~truth).sum(), truth.sum(), len(truth)]
    return (
        pd.DataFrame(columns, index=["Satisfaction", "Dissatisfaction", "Total"])
        .rename_axis("label")
        .reset_index()
    )


def all_turned(held: Mapping[str, Collection]) -> pd.DataFrame:
    """Every sample with another last response, with its collection."""
    return pd.concat([part.turned.assign(collection=name) for name, part in held.items()])


def turned_account(turned: pd.DataFrame) -> pd.DataFrame:
    """Samples turned in each direction; of swapped responses their donors, and how alike these are."""
    groups = turned.groupby(["collection", "dissatisfied"])
    account = groups.agg(samples=("sample", "size"))
    if "donor" in turned:
        account = groups.agg(
            samples=("sample", "size"),
            donors=("donor", "nunique"),
            similarity=("similarity", "median"),
        )
        account["most often taken"] = groups["donor"].agg(
            lambda donors: donors.value_counts().max()
        )
    named = account.reset_index().replace(
        {"dissatisfied": {True: "to dissatisfied", False: "to satisfied"}}
    )
    return named.rename(columns={"dissatisfied": "turned"})


def provenance(turned: pd.DataFrame) -> pd.DataFrame:
    """Every sample with another last response, and where that was taken from."""
    columns = ["collection", "sample", "donor", "service", "act", "rating", "similarity"]
    return turned[[column for column in columns if column in turned]]


def shown_turns(turned: pd.DataFrame, read: pd.DataFrame) -> pd.DataFrame:
    """One of each direction: a confirmed one, or of swapped ones found to flip the one most like its donor."""
    if read.empty:
        return turned.drop_duplicates("dissatisfied")
    flipped = turned.merge(read.loc[read["flips"] == "yes", ["collection", "sample"]])
    return flipped.loc[flipped.groupby("dissatisfied")["similarity"].idxmax()]


def world_sizes(held: Mapping[str, Collection]) -> pd.DataFrame:
    """Table 3.5: samples of Main and of the confirmed counterfactuals, by label."""
    columns = {}
    for name in COLLECTIONS:
        for title, part in {"Main": held[name].part("test"), "CF": held[name].turned}.items():
            truth = part["dissatisfied"]
            columns[f"{name} {title}"] = [(~truth).sum(), truth.sum(), len(truth)]
    return (
        pd.DataFrame(columns, index=["Satisfaction", "Dissatisfaction", "Total"])
        .rename_axis("label")
        .reset_index()
    )


def confirmed_rates(held: Mapping[str, Collection]) -> pd.DataFrame:
    """Table 3.4: test samples of each label that have a confirmed counterfactual, in percent."""
    columns = {}
    for name in COLLECTIONS:
        truth, turned = held[name].part("test")["dissatisfied"], held[name].turned["dissatisfied"]
        found = [
            turned.sum() / (~truth).sum(),
            (~turned).sum() / truth.sum(),
            len(turned) / len(truth),
        ]
        columns[name] = [100 * share for share in found]
    rates = pd.DataFrame(columns, index=["Satisfaction", "Dissatisfaction", "Overall"])
    return rates.rename_axis("data partition").reset_index()


def written_labels(study: Study) -> pd.DataFrame:
    """What became of last responses that were written: how many do what was asked, and fit, by what readers say."""
    columns = ["collection", "asked for", "written", "labelled", "turned", "coherent"]
    rows = []
    for name in (
        COLLECTIONS if study.writer is not None and study.writer.annotations is not None else ()
    ):
        asked = study.annotations(study.plain[name])
        own, found = asked.items[asked.items["written"]], asked.settled[asked.settled["written"]]
        for wanted, label in ((True, "dissatisfied"), (False, "satisfied")):
            part = found[found["dissatisfied"] == wanted]
            turned = int((part["satisfied"] != wanted).sum())
            there = int((own["dissatisfied"] == wanted).sum())
            rows.append((name, label, there, len(part), turned, int(part["coherent"].sum())))
    return pd.DataFrame(rows, columns=columns)


def relabelled_agreement(rng: np.random.Generator, resamples: int) -> pd.DataFrame:
    """Agreement of people and a language model on whole dialogues, in percent with a bootstrap interval, and kappa."""
    rows = []
    for name in COLLECTIONS:
        both = load_relabelled(name)[["human", "model"]]
        for kind, labels in {"three classes": both, "dissatisfied or not": both == 0}.items():
            same = (labels["human"] == labels["model"]).astype(float)
            low, high = bootstrap_interval(same, rng, resamples=resamples)
            kappa = cohen_kappa(labels["human"], labels["model"])
            rows.append((name, kind, len(both), 100 * same.mean(), 100 * low, 100 * high, kappa))
    return pd.DataFrame(
        rows, columns=["collection", "classes", "dialogues", "PA", "PA low", "PA high", "kappa"]
    )


# --- the replica ----------------------------------------------------------------------------------


def estimates(
    held: Mapping[str, Collection], recorded: pd.DataFrame, threshold: float
) -> pd.DataFrame:
    """Recorded predictions, and those of the constant estimator, beside the label of their sample.

    ``recorded``: as `equipoise_studies.satisfaction.data.predictions` returns them. ``threshold``:
    probability of dissatisfaction from which an estimator says so. Returns one row for each
    prediction that fits a sample; ``run`` names the estimator, ``predicted`` is True where it says
    dissatisfied.
    """
    keys = ["collection", "world", "sample"]
    samples = pd.concat(
        [part.worlds()[[*keys, "dissatisfied"]] for part in held.values()], ignore_index=True
    )
    few_shot = recorded["setup"] == "Few-shot"
    named = recorded["system"].where(few_shot & recorded["system"].str.contains("few-shot"))
    runs = recorded.assign(run=named.fillna(recorded["system"] + ", " + recorded["setup"]))
    tables = [runs.merge(samples, on=keys, validate="many_to_one")]
    for name, own in samples.groupby("collection"):
        tables.append(
            own.assign(run="constant", dissatisfaction=constant(own, held[str(name)].part("train")))
        )
    table = pd.concat(tables, ignore_index=True)
    return table.assign(predicted=table["dissatisfaction"] >= threshold)


def labels_by_chance(
    tested: pd.DataFrame, rng: np.random.Generator, resamples: int
) -> set[tuple[str, str]]:
    """Few-shot estimators whose labels may be chance on Main: the interval of Youden's J holds 0, as with one label."""
    own = tested[tested["run"].str.contains("ew-shot") & (tested["world"] == "Main")]
    if own.empty:
        return set()
    found = interval(label_rates(own, rng, resamples).T.groupby(level=RUN).sum(min_count=2).T - 1)
    return set(found.index[~(found["low"] > 0)])


def without(tested: pd.DataFrame, runs: Set[tuple[str, str]]) -> pd.DataFrame:
    """Predictions of all estimators but some."""
    return tested[~pd.MultiIndex.from_frame(tested[RUN]).isin(list(runs))] if runs else tested


def estimate_counts(table: pd.DataFrame) -> pd.DataFrame:
    """How many samples of each world an estimator labelled."""
    return pd.crosstab([table["run"], table["collection"]], table["world"]).reset_index()


def populations(counted: pd.DataFrame) -> pd.DataFrame:
    """How many samples of each label a world holds: as many as the constant estimator labels."""
    return counted.loc[
        counted["run"] == "constant", ["collection", "world", "satisfied", "dissatisfied"]
    ]


def replica_scores(counted: pd.DataFrame, population: pd.DataFrame, turned: str) -> pd.DataFrame:
    """Scores in percent on Main, on the turned samples and on both, as Table 3.6; counts of a part are scaled up."""
    full = counted[[*RUN, "world"]].merge(population, how="left")
    for label in ("satisfied", "dissatisfied"):
        full[f"correct_{label}"] = counted[f"correct_{label}"] / counted[label] * full[label]
    mixed = full.groupby(RUN)[COUNTS].sum().reset_index().assign(world="Mixed")
    replica = pd.concat([full, mixed], ignore_index=True)
    replica[list(SCORES)] = 100 * binary_scores(*(replica[column] for column in COUNTS))
    replica["world"] = pd.Categorical(replica["world"], ["Main", turned, "Mixed"])
    return replica.sort_values(["collection", "world", "run"])[
        ["collection", "world", "run", *SCORES]
    ]


def overview(replica: pd.DataFrame, areas: pd.DataFrame) -> pd.DataFrame:
    """A row for each estimator: accuracy, macro F1 and sensitivity on each test set, and the area on Main."""
    wide = replica[replica["world"] != "Mixed"].pivot_table(
        index=RUN, columns="world", values=["Acc", "F1", "sensitivity"], observed=True
    )
    worlds = list(wide.columns.unique("world"))
    named = {"Acc": "accuracy", "F1": "macro F1", "sensitivity": "sensitivity"}
    table = pd.DataFrame(
        {f"{world} {named[score]}": wide[score, world] for world in worlds for score in named}
    )
    main = interval(areas.xs("Main", axis=1, level="world"))
    main = main.rename(columns={"value": "AUC on Main", "low": "AUC low", "high": "AUC high"})
    return table.join(main).reset_index()


def area_table(areas: pd.DataFrame) -> pd.DataFrame:
    """Area under the receiver operating characteristic, with its interval, by estimator and world.

    ``areas``: of `equipoise_studies.satisfaction.redrawn.areas`.
    """
    return interval(areas).rename(columns={"value": "AUC"}).reset_index()


def on_shared_contexts(tested: pd.DataFrame) -> pd.DataFrame:
    """Predictions on the contexts that every estimator of their collection labelled."""
    runs = tested.groupby("collection")["run"].nunique()
    counted = (
        tested.groupby(["collection", "sample", "world"])["run"].nunique().reset_index(name="runs")
    )
    whole = counted[counted["runs"] == counted["collection"].map(runs)]
    return tested.merge(whole[["collection", "sample", "world"]])


def _index(pairs: pd.DataFrame) -> float:
    return shared_context_jaccard(*(pairs[world] for world in pairs))  # Main, and the turned one


def shared_contexts(tested: pd.DataFrame, rng: np.random.Generator, resamples: int) -> pd.DataFrame:
    """Table 3.7: the Jaccard index of contexts labelled correctly in Main and with another last response."""
    right = tested.assign(right=tested["predicted"] == tested["dissatisfied"])
    pairs = (
        right.pivot_table(index=[*RUN, "sample"], columns="world", values="right")
        .dropna()
        .astype(bool)
    )
    groups = pairs.groupby(RUN)
    index = pd.DataFrame({"contexts": groups.size(), "JSI": groups.apply(_index)})
    counts = shared(tested, rng, resamples)
    meet, join = (counts.xs(kind, axis=1, level="count") for kind in ("meet", "join"))
    return index.join(interval(meet / join)[["low", "high"]]).reset_index()


def chosen_thresholds(table: pd.DataFrame) -> pd.Series:
    """Threshold of each estimator but the constant one with the best balanced accuracy on the validation part."""
    valid = table[(table["world"] == "valid") & (table["run"] != "constant")]
    groups = valid.groupby(RUN)[["dissatisfied", "dissatisfaction"]]
    chosen = groups.apply(
        lambda part: balanced_threshold(part["dissatisfied"], part["dissatisfaction"])
    )
    return chosen.rename("threshold")


def at_thresholds(tested: pd.DataFrame, thresholds: pd.Series) -> pd.DataFrame:
    """Predictions of the estimators that have a threshold of their own, at that."""
    moved = tested.join(thresholds, on=RUN, how="inner")
    return moved.assign(predicted=moved["dissatisfaction"] >= moved["threshold"])


def calibration(thresholds: pd.Series, by_cut: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Accuracy and macro recall on Main and the turned samples at the usual and at the chosen threshold."""
    rescue = thresholds.to_frame()
    for cut, scores in by_cut.items():
        wide = scores.pivot_table(index=RUN, columns="world", values=["Acc", "R"])
        for world in wide.columns.unique("world"):
            rescue[f"{world} Acc, {cut}"], rescue[f"{world} R, {cut}"] = (
                wide["Acc", world],
                wide["R", world],
            )
    return rescue.reset_index()


def calibration_curves(
    thresholds: pd.Series, by_cut: Mapping[str, pd.DataFrame], turned: str, step: float
) -> pd.DataFrame:
    """Accuracy over the share of dissatisfied samples at both thresholds, and of the constant estimator."""
    runs = ["constant", *thresholds.index.unique("run")]
    drawn = {cut: table[table["run"].isin(runs)] for cut, table in by_cut.items()}
    counts = pd.concat(
        [table.assign(run=table["run"] + f" ({cut})") for cut, table in drawn.items()]
    )
    counts["run"] = counts["run"].where(~counts["run"].str.startswith("constant"), "constant")
    return robustness_table(counts, RUN, turned=turned, step=step).query("measure == 'Acc'")
