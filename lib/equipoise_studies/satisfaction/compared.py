"""What the report of chapter 3 compares in Tables 3.3 to 3.7 if a config stands for the thesis.

The notebook computes each table as it is where the study has no annotators or models of the
thesis's size: from other data, from the printed tables, or from the replica. Each function here
takes that table, puts the study's own in its place where it has one, and returns what
`equipoise_compendium.report.Report.table` takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from equipoise_compendium.printed import printed_table
from equipoise_studies.satisfaction.annotation import Annotations
from equipoise_studies.satisfaction.data import COLLECTIONS
from equipoise_studies.satisfaction.study import Study


def agreement(
    study: Study, annotations: Mapping[str, Annotations], relabelled: pd.DataFrame
) -> dict[str, Any]:
    """Table 3.3: of the annotators, or else of people and a language model on whole dialogues."""
    if study.counterfactuals != "written":
        return {
            "ours": relabelled,
            "basis": "replica",
            "data": "dialogue-level ratings by people and by a language model",
            "note": "people against a model on whole dialogues, not two people on counterfactuals",
            "digits": 2,
        }
    # Percentages and a kappa share a column, as in print: the tolerance is the kappa's.
    by_collection = {name: annotations[name].agreement() for name in COLLECTIONS}
    return {
        "ours": pd.DataFrame(by_collection).rename_axis("judgement").reset_index(),
        "data": "the annotators of what was written",
        "keys": ["judgement"],
        "basis": study.basis,
        "tolerance": study.tolerance / 100,
    }


def success(study: Study, derived: pd.DataFrame) -> dict[str, Any]:
    """Table 3.4: of the study's counterfactuals, or from Tables 3.2 and 3.5."""
    keys = ["data partition"]
    # Nobody has confirmed what was swapped.
    if study.world == "swapped":
        data = "printed Tables 3.2 and 3.5"
        return {"ours": derived, "keys": keys, "basis": "derived", "data": data}
    return {
        "ours": _confirmed_rates(study),
        "keys": keys,
        "basis": study.basis,
        "data": "confirmed responses",
        "tolerance": study.tolerance,
    }


def _confirmed_rates(study: Study) -> pd.DataFrame:
    """Test samples of each label that have a confirmed counterfactual, in percent."""
    rates = {}
    for name in COLLECTIONS:
        main = study.test_sets[name].part("test")["dissatisfied"]
        turned = study.test_sets[name].turned["dissatisfied"]
        # A counterfactual of a satisfied sample is a dissatisfied one.
        rates[name] = {
            "Satisfaction": 100 * (turned.sum() / (~main).sum()),
            "Dissatisfaction": 100 * ((~turned).sum() / main.sum()),
            "Overall": 100 * (len(turned) / len(main)),
        }
    return pd.DataFrame(rates).rename_axis("data partition").reset_index()


def sizes(study: Study, derived: pd.DataFrame) -> dict[str, Any]:
    """Table 3.5: of the study's samples, or those of Main from Table 3.2."""
    if study.world == "swapped":
        return {
            "ours": derived,
            "keys": ["label"],
            "columns": [f"{name} Main" for name in COLLECTIONS],
            "basis": "derived",
            "data": "printed Table 3.2",
            "note": "the counts of CF are counted in Table 3.4",
        }
    return {
        "ours": _world_sizes(study),
        "keys": ["label"],
        "basis": study.basis,
        "data": "confirmed responses",
    }


def _world_sizes(study: Study) -> pd.DataFrame:
    """Samples of Main and of the confirmed counterfactuals, by label."""
    counts = {}
    for name in COLLECTIONS:
        collection = study.test_sets[name]
        for title, samples in {"Main": collection.part("test"), "CF": collection.turned}.items():
            dissatisfied = samples["dissatisfied"]
            counts[f"{name} {title}"] = {
                "Satisfaction": (~dissatisfied).sum(),
                "Dissatisfaction": dissatisfied.sum(),
                "Total": len(dissatisfied),
            }
    return pd.DataFrame(counts).rename_axis("label").reset_index()


def scores(study: Study, replica: pd.DataFrame, derived: pd.DataFrame) -> dict[str, Any]:
    """Table 3.6: of the study's estimators, or from the counts behind the printed rows."""
    keys = ["test data", "model", "setup"]
    if study.world == "swapped":
        return {
            "ours": derived,
            "keys": keys,
            "where": {"test data": "Mixed"},
            "basis": "derived",
            "data": "counts recovered from the printed rows of Main and CF; Mixed is their sum",
            "note": "Main and CF are what the counts were recovered from; bold type and "
            "underlining, the best and the second best, are left out; the notebook has the replica "
            "in a table of its own",
        }
    # A run is "system, setup", or the system alone where it has but one.
    table = replica[replica["run"] != "constant"]
    system_and_setup = table["run"].str.rpartition(", ")
    has_setup = system_and_setup[0] != ""
    setups = system_and_setup[2].where(has_setup, "Few-shot")
    systems = system_and_setup[0].where(has_setup, table["run"])
    test_data = table["world"].astype("str")
    table = table.assign(model=systems.map(_printed_names(study)), setup=setups)
    table = table.assign(**{"test data": test_data})
    wide = table.pivot_table(index=keys, columns="collection", values=["Acc", "P", "R", "F1"])
    wide.columns = [f"{name} {score}" for score, name in wide.columns]
    return _beside_printed("thesis/table-3.6", wide.reset_index(), keys, study, study.tolerance)


def shared(study: Study, index: pd.DataFrame, replica: pd.DataFrame) -> dict[str, Any]:
    """Table 3.7: of each model's setup that is best on Main, or of every estimator."""
    if study.basis == "replica":
        return {
            "ours": index,
            "basis": "replica",
            "data": "recorded predictions of small models",
            "note": "every estimator on the contexts that all of them labelled; another table has "
            "what the printed scores allow of the printed indices",
        }
    # The thesis does not say of which setup it prints the index: that best in F1 fits best.
    main = replica[(replica["world"] == "Main") & (replica["run"] != "constant")]
    main = main.assign(model=main["run"].str.partition(", ")[0].map(_printed_names(study)))
    best_rows = main.groupby(["collection", "model"])["F1"].idxmax()
    best = main.loc[best_rows, ["collection", "model", "run"]].merge(
        index, on=["collection", "run"]
    )
    wide = best.pivot_table(index="model", columns="collection", values="JSI")
    table = wide.rename_axis(columns=None).reset_index()
    return _beside_printed("thesis/table-3.7", table, ["model"], study, study.tolerance / 100)


def _beside_printed(
    artefact: str, table: pd.DataFrame, keys: list[str], study: Study, tolerance: float
) -> dict[str, Any]:
    """What `Report.table` takes of a study's table: printed rows without an estimator are empty."""
    printed_keys = printed_table(artefact)[keys]
    rows = pd.concat([printed_keys, table[keys]]).drop_duplicates()
    models = printed_keys["model"].drop_duplicates()
    absent = models[~models.isin(table["model"])].tolist()
    note = f"no estimator stands for {', '.join(absent)}" if absent else ""
    return {
        "ours": rows.merge(table, how="left", on=keys).fillna(""),
        "data": "the estimators of the study",
        "keys": keys,
        "basis": study.basis,
        "tolerance": tolerance,
        "note": note,
    }


def _printed_names(study: Study) -> dict[str, str]:
    """What Table 3.6 calls each estimator, or its own name."""
    return {name: estimator.printed or name for name, estimator in study.estimators.items()}
