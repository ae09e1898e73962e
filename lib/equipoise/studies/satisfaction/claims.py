"""Claims of chapter 3: for each, whether it holds of our tables, and the numbers that decide."""

from __future__ import annotations

import pandas as pd

from equipoise.reports.printed import printed_table

Verdict = tuple[bool, str]
_FALL = "{main:.2f} to {turned:.2f} [{low:.2f}, {high:.2f}]"


def _each(table: pd.DataFrame, form: str) -> str:
    return "; ".join(form.format(**row) for row in table.reset_index().to_dict("records"))


def agree_as_two_people(agreed: pd.DataFrame) -> Verdict:
    """A language model agrees with people as well as two annotators with each other (Table 3.3)."""
    two = printed_table("thesis/table-3.3").set_index("judgement").loc["Satisfaction Label (κ)"].astype(float)
    kappa = agreed[agreed["classes"] == "dissatisfied or not"].set_index("collection")["kappa"]
    said = ", ".join(f"{name}: kappa {value:.2f}, two people {two[name]:.2f}" for name, value in kappa.items())
    return bool((kappa >= two[kappa.index]).all()), said


def one_solution_each(behind: pd.DataFrame) -> Verdict:
    """Every printed row is given by one pair of counts (Table 3.6)."""
    single, cut = behind["solutions"] == 1, behind["printed"] != "rounded"
    said = f"{single.sum()} of {len(behind)} rows, {cut.sum()} of them with a last digit off by one"
    return bool(single.all()), said


def few_shot_finds_more(behind: pd.DataFrame) -> Verdict:
    """Every few-shot model finds more of the dissatisfaction in CF than every fine-tuned one (Table 3.6)."""
    turned = behind[behind["test data"] == "CF"]
    found = turned["sensitivity"].groupby([turned["setup"] == "Few-shot", turned["collection"]])
    ends = pd.DataFrame({"few": found.min()[True], "tuned": found.max()[False]})
    said = _each(ends, "{collection}: few-shot from {few:.3f}, fine-tuned up to {tuned:.3f}")
    return bool((ends["few"] > ends["tuned"]).all()), said


def few_shot_finds_both(both: pd.DataFrame) -> Verdict:
    """Few-shot models find real dissatisfaction as often as the written one (Table 3.6)."""
    said = _each(both, "{collection} {model}: Main {Main:.3f}, CF {CF:.3f}, p {p:.1g}")
    return bool((both["p"] >= 0.05).all()), said


def fine_tuned_lose_half(curves: pd.DataFrame) -> Verdict:
    """Fine-tuned models lose more than half of their accuracy, few-shot ones less (Figure 3.4)."""
    fall = _fall(curves)
    left, few = fall["turned"] / fall["main"], fall.index.get_level_values("run").str.contains("Few-shot")
    said = f"fine-tuned at most {left[~few].max():.2f}, few-shot at least {left[few].min():.2f}"
    return bool((left[~few] < 0.5).all() and (left[few] > 0.5).all()), f"what is left of Main's accuracy: {said}"


def few_shot_ahead_at_a_tenth(curves: pd.DataFrame) -> Verdict:
    """At a tenth of dissatisfied samples the best fine-tuned model is no more sensitive (Figure 3.5)."""
    felt = curves[curves["measure"] == "sensitivity"]
    tenth = felt.loc[(felt["ratio"] - 0.1).abs().groupby([felt["collection"], felt["run"]]).idxmin()]
    kind = tenth["run"].str.contains("Few-shot").map({True: "few", False: "tuned"})
    best = tenth.pivot_table(index="collection", columns=kind, values="value", aggfunc="max")
    said = _each(best, "{collection}: fine-tuned {tuned:.3f}, few-shot {few:.3f}")
    return bool((best["tuned"] <= best["few"]).all()), said


def _fall(curves: pd.DataFrame) -> pd.DataFrame:
    """Accuracy on Main and, with its interval, on dissatisfied samples only."""
    groups = curves[curves["measure"] == "Acc"].groupby(["collection", "run"])
    return groups.agg(main=("value", "first"), turned=("value", "last"), low=("low", "last"), high=("high", "last"))


def replica_fine_tuned_lose_half(traced: pd.DataFrame) -> Verdict:
    """Fine-tuned estimators of the replica lose more than half of their accuracy (Figure 3.4)."""
    fall = _fall(traced).drop(index=["constant", "few-shot"], level="run")
    return bool((fall["turned"] < 0.5 * fall["main"]).all()), _each(fall, "{collection} {run}: " + _FALL)


def replica_few_shot_keeps_half(traced: pd.DataFrame) -> Verdict:
    """The few-shot estimator of the replica loses less than half of its accuracy (Figure 3.4)."""
    fall = _fall(traced).xs("few-shot", level="run")
    return bool((fall["turned"] > 0.5 * fall["main"]).all()), _each(fall, "{collection}: " + _FALL)


def replica_few_shot_above_chance(traced: pd.DataFrame) -> Verdict:
    """The few-shot estimator's macro recall on Main is above one half with its interval (Figure 3.5)."""
    recall = traced[(traced["run"] == "few-shot") & (traced["measure"] == "R")].groupby("collection").first()
    return bool((recall["low"] > 0.5).all()), _each(recall, "{collection}: {value:.3f} [{low:.3f}, {high:.3f}]")


def replica_ranks_swapped_as_well(areas: pd.DataFrame) -> Verdict:
    """Every estimator ranks CF by dissatisfaction as well as Main (Table 3.6)."""
    main, turned = areas["Main"], areas["CF"]
    said = f"AUC on Main from {main.min():.3f} to {main.max():.3f}, on CF from {turned.min():.3f} to {turned.max():.3f}"
    return bool((turned >= main).all()), said


def printed_index_within_bounds(bounds: pd.DataFrame) -> Verdict:
    """Every printed index is one that some setup of its model allows (Table 3.7)."""
    inside = bounds.groupby(["collection", "model"])["within"].any()
    return bool(inside.all()), f"{inside.sum()} of {len(inside)}"


def replica_index_low(shared: pd.DataFrame) -> Verdict:
    """Fine-tuned estimators share no more contexts than BERT and ASAP, and fewer than the few-shot one (Table 3.7)."""
    printed = printed_table("thesis/table-3.7").set_index("model").astype(float).loc[["BERT", "ASAP"]]
    index = shared.pivot_table(index="collection", columns="run", values="JSI")
    best = index.assign(tuned=index.drop(columns=["constant", "few-shot"]).max(axis=1), few=index["few-shot"])
    said = _each(best, "{collection}: fine-tuned up to {tuned:.3f}, few-shot {few:.3f}")
    return bool((best["tuned"] <= printed.to_numpy().max()).all() and (best["few"] > best["tuned"]).all()), said


def calibrated_above_chance(rescue: pd.DataFrame) -> Verdict:
    """A chosen threshold brings every estimator's macro recall above one half on Main and CF (Table 3.6)."""
    rescued = (rescue["Main R, chosen"] > 0.5) & (rescue["CF R, chosen"] > 0.5)
    moved, recall = rescue["CF Acc, chosen"] - rescue["CF Acc, usual"], rescue["Main R, chosen"]
    return bool(rescued.all()), (
        f"{rescued.sum()} of {len(rescue)} estimators; accuracy on CF changes by {moved.min():+.2f} to "
        f"{moved.max():+.2f}, macro recall on Main lies between {recall.min():.2f} and {recall.max():.2f}"
    )
