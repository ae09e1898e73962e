"""What the claims of chapter 3 rest on: the number of each, with its interval, of printed counts or of the replica."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.proportion import confint_proportions_2indep

from equipoise.statistics import resampled
from equipoise_compendium.claims import Evidence
from equipoise_compendium.printed import printed_table
from equipoise_studies.satisfaction.data import COLLECTIONS, load_relabelled
from equipoise_studies.satisfaction.data import Collection as Held
from equipoise_studies.satisfaction.dialogues import label_of
from equipoise_studies.satisfaction.estimates import Ends, Rates, certain, index_ends
from equipoise_studies.satisfaction.redrawn import interval
from equipoise_studies.satisfaction.study import Study
from equipoise_studies.satisfaction.tables import written_labels

Run = tuple[str, str]
"""A collection and an estimator in it."""

COUNTED = "all of them are counted, nothing is sampled"


def few_shot(runs: Iterable[Run], name: str = "") -> list[Run]:
    """The few-shot ones among estimators, of all collections or of one."""
    return [run for run in runs if "ew-shot" in run[1] and name in ("", run[0])]


def fine_tuned(runs: Iterable[Run], name: str = "", left_out: Collection[Run] = ()) -> list[Run]:
    """The fine-tuned ones among estimators, of all collections or of one, without those left out."""
    own = [
        run for run in runs if run[1] != "constant" and name in ("", run[0]) and run not in left_out
    ]
    return [run for run in own if run not in few_shot(own)]


def _lead(number: Ends, name: str = "", left_out: Collection[Run] = ()) -> Ends:
    """How far the mean of the few-shot estimators is above that of the fine-tuned ones."""
    runs = number.value.columns
    return number.mean(few_shot(runs, name)).less(number.mean(fine_tuned(runs, name, left_out)))


def _printed(ends: Ends) -> float:
    return float(ends.value.iloc[0].item())


def by_collection(runs: Iterable[Run]) -> str:
    """Estimators in words, the collection once."""
    table = pd.DataFrame(sorted(runs), columns=["collection", "run"])
    short = (
        table["run"]
        .str.replace(", up-sampling", "")
        .str.replace(", w/o up-sampling", " without up-sampling")
    )
    return "; ".join(
        f"{name}: {', '.join(part)}" for name, part in short.groupby(table["collection"])
    )


def _shown(said: str, ends: Ends, name: str = "", left_out: Collection[Run] = ()) -> str:
    """What a number is, its interval if every label were right, and which estimators are at chance level."""
    plain, whole = certain(ends.value).evidence(said), ends.evidence(said)
    own = [run for run in left_out if name in ("", run[0])]
    further = (
        [] if plain == whole else [f"were every label right [{plain.low:.2f}, {plain.high:.2f}]"]
    )
    further += (
        [f"at chance level and left out: {by_collection(fine_tuned(own))}"]
        if fine_tuned(own)
        else []
    )
    further += (
        [f"at chance level itself: {by_collection(few_shot(own))}"]
        if few_shot(own) and name
        else []
    )
    return f"{said} ({'; '.join(further)})" if further else said


def at_chance(areas: pd.DataFrame) -> set[Run]:
    """Estimators that may not tell satisfied from dissatisfied samples of Main: the interval of the area holds 1/2."""
    main = interval(areas.xs("Main", axis=1, level="world"))
    return set(main.index[main["low"] <= 0.5])


# --- the rated dialogues --------------------------------------------------------------------------


def skewed(held: Mapping[str, Held], rng: np.random.Generator, resamples: int) -> Evidence:
    """Table 3.1: the benchmarks hold satisfied users mostly."""
    rated = pd.concat([part.dialogues.assign(collection=name) for name, part in held.items()])
    rated = rated[rated["speaker"] == "USER"]
    satisfied = pd.Series(label_of(rated["ratings"].tolist()) >= 3, index=rated.index)
    counts = (
        satisfied.groupby([rated["collection"], rated["dialogue"]]).agg(["sum", "size"]).to_numpy()
    )

    def share(places: np.ndarray) -> float:
        return float(np.divide(*counts[places].sum(axis=0)))

    found = resampled(share, len(counts), rng, resamples=resamples)
    return Evidence(
        "share of satisfied labels, both collections, dialogues drawn anew", *found, n=len(counts)
    )


def agrees_with_people() -> Evidence:
    """Table 3.3: a language model agrees less with people than two annotators with each other."""
    two = (
        printed_table("thesis/table-3.3")
        .set_index("judgement")
        .loc["Satisfaction Label (κ)"]
        .astype(float)
    )
    gaps, variance, n = [], 0.0, 0
    for name in COLLECTIONS:
        both = load_relabelled(name)[["human", "model"]].eq(0)
        found = cohens_kappa(pd.crosstab(both["human"], both["model"]))
        gaps.append(found.kappa - two[name])
        variance, n = variance + found.std_kappa**2, n + len(both)
    mean, reach = np.mean(gaps), stats.norm.isf(0.025) * variance**0.5 / len(gaps)
    said = "kappa of a language model and people less the printed one of two annotators, mean of both collections"
    return Evidence(said, float(mean), float(mean - reach), float(mean + reach), n=n)


# --- printed numbers ------------------------------------------------------------------------------


def confirmed_more(rng: np.random.Generator, resamples: int) -> Evidence:
    """Table 3.4: more of the dissatisfying utterances are confirmed than of the satisfying ones."""
    main, turned = (
        printed_table(f"thesis/table-{n}").set_index("label").astype(int) for n in ("3.2", "3.5")
    )
    rates = []
    for name in COLLECTIONS:
        for sign, own, other in (
            (1, "Satisfaction", "Dissatisfaction"),
            (-1, "Dissatisfaction", "Satisfaction"),
        ):
            there, found = main.loc[own, f"{name} Test"], turned.loc[other, f"{name} CF"]
            rates.append(
                sign
                * np.append(found / there, rng.binomial(there, found / there, resamples) / there)
            )
    gap = pd.DataFrame(np.sum(rates, axis=0) / len(COLLECTIONS))
    said = "share of confirmed dissatisfying utterances less that of satisfying ones, mean of both collections"
    return certain(gap).evidence(
        said, n=int(main.loc["Total", [f"{name} Test" for name in COLLECTIONS]].sum())
    )


def written_more(study: Study) -> Evidence:
    """Table 3.4: of what a model wrote, more of the dissatisfying responses do what was asked for."""
    who = study.writer.who if study.writer else "nobody"
    said = f"share of written responses that turn the user to dissatisfied less that to satisfied, by labels of {who}"
    counts = written_labels(study).groupby("asked for")[["turned", "labelled"]].sum()
    if len(counts) < 2 or not counts["labelled"].all():
        return Evidence(said, reason="nothing that was written has been labelled")
    (lost, of_lost), (won, of_won) = (counts.loc[label] for label in ("dissatisfied", "satisfied"))
    low, high = confint_proportions_2indep(lost, of_lost, won, of_won, method="newcomb")
    gap = lost / of_lost - won / of_won
    return Evidence(said, float(gap), float(low), float(high), n=int(of_lost + of_won))


def share_of_main() -> Evidence:
    """Table 3.5: about 5% of Main is dissatisfied."""
    sizes = printed_table("thesis/table-3.5").set_index("label").astype(int)
    main = {name: sizes[f"{name} Main"] for name in COLLECTIONS}
    shares = {name: 100 * part["Dissatisfaction"] / part["Total"] for name, part in main.items()}
    said = ", ".join(f"{name} {share:.1f}" for name, share in shares.items())
    return Evidence(
        f"percentage of dissatisfied samples, the larger of {said}",
        max(shares.values()),
        reason=COUNTED,
    )


def one_pair(behind: pd.DataFrame) -> Evidence:
    """Table 3.6: one pair of counts gives each row."""
    worst = behind.loc[(behind["solutions"] - 1).abs().idxmax(), "solutions"]
    said = f"pairs of counts that give a row, of {len(behind)} rows the one furthest from 1"
    return Evidence(said, float(worst), reason="every pair is tried, nothing is sampled")


def constant_rows(behind: pd.DataFrame) -> Evidence:
    """Table 3.6: BERT without up-sampling calls nobody dissatisfied on MultiWOZ."""
    rows = behind[(behind["collection"] == "MultiWOZ") & (behind["model"] == "BERT")]
    rows = rows[rows["setup"] == "w/o up-sampling"]
    called = rows["correct_dissatisfied"] + rows["satisfied"] - rows["correct_satisfied"]
    return Evidence(
        "samples of Main and CF called dissatisfied", float(called.sum()), reason=COUNTED
    )


def ahead_on_main(printed: Rates) -> Evidence:
    """Table 3.6: fine-tuned models are ahead on Main."""
    lead = _lead(certain(printed.scores("Main", "F1")))
    return certain(-lead.value).evidence(
        "mean macro F1 of fine-tuned less few-shot models on Main", printed.n()
    )


def ahead_elsewhere(printed: Rates) -> Evidence:
    """Table 3.6: every few-shot model is ahead of every fine-tuned one on CF and Mixed."""
    gaps = []
    for worlds in (["CF"], ["Main", "CF"]):
        accuracy = printed.accuracy(*worlds)
        for name in COLLECTIONS:
            few, tuned = accuracy[few_shot(accuracy, name)], accuracy[fine_tuned(accuracy, name)]
            gaps.append(few.min(axis=1) - tuned.max(axis=1))
    smallest = certain(pd.concat(gaps, axis=1).min(axis=1).to_frame())
    return smallest.evidence("smallest lead in accuracy, CF and Mixed", printed.n())


def dropped_on_cf(printed: Rates) -> Evidence:
    """Table 3.6: what is left of the fine-tuned models' accuracy on CF."""
    kept = printed.accuracy("CF") / printed.accuracy("Main")
    said = "accuracy on CF by that on Main, mean of the fine-tuned models"
    return certain(kept).mean(fine_tuned(kept)).evidence(said, printed.n())


