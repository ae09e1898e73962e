"""Claims of chapter 3: for each, whether it holds of our tables, and the numbers that decide."""

from __future__ import annotations

import numpy as np
import pandas as pd

from equipoise.reports.printed import printed_table

Verdict = tuple[bool, str]


def _fine_tuned(run: pd.Series | pd.Index) -> pd.Series | pd.Index:
    return ~run.isin(["constant", "few-shot"])


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
    few = turned["setup"] == "Few-shot"
    least = turned[few].groupby("collection")["sensitivity"].min()
    most = turned[~few].groupby("collection")["sensitivity"].max()
    said = "; ".join(f"{name}: few-shot from {least[name]:.3f}, fine-tuned up to {most[name]:.3f}" for name in least.index)
    return bool((least > most).all()), said


def few_shot_finds_both(both: pd.DataFrame) -> Verdict:
    """Few-shot models find real dissatisfaction as often as the written one (Table 3.6)."""
    said = "; ".join(
        f"{row.collection} {row.model}: Main {row.Main:.3f}, CF {row.CF:.3f}, p {row.p:.1g}" for row in both.itertuples()
    )
    return bool((both["p"] >= 0.05).all()), said


def fine_tuned_lose_half(curves: pd.DataFrame) -> Verdict:
    """Fine-tuned models lose more than half of their accuracy, few-shot ones less (Figure 3.4)."""
    accuracy = curves[curves["measure"] == "Acc"].groupby(["collection", "run"])["value"].agg(["first", "last"])
    few = accuracy.index.get_level_values("run").str.contains("Few-shot")
    lost, left = accuracy["last"] < 0.5 * accuracy["first"], accuracy["last"] / accuracy["first"]
    holds = lost[~few].all() and (accuracy["last"] > 0.5 * accuracy["first"])[few].all()
    return bool(holds), (
        f"what is left of Main's accuracy: fine-tuned at most {left[~few].max():.2f}, "
        f"few-shot at least {left[few].min():.2f}"
    )


def few_shot_ahead_at_a_tenth(curves: pd.DataFrame) -> Verdict:
    """At a tenth of dissatisfied samples the best fine-tuned model is no more sensitive (Figure 3.5)."""
    felt = curves[curves["measure"] == "sensitivity"]
    nearest = (felt["ratio"] - 0.1).abs().groupby([felt["collection"], felt["run"]]).idxmin()
    tenth = felt.loc[nearest]
    kind = pd.Series(np.where(tenth["run"].str.contains("Few-shot"), "few", "tuned"), index=tenth.index)
    best = tenth.groupby(["collection", kind])["value"].max().unstack()
    said = "; ".join(f"{row.Index}: fine-tuned {row.tuned:.3f}, few-shot {row.few:.3f}" for row in best.itertuples())
    return bool((best["tuned"] <= best["few"]).all()), said


def _fall(traced: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of the replica on Main and, with its interval, on dissatisfied samples only."""
    groups = traced[traced["measure"] == "Acc"].groupby(["collection", "run"])
    return groups.agg(main=("value", "first"), turned=("value", "last"), low=("low", "last"), high=("high", "last"))


def replica_fine_tuned_lose_half(traced: pd.DataFrame) -> Verdict:
    """Fine-tuned estimators of the replica lose more than half of their accuracy (Figure 3.4)."""
    fall = _fall(traced).reset_index()
    fall = fall[_fine_tuned(fall["run"])]
    said = "; ".join(
        f"{row.collection} {row.run}: {row.main:.2f} to {row.turned:.2f} [{row.low:.2f}, {row.high:.2f}]"
        for row in fall.itertuples()
    )
    return bool((fall["turned"] < 0.5 * fall["main"]).all()), said


def replica_few_shot_keeps_half(traced: pd.DataFrame) -> Verdict:
    """The few-shot estimator of the replica loses less than half of its accuracy (Figure 3.4)."""
    fall = _fall(traced).xs("few-shot", level="run")
    said = "; ".join(
        f"{row.Index}: {row.main:.2f} to {row.turned:.2f} [{row.low:.2f}, {row.high:.2f}]" for row in fall.itertuples()
    )
    return bool((fall["turned"] > 0.5 * fall["main"]).all()), said


def replica_few_shot_above_chance(traced: pd.DataFrame) -> Verdict:
    """The few-shot estimator's macro recall on Main is above one half with its interval (Figure 3.5)."""
    recall = traced[(traced["run"] == "few-shot") & (traced["measure"] == "R")].groupby("collection").first()
    said = "; ".join(f"{row.Index}: {row.value:.3f} [{row.low:.3f}, {row.high:.3f}]" for row in recall.itertuples())
    return bool((recall["low"] > 0.5).all()), said


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
    printed = printed_table("thesis/table-3.7").set_index("model").astype(float)
    few = shared[shared["run"] == "few-shot"].set_index("collection")["JSI"]
    tuned = shared[_fine_tuned(shared["run"])].groupby("collection")["JSI"].max()
    said = "; ".join(f"{name}: fine-tuned up to {tuned[name]:.3f}, few-shot {few[name]:.3f}" for name in tuned.index)
    return bool((tuned <= printed.loc[["BERT", "ASAP"]].to_numpy().max()).all() and (few > tuned).all()), said


def calibrated_above_chance(rescue: pd.DataFrame) -> Verdict:
    """A chosen threshold brings every estimator's macro recall above one half on Main and CF (Table 3.6)."""
    rescued = (rescue["Main R, chosen"] > 0.5) & (rescue["CF R, chosen"] > 0.5)
    moved, recall = rescue["CF Acc, chosen"] - rescue["CF Acc, usual"], rescue["Main R, chosen"]
    return bool(rescued.all()), (
        f"{rescued.sum()} of {len(rescue)} estimators; accuracy on CF changes by {moved.min():+.2f} to "
        f"{moved.max():+.2f}, macro recall on Main lies between {recall.min():.2f} and {recall.max():.2f}"
    )
