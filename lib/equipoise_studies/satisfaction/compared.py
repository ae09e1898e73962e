"""What the report of chapter 3 takes for Tables 3.3 to 3.7: what the study gives, or what stands in its place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from equipoise_studies.satisfaction import derived, tables
from equipoise_studies.satisfaction.data import COLLECTIONS
from equipoise_studies.satisfaction.study import Study

_SCORES = ["Acc", "P", "R", "F1"]


def agreement(study: Study, rng: np.random.Generator, resamples: int) -> dict[str, Any]:
    """Table 3.3: of the annotators, or else of people and a language model on whole dialogues."""
    if study.counterfactuals == "written":
        each = pd.DataFrame(
            {name: study.annotations(study.plain[name]).agreement() for name in COLLECTIONS}
        )
        ours = each.rename_axis("judgement").reset_index()
        known = {"keys": ["judgement"], "basis": study.basis, "tolerance": study.tolerance / 100}
        return {"ours": ours, "data": "the annotators of what was written", **known}
    return {
        "ours": tables.relabelled_agreement(rng, resamples),
        "basis": "replica",
        "data": "dialogue-level ratings by people and by a language model",
        "note": "people against a model on whole dialogues, not two people on counterfactuals",
        "digits": 2,
    }


def success(study: Study) -> dict[str, Any]:
    """Table 3.4: of the study's counterfactuals, or from Tables 3.2 and 3.5."""
    keys = {"keys": ["data partition"]}
    if study.world == "swapped":
        return keys | {
            "ours": derived.success_rates(),
            "basis": "derived",
            "data": "printed Tables 3.2 and 3.5",
        }
    rates = tables.confirmed_rates(study.held)
    return keys | {
        "ours": rates,
        "basis": study.basis,
        "data": "confirmed responses",
        "tolerance": study.tolerance,
    }


def sizes(study: Study) -> dict[str, Any]:
    """Table 3.5: of the study's samples, or those of Main from Table 3.2."""
    if study.world == "swapped":
        return {
            "ours": derived.main_sizes(),
            "keys": ["label"],
            "columns": [f"{name} Main" for name in COLLECTIONS],
            "basis": "derived",
            "data": "printed Table 3.2",
            "note": "the counts of CF are counted in Table 3.4",
        }
    counted = tables.world_sizes(study.held)
    return {"ours": counted, "keys": ["label"], "basis": study.basis, "data": "confirmed responses"}


def scores(study: Study, replica: pd.DataFrame, behind: pd.DataFrame) -> dict[str, Any]:
    """Table 3.6: of the study's estimators, or those of Mixed from the counts behind the printed rows."""
    keys = ["test data", "model", "setup"]
    if study.world == "swapped":
        return {
            "ours": derived.derived_scores(behind),
            "keys": keys,
            "where": {"test data": "Mixed"},
            "basis": "derived",
            "data": "counts recovered from the printed rows of Main and CF; Mixed is their sum",
            "note": "Main and CF are what the counts were recovered from; bold type and underlining, the best and the "
            "second best, are left out; the notebook has the replica in a table of its own",
        }
    names = {name: one.printed or name for name, one in study.estimators.items()}
    table = replica[replica["run"] != "constant"]
    named = table["run"].str.rpartition(", ")
    setups = named[2].where(named[0] != "", "Few-shot")
    models = named[0].where(named[0] != "", table["run"]).map(names)
    table = table.assign(model=models, setup=setups, **{"test data": table["world"].astype("str")})
    wide = table.pivot_table(index=keys, columns="collection", values=_SCORES)
    wide.columns = [f"{name} {score}" for score, name in wide.columns]
    known = {"keys": keys, "basis": study.basis, "tolerance": study.tolerance}
    return {"ours": wide.reset_index(), "data": "the estimators of the study", **known}


def shared(study: Study, every: pd.DataFrame, replica: pd.DataFrame) -> dict[str, Any]:
    """Table 3.7: of the setup of each model that is best on Main, or of every estimator of the replica."""
    if study.stands_for == "replica":
        return {
            "ours": every,
            "basis": "replica",
            "data": "recorded predictions of small models",
            "note": "every estimator on the contexts that all of them labelled; another table has what the "
            "printed scores allow of the printed indices",
        }
    main = replica[(replica["world"] == "Main") & (replica["run"] != "constant")]
    best = main.assign(name=main["run"].str.partition(", ")[0])
    best = best.loc[
        best.groupby(["collection", "name"])["F1"].idxmax(), ["collection", "name", "run"]
    ]
    wide = best.merge(every, on=["collection", "run"]).pivot_table(
        index="name", columns="collection", values="JSI"
    )
    names = {name: one.printed or name for name, one in study.estimators.items()}
    ours = wide.rename(index=names).rename_axis("model").rename_axis(columns=None).reset_index()
    known = {"keys": ["model"], "basis": study.basis, "tolerance": study.tolerance / 100}
    return {"ours": ours, "data": "the estimators of the study", **known}