def comparable(printed: Rates) -> Evidence:
    """Table 3.6: few-shot models do as well on CF as on Main."""
    gaps = {
        score: 100 * (printed.scores("CF", score) - printed.scores("Main", score))
        for score in ("R", "Acc")
    }
    few = gaps["Acc"][few_shot(gaps["Acc"])].iloc[0]
    said = "macro recall on CF less Main in points, mean of the few-shot models "
    said += f"(their accuracy changes by {few.min():+.1f} to {few.max():+.1f})"
    return certain(gaps["R"]).mean(few_shot(gaps["R"])).evidence(said, printed.n())


def written_easier(printed: Rates) -> Evidence:
    """Table 3.6: few-shot models find written dissatisfaction more often than real one."""
    gap = printed.of("CF", "dissatisfied") - printed.of("Main", "dissatisfied")
    said = "share of dissatisfied samples found in CF less Main, mean of the few-shot models"
    return certain(gap).mean(few_shot(gap)).evidence(said, printed.n())


def at_a_tenth(printed: Rates) -> Evidence:
    """Figure 3.5: at a tenth of dissatisfied samples fine-tuned models are at most as sensitive as few-shot ones."""
    own, there = printed.of("Main", "dissatisfied"), printed.size("Main", "dissatisfied")
    added = printed.size("Main", "satisfied") / 9 - there
    found = (own * there + printed.of("CF", "dissatisfied") * added) / (there + added)
    gaps = {
        n: found[fine_tuned(found, n)].max(axis=1) - found[few_shot(found, n)].max(axis=1)
        for n in COLLECTIONS
    }
    said = ", ".join(f"{name} {gap.iloc[0]:+.2f}" for name, gap in gaps.items())
    largest = pd.DataFrame(gaps).max(axis=1).to_frame()
    return certain(largest).evidence(
        f"sensitivity of the best fine-tuned less the best few-shot model, the larger of {said}"
    )


def printed_lead_of_index(name: str) -> float:
    """Mean printed Jaccard index of the few-shot models less that of the fine-tuned ones."""
    index = printed_table("thesis/table-3.7").set_index("model")[name].astype(float)
    return float(index[["Zephyr", "MistralIF"]].mean() - index[["BERT", "ASAP"]].mean())


def within_bounds(bounds: pd.DataFrame) -> Evidence:
    """Table 3.7: the counts allow every printed index."""
    inside = bounds.groupby(["collection", "model"])["within"].any()
    said = f"of {len(inside)} printed indices those that the counts of some setup allow"
    return Evidence(
        said, float(inside.sum()), reason="the sets behind the counts are not printed: bounds only"
    )


def best_setups(bounds: pd.DataFrame, printed: Rates, score: str) -> Evidence:
    """Table 3.7: the counts of the setup best on Main allow the printed index of BERT and ASAP."""
    best = printed.scores("Main", score).iloc[0].reset_index(name="score")
    best[["model", "setup"]] = best["run"].str.split(", ", expand=True)
    tuned = best[best["setup"] != "Few-shot"]
    chosen = tuned.loc[
        tuned.groupby(["collection", "model"])["score"].idxmax(), ["collection", "model", "setup"]
    ]
    inside = chosen.merge(bounds)["within"]
    said = f"of {len(inside)} printed indices those that the counts of the setup best in {score} on Main allow"
    return Evidence(
        said, float(inside.sum()), reason="the sets behind the counts are not printed: bounds only"
    )


def zephyr_first() -> Evidence:
    """Table 3.7: Zephyr has the higher index, MistralIF the higher accuracy on Main."""
    index = printed_table("thesis/table-3.7").set_index("model").astype(float)
    main = printed_table("thesis/table-3.6").set_index(["test data", "model"])
    gaps = [index.loc["Zephyr", name] - index.loc["MistralIF", name] for name in COLLECTIONS]
    for name in COLLECTIONS:
        acc = main.loc["Main", f"{name} Acc"].astype(float)
        gaps.append((acc["MistralIF"] - acc["Zephyr"]) / 100)
    said = "smallest of four printed leads, two in the index and two in accuracy on Main"
    return Evidence(said, float(min(gaps)), reason="which samples are shared is not printed")


# --- the replica ----------------------------------------------------------------------------------


def fine_tuned_kept(rates: Rates, printed: Rates, left_out: Collection[Run]) -> Evidence:
    """Figure 3.4: what is left of the fine-tuned estimators' accuracy on dissatisfied samples only."""
    ends, theirs = rates.kept(), printed.kept()
    mean = ends.mean(fine_tuned(ends.value, left_out=left_out))
    said = _shown(
        "share of Main's accuracy left on dissatisfied samples only, mean of fine-tuned",
        mean,
        "",
        left_out,
    )
    return mean.evidence(said, printed=_printed(theirs.mean(fine_tuned(theirs.value))))


def more_robust(rates: Rates, printed: Rates, left_out: Collection[Run], name: str) -> Evidence:
    """Figure 3.4: few-shot estimators keep more of Main's accuracy than fine-tuned ones."""
    lead, theirs = _lead(rates.kept(), name, left_out), _lead(printed.kept(), name)
    said = f"share of Main's accuracy left on dissatisfied samples only, few-shot less mean of fine-tuned, {name}"
    return lead.evidence(_shown(said, lead, name, left_out), printed=_printed(theirs))


def more_sensitive(rates: Rates, printed: Rates, left_out: Collection[Run], name: str) -> Evidence:
    """Figure 3.5: few-shot estimators find more of the dissatisfied samples."""
    lead, theirs = _lead(rates.found(), name, left_out), _lead(printed.found(), name)
    said = f"share of all dissatisfied samples found, few-shot less mean of fine-tuned, {name}"
    return lead.evidence(_shown(said, lead, name, left_out), printed=_printed(theirs))


def up_sampled_more(rates: Rates, name: str) -> Ends:
    """Table 3.6: what up-sampling x20 adds to x10 on turned dissatisfied samples, mean of the fine-tuned ones."""
    found = rates.turned_found()
    ends = (
        found.mean([run for run in found.value if run[0] == name and run[1].endswith(x)])
        for x in ("x20", "x10")
    )
    return Ends.less(*ends)


def up_sampling_printed(printed: Rates, name: str) -> Evidence:
    """Table 3.6: what up-sampling x20 adds to x10, in the printed numbers."""
    said = (
        f"share of CF's dissatisfied samples found, x20 less x10, mean of fine-tuned models, {name}"
    )
    return up_sampled_more(printed, name).evidence(said, printed.n(name))


def up_sampling(rates: Rates, printed: Rates, name: str) -> Evidence:
    """Table 3.6: what up-sampling x20 adds to x10, in the replica."""
    gain = up_sampled_more(rates, name)
    said = f"share of swapped dissatisfied samples found, x20 less x10, mean of fine-tuned, {name}"
    return gain.evidence(_shown(said, gain), printed=_printed(up_sampled_more(printed, name)))


def index_lead(
    counts: pd.DataFrame, wrong: Mapping[str, float], left_out: Collection[Run], name: str
) -> Evidence:
    """Table 3.7: few-shot estimators share more contexts than fine-tuned ones, on the same contexts."""
    lead = _lead(index_ends(counts, wrong), name, left_out)
    contexts = int(counts[name].xs("contexts", axis=1, level="count").iloc[0].min())
    said = (
        f"Jaccard index on the same {contexts} contexts, few-shot less mean of fine-tuned, {name}"
    )
    return lead.evidence(_shown(said, lead, name, left_out), printed=printed_lead_of_index(name))


def outperform_on_main(
    rates: Rates, printed: Rates, left_out: Collection[Run], name: str
) -> Evidence:
    """Table 3.6: fine-tuned estimators are ahead on Main."""
    ours, theirs = (certain(-one.scores("Main", "F1")) for one in (rates, printed))
    lead, said = (
        _lead(ours, name, left_out),
        f"mean macro F1 on Main, fine-tuned less few-shot, {name}, by dialogues",
    )
    return lead.evidence(
        _shown(said, lead, name, left_out), rates.n(name), _printed(_lead(theirs, name))
    )


def threshold_helps(chosen: Rates) -> Evidence:
    """Beyond: macro recall of the fine-tuned estimators on Main at a threshold of their own."""
    recall = certain(chosen.scores("Main", "R"))
    said = "macro recall on Main, mean of fine-tuned"
    return recall.mean(fine_tuned(recall.value)).evidence(said, n=chosen.n())
