"""What the claims of chapter 3 rest on: the number of each, with its interval.

The numbers are those of the printed tables, of the counts behind them, or of the replica.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.inter_rater import cohens_kappa

from equipoise.measures.agreement import cohen_kappa
from equipoise.statistics import resampled
from equipoise_compendium.claims import Evidence
from equipoise_compendium.printed import printed_table
from equipoise_studies.satisfaction import data
from equipoise_studies.satisfaction.data import COLLECTIONS, load_relabelled
from equipoise_studies.satisfaction.dialogues import label_of
from equipoise_studies.satisfaction.estimates import Ends, Rates, certain, index_ends
from equipoise_studies.satisfaction.redrawn import interval

Run = tuple[str, str]
"""A collection and an estimator in it."""

COUNTED = "all of them are counted, nothing is sampled"
LEAST_KAPPA = 0.6
"""Labels that agree less with people's ratings test no claim; the thesis's two agree with .84."""
NOT_PRINTED = "the sets behind the counts are not printed: bounds only"


# --- kinds of estimators --------------------------------------------------------------------------


def few_shot(runs: Iterable[Run], name: str = "") -> list[Run]:
    """The few-shot ones among estimators, of all collections or of one."""
    # The thesis writes Few-shot, the replica few-shot.
    return [run for run in runs if "ew-shot" in run[1] and name in ("", run[0])]


def fine_tuned(runs: Iterable[Run], name: str = "", left_out: Collection[Run] = ()) -> list[Run]:
    """The fine-tuned ones, of all collections or of one, without those left out."""
    selected = []
    for run in runs:
        if name in ("", run[0]) and run not in left_out:
            selected.append(run)
    prompted = few_shot(selected)
    return [run for run in selected if run[1] != "constant" and run not in prompted]


def by_collection(runs: Iterable[Run]) -> str:
    """Estimators in words, the collection once."""
    table = pd.DataFrame(sorted(runs), columns=["collection", "run"])
    names = table["run"].str.replace(", up-sampling", "")
    names = names.str.replace(", w/o up-sampling", " without up-sampling")
    phrases = []
    for collection, collection_names in names.groupby(table["collection"]):
        phrases.append(f"{collection}: {', '.join(collection_names)}")
    return "; ".join(phrases)


def at_chance(areas: pd.DataFrame) -> set[Run]:
    """Estimators that may not tell satisfied from dissatisfied samples of Main.

    The interval of the area under their curve holds 1/2.
    """
    main = interval(areas.xs("Main", axis=1, level="world"))
    return set(main.index[main["low"] <= 0.5])


def _lead(number: Ends, name: str = "", left_out: Collection[Run] = ()) -> Ends:
    """How far the mean of the few-shot estimators is above that of the fine-tuned ones."""
    runs = number.value.columns
    return number.mean(few_shot(runs, name)).less(number.mean(fine_tuned(runs, name, left_out)))


def _value(ends: Ends) -> float:
    """A single number in the data."""
    return float(ends.value.iloc[0].item())


def _statement(number: str, ends: Ends, name: str = "", left_out: Collection[Run] = ()) -> str:
    """What a number is, its interval if every label were right, and who is at chance level."""
    remarks = []
    # Doubt about labels widens an interval: how wide is it without?
    if_labels_are_right = certain(ends.value).evidence(number)
    if if_labels_are_right != ends.evidence(number):
        low, high = if_labels_are_right.low, if_labels_are_right.high
        remarks.append(f"were every label right [{low:.2f}, {high:.2f}]")
    left_out_here = [run for run in left_out if name in ("", run[0])]
    trained, prompted = fine_tuned(left_out_here), few_shot(left_out_here)
    if trained:
        remarks.append(f"at chance level and left out: {by_collection(trained)}")
    # A mean over both collections names only those that it leaves out.
    if prompted and name:
        remarks.append(f"at chance level itself: {by_collection(prompted)}")
    if not remarks:
        return number
    return f"{number} ({'; '.join(remarks)})"


# --- the rated dialogues --------------------------------------------------------------------------


def skewed(
    collections: Mapping[str, data.Collection], rng: np.random.Generator, resamples: int
) -> Evidence:
    """Table 3.1: the benchmarks hold satisfied users mostly."""
    tables = []
    for name in COLLECTIONS:
        rows = collections[name].rated_rows
        satisfied = label_of(rows["ratings"].tolist()) >= 3
        table = pd.DataFrame({"dialogue": rows["dialogue"], "satisfied": satisfied})
        tables.append(table.assign(collection=name))
    labels = pd.concat(tables)
    by_dialogue = labels.groupby(["collection", "dialogue"])["satisfied"].agg(["sum", "size"])
    # Labels of one dialogue resemble each other, so whole dialogues are drawn.
    counts = by_dialogue.to_numpy()

    def share(dialogues: np.ndarray) -> float:
        n_satisfied, n_labels = counts[dialogues].sum(axis=0)
        return float(np.divide(n_satisfied, n_labels))

    value, low, high = resampled(share, len(counts), rng, resamples=resamples)
    statement = "share of satisfied labels, both collections, dialogues drawn anew"
    return Evidence(statement, value, low, high, n=len(counts))


def agrees_with_people() -> Evidence:
    """Table 3.3: a language model agrees less with people than two annotators with each other."""
    printed = printed_table("thesis/table-3.3").set_index("judgement")
    printed_kappas = printed.loc["Satisfaction Label (κ)"].astype(float)
    printed_variances = _printed_kappa_variances(printed_kappas)
    gaps = []
    variance = 0.0
    n_dialogues = 0
    for name in COLLECTIONS:
        dissatisfied = load_relabelled(name).eq(0)
        agreement = cohens_kappa(pd.crosstab(dissatisfied["human"], dissatisfied["model"]))
        gaps.append(agreement.kappa - printed_kappas[name])
        variance += agreement.std_kappa**2 + printed_variances[name]
        n_dialogues += len(dissatisfied)
    # Collections and pairs of annotators are independent, so the variances add up.
    mean = np.mean(gaps)
    reach = stats.norm.isf(0.025) * variance**0.5 / len(gaps)
    statement = (
        "kappa of a language model and people less the printed one of two annotators, "
        "mean of both collections, with the error of both kappas"
    )
    return Evidence(statement, float(mean), float(mean - reach), float(mean + reach), n=n_dialogues)


def _printed_kappa_variances(kappas: pd.Series) -> dict[str, float]:
    """Variance of the printed kappas of two annotators, by collection: p (1 - p) / (n (1 - e)^2).

    p is the agreement and e that by chance. They follow from kappa and how many of the n
    counterfactuals were labelled dissatisfied: those confirmed, and those that kept that label.
    """
    main, turned = _printed_counts("3.2"), _printed_counts("3.5")
    variances = {}
    for name in COLLECTIONS:
        n_judged = main.loc["Total", f"{name} Test"]
        n_kept = (
            main.loc["Dissatisfaction", f"{name} Test"] - turned.loc["Satisfaction", f"{name} CF"]
        )
        share = (turned.loc["Dissatisfaction", f"{name} CF"] + n_kept) / n_judged
        by_chance = share**2 + (1 - share) ** 2
        agreement = 1 - (1 - kappas[name]) * (1 - by_chance)
        variances[name] = agreement * (1 - agreement) / (n_judged * (1 - by_chance) ** 2)
    return variances


# --- printed numbers ------------------------------------------------------------------------------


def _printed_counts(table: str) -> pd.DataFrame:
    return printed_table(f"thesis/table-{table}").set_index("label").astype(int)


def confirmed_more(rng: np.random.Generator, resamples: int) -> Evidence:
    """Table 3.4: more of the dissatisfying utterances are confirmed than of the satisfying ones."""
    main, turned = _printed_counts("3.2"), _printed_counts("3.5")
    signed_rates = []
    for name in COLLECTIONS:
        rates = {}
        for own, opposite in (
            ("Satisfaction", "Dissatisfaction"),
            ("Dissatisfaction", "Satisfaction"),
        ):
            n_samples = main.loc[own, f"{name} Test"]
            # A confirmed counterfactual has the opposite label of its sample.
            n_confirmed = turned.loc[opposite, f"{name} CF"]
            draws = rng.binomial(n_samples, n_confirmed / n_samples, resamples)
            rates[own] = np.append(n_confirmed / n_samples, draws / n_samples)
        signed_rates += [rates["Satisfaction"], -rates["Dissatisfaction"]]
    gap = pd.DataFrame(np.sum(signed_rates, axis=0) / len(COLLECTIONS))
    n_samples = main.loc["Total", [f"{name} Test" for name in COLLECTIONS]].sum()
    statement = (
        "share of confirmed dissatisfying utterances less that of satisfying ones, "
        "mean of both collections"
    )
    return certain(gap).evidence(statement, n=int(n_samples))


def written_more(
    settled: Mapping[str, pd.DataFrame], readers: str, rng: np.random.Generator, resamples: int
) -> Evidence:
    """Table 3.4: of what a model wrote, more of the dissatisfying responses do what was asked for.

    ``settled``: by collection, the responses that readers labelled, as
    `equipoise_studies.satisfaction.annotation.Annotations.settled` gives them. ``readers``: who, in
    words. Labels that disagree with the ratings of the data test nothing. Dialogues are drawn anew.
    """
    statement = (
        "share of responses written to dissatisfy that do, less that of those written to satisfy, "
        f"by labels of {readers}, dialogues drawn anew"
    )
    tables = [table[table["written"]].assign(collection=name) for name, table in settled.items()]
    if not tables or pd.concat(tables)["dissatisfied"].nunique() < 2:
        return Evidence(statement, reason="nothing that was written has been labelled")
    written = pd.concat(tables)
    reason = _labels_test_nothing(settled, written)
    if reason:
        return Evidence(statement, reason=reason)

    dialogue = written["collection"] + " " + written["sample"].str.partition(":")[0]
    turned = written["satisfied"] != written["dissatisfied"]
    counts = {
        "turned to dissatisfied": turned & written["dissatisfied"],
        "to dissatisfied": written["dissatisfied"],
        "turned to satisfied": turned & ~written["dissatisfied"],
        "to satisfied": ~written["dissatisfied"],
    }
    # (dialogues, counts)
    by_dialogue = pd.DataFrame(counts).astype(int).groupby(dialogue).sum().to_numpy()

    def gap(dialogues: np.ndarray) -> float:
        n_lost, n_to_lose, n_won, n_to_win = by_dialogue[dialogues].sum(axis=0)
        if not n_to_lose or not n_to_win:
            return float("nan")
        return float(n_lost / n_to_lose - n_won / n_to_win)

    value, low, high = resampled(gap, len(by_dialogue), rng, resamples=resamples)
    return Evidence(statement, value, low, high, n=len(by_dialogue))


def _labels_test_nothing(settled: Mapping[str, pd.DataFrame], written: pd.DataFrame) -> str:
    """Why the labels of written responses say little of them; empty where they may be used.

    The responses that were there have ratings to hold the labels against.
    """
    kappas = {}
    for name, table in settled.items():
        own_responses = table[~table["written"]]
        kappas[name] = cohen_kappa(own_responses["satisfied"], ~own_responses["dissatisfied"])
    if all(kappa >= LEAST_KAPPA for kappa in kappas.values()):
        return ""
    phrases = " and ".join(f"{kappa:.2f} on {name}" for name, kappa in kappas.items())
    said_dissatisfied = 1 - written.groupby("dissatisfied")["satisfied"].mean()
    return (
        "the labels agree with the ratings of the data, on the responses that were there, with a "
        f"kappa of {phrases} (at least {LEAST_KAPPA} is wanted, our bound), and call "
        f"{said_dissatisfied[True]:.1%} dissatisfied of what was to be so and "
        f"{said_dissatisfied[False]:.1%} of what was to be the opposite"
    )


def share_of_main() -> Evidence:
    """Table 3.5: about 5% of Main is dissatisfied."""
    sizes = _printed_counts("3.5")
    shares = {}
    for name in COLLECTIONS:
        main = sizes[f"{name} Main"]
        shares[name] = 100 * main["Dissatisfaction"] / main["Total"]
    phrases = ", ".join(f"{name} {share:.1f}" for name, share in shares.items())
    statement = f"percentage of dissatisfied samples, the larger of {phrases}"
    return Evidence(statement, max(shares.values()), reason=COUNTED)


def one_pair(behind: pd.DataFrame) -> Evidence:
    """Table 3.6: one pair of counts gives each row."""
    # No pair at all is as far from one as two pairs are.
    furthest = behind.loc[(behind["solutions"] - 1).abs().idxmax(), "solutions"]
    statement = f"pairs of counts that give a row, of {len(behind)} rows the one furthest from 1"
    reason = "every pair is tried, nothing is sampled"
    return Evidence(statement, float(furthest), reason=reason)


def constant_rows(behind: pd.DataFrame) -> Evidence:
    """Table 3.6: BERT without up-sampling calls nobody dissatisfied on MultiWOZ."""
    # Called dissatisfied are those found and the satisfied ones that are missed.
    rows = behind[(behind["collection"] == "MultiWOZ") & (behind["model"] == "BERT")]
    rows = rows[rows["setup"] == "w/o up-sampling"]
    wrongly_dissatisfied = rows["satisfied"] - rows["correct_satisfied"]
    n_dissatisfied = (rows["correct_dissatisfied"] + wrongly_dissatisfied).sum()
    statement = "samples of Main and CF called dissatisfied"
    return Evidence(statement, float(n_dissatisfied), reason=COUNTED)


def ahead_on_main(printed: Rates) -> Evidence:
    """Table 3.6: every fine-tuned model is ahead of every few-shot one on Main, in any setup."""
    score = printed.scores("Main", "F1")
    leads = {}
    for name in COLLECTIONS:
        best_few_shot = score[few_shot(score, name)].max(axis=1)
        for run in fine_tuned(score, name):
            leads[run] = score[run] - best_few_shot
    behind = [run for run, lead in leads.items() if lead.iloc[0] <= 0]
    smallest = certain(pd.DataFrame(leads).min(axis=1).to_frame())
    statement = (
        "smallest lead in macro F1 of a fine-tuned over a few-shot model on Main, in any setup "
        f"(not ahead: {by_collection(behind) or 'none'})"
    )
    return smallest.evidence(statement, printed.n())


def best_ahead_on_main(printed: Rates) -> Evidence:
    """Table 3.6: in its best setup each of BERT and ASAP is ahead of both few-shot models."""
    score = printed.scores("Main", "F1")
    leads = {}
    for name in COLLECTIONS:
        best_few_shot = score[few_shot(score, name)].max(axis=1)
        runs = fine_tuned(score, name)
        # The best setup is chosen again in each draw.
        for model in {run[1].partition(",")[0] for run in runs}:
            setups = [run for run in runs if run[1].startswith(f"{model},")]
            leads[name, model] = score[setups].max(axis=1) - best_few_shot
    smallest = certain(pd.DataFrame(leads).min(axis=1).to_frame())
    statement = "smallest lead in macro F1 on Main of BERT and ASAP, each in its best setup"
    return smallest.evidence(statement, printed.n())


def ahead_elsewhere(printed: Rates) -> Evidence:
    """Table 3.6: every few-shot model is ahead of every fine-tuned one on CF and Mixed."""
    gaps = []
    # Mixed is Main and CF together.
    for worlds in (["CF"], ["Main", "CF"]):
        accuracy = printed.accuracy(*worlds)
        for name in COLLECTIONS:
            worst_few_shot = accuracy[few_shot(accuracy, name)].min(axis=1)
            best_fine_tuned = accuracy[fine_tuned(accuracy, name)].max(axis=1)
            gaps.append(worst_few_shot - best_fine_tuned)
    smallest = certain(pd.concat(gaps, axis=1).min(axis=1).to_frame())
    return smallest.evidence("smallest lead in accuracy, CF and Mixed", printed.n())


def dropped_on_cf(printed: Rates) -> Evidence:
    """Table 3.6: what is left of the fine-tuned models' accuracy on CF."""
    ratio = printed.accuracy("CF") / printed.accuracy("Main")
    statement = "accuracy on CF by that on Main, mean of the fine-tuned models"
    return certain(ratio).mean(fine_tuned(ratio)).evidence(statement, printed.n())


def change_on_cf(printed: Rates, score: str) -> pd.DataFrame:
    """What few-shot models have more of a score on CF than on Main, in points."""
    change = 100 * (printed.scores("CF", score) - printed.scores("Main", score))
    return change[few_shot(change)]


def comparable(printed: Rates) -> Evidence:
    """Table 3.6: few-shot models do as well on CF as on Main, by the scores that are printed."""
    accuracy, f1 = change_on_cf(printed, "Acc"), change_on_cf(printed, "F1")
    single = accuracy.iloc[0]
    statement = (
        "accuracy on CF less Main in points, mean of the few-shot models (single ones "
        f"{single.min():+.1f} to {single.max():+.1f}; macro F1 {f1.iloc[0].mean():+.1f})"
    )
    return certain(accuracy).mean(accuracy).evidence(statement, printed.n())


def macro_recall_rises(printed: Rates) -> Evidence:
    """Table 3.6: by macro recall, which no share of labels moves, CF is the easier set."""
    recall = change_on_cf(printed, "R")
    statement = "macro recall on CF less Main in points, mean of the few-shot models"
    return certain(recall).mean(recall).evidence(statement, printed.n())


def written_easier(printed: Rates) -> Evidence:
    """Table 3.6: few-shot models find written dissatisfaction more often than real one."""
    gap = printed.of("CF", "dissatisfied") - printed.of("Main", "dissatisfied")
    statement = "share of dissatisfied samples found in CF less Main, mean of the few-shot models"
    return certain(gap).mean(few_shot(gap)).evidence(statement, printed.n())


def at_a_tenth(printed: Rates) -> Evidence:
    """Figure 3.5: at a tenth of dissatisfied samples no fine-tuned model is the more sensitive."""
    n_main = printed.size("Main", "dissatisfied")
    # So many of CF make a tenth of all.
    n_added = printed.size("Main", "satisfied") / 9 - n_main
    found_in_main = printed.of("Main", "dissatisfied") * n_main
    found_in_cf = printed.of("CF", "dissatisfied") * n_added
    sensitivity = (found_in_main + found_in_cf) / (n_main + n_added)
    gaps = {}
    for name in COLLECTIONS:
        best_fine_tuned = sensitivity[fine_tuned(sensitivity, name)].max(axis=1)
        best_few_shot = sensitivity[few_shot(sensitivity, name)].max(axis=1)
        gaps[name] = best_fine_tuned - best_few_shot
    phrases = ", ".join(f"{name} {gap.iloc[0]:+.2f}" for name, gap in gaps.items())
    largest = pd.DataFrame(gaps).max(axis=1).to_frame()
    statement = (
        f"sensitivity of the best fine-tuned less the best few-shot model, the larger of {phrases}"
    )
    return certain(largest).evidence(statement)


def printed_lead_of_index(name: str) -> float:
    """Mean printed Jaccard index of the few-shot models less that of the fine-tuned ones."""
    index = printed_table("thesis/table-3.7").set_index("model")[name].astype(float)
    return float(index[["Zephyr", "MistralIF"]].mean() - index[["BERT", "ASAP"]].mean())


def within_bounds(bounds: pd.DataFrame) -> Evidence:
    """Table 3.7: the counts allow every printed index."""
    # Of which setup an index is printed, the thesis does not say.
    allowed = bounds.groupby(["collection", "model"])["within"].any()
    statement = f"of {len(allowed)} printed indices those that the counts of some setup allow"
    return Evidence(statement, float(allowed.sum()), reason=NOT_PRINTED)


def best_setups(bounds: pd.DataFrame, printed: Rates, score: str) -> Evidence:
    """Table 3.7: counts of the setup best on Main allow the printed index of BERT and ASAP."""
    setups = printed.scores("Main", score).iloc[0].reset_index(name="score")
    setups[["model", "setup"]] = setups["run"].str.split(", ", expand=True)
    # A few-shot model has one setup, so that there is nothing to choose.
    setups = setups[setups["setup"] != "Few-shot"]
    best_rows = setups.groupby(["collection", "model"])["score"].idxmax()
    best = setups.loc[best_rows, ["collection", "model", "setup"]]
    allowed = best.merge(bounds)["within"]
    statement = (
        f"of {len(allowed)} printed indices those that the counts of the setup best in {score} "
        "on Main allow"
    )
    return Evidence(statement, float(allowed.sum()), reason=NOT_PRINTED)


def zephyr_first(index: pd.DataFrame, scores: pd.DataFrame) -> Evidence:
    """Table 3.7: Zephyr has the higher index, MistralIF the higher accuracy on Main.

    ``index``: printed Table 3.7. ``scores``: printed Table 3.6.
    """
    index = index.set_index("model").astype(float)
    main = scores[scores["test data"] == "Main"].set_index("model")
    leads = []
    for name in COLLECTIONS:
        leads.append(index.loc["Zephyr", name] - index.loc["MistralIF", name])
        accuracy = main.loc[["Zephyr", "MistralIF"], f"{name} Acc"].astype(float)
        leads.append((accuracy["MistralIF"] - accuracy["Zephyr"]) / 100)
    statement = "smallest of four printed leads, two in the index and two in accuracy on Main"
    return Evidence(statement, float(min(leads)), reason="which samples are shared is not printed")


# --- the replica ----------------------------------------------------------------------------------


def fine_tuned_kept(rates: Rates, printed: Rates, left_out: Collection[Run]) -> Evidence:
    """Figure 3.4: what is left of fine-tuned estimators' accuracy on dissatisfied samples only."""
    # Nobody is left out of the printed mean, which is what the thesis speaks of.
    replica, thesis = rates.kept(), printed.kept()
    mean = replica.mean(fine_tuned(replica.value, left_out=left_out))
    number = "share of Main's accuracy left on dissatisfied samples only, mean of fine-tuned"
    statement = _statement(number, mean, "", left_out)
    return mean.evidence(statement, printed=_value(thesis.mean(fine_tuned(thesis.value))))


def more_robust(rates: Rates, printed: Rates, left_out: Collection[Run], name: str) -> Evidence:
    """Figure 3.4: few-shot estimators keep more of Main's accuracy than fine-tuned ones."""
    lead = _lead(rates.kept(), name, left_out)
    number = (
        "share of Main's accuracy left on dissatisfied samples only, "
        f"few-shot less mean of fine-tuned, {name}"
    )
    printed_lead = _value(_lead(printed.kept(), name))
    return lead.evidence(_statement(number, lead, name, left_out), printed=printed_lead)


def more_sensitive(rates: Rates, printed: Rates, left_out: Collection[Run], name: str) -> Evidence:
    """Figure 3.5: few-shot estimators find more of the dissatisfied samples."""
    lead = _lead(rates.found(), name, left_out)
    number = f"share of all dissatisfied samples found, few-shot less mean of fine-tuned, {name}"
    printed_lead = _value(_lead(printed.found(), name))
    return lead.evidence(_statement(number, lead, name, left_out), printed=printed_lead)


def up_sampled_more(rates: Rates, name: str) -> Ends:
    """Table 3.6: what up-sampling x20 adds to x10 in turned dissatisfied samples found."""
    shares = rates.turned_found()
    means = []
    for setup in ("x20", "x10"):
        runs = [run for run in shares.value if run[0] == name and run[1].endswith(setup)]
        means.append(shares.mean(runs))
    often, less_often = means
    return often.less(less_often)


def up_sampling_printed(printed: Rates, name: str) -> Evidence:
    """Table 3.6: what up-sampling x20 adds to x10, in the printed numbers."""
    statement = (
        f"share of CF's dissatisfied samples found, x20 less x10, mean of fine-tuned models, {name}"
    )
    return up_sampled_more(printed, name).evidence(statement, printed.n(name))


def up_sampling(rates: Rates, printed: Rates, name: str) -> Evidence:
    """Table 3.6: what up-sampling x20 adds to x10, in the replica."""
    gain = up_sampled_more(rates, name)
    number = (
        f"share of swapped dissatisfied samples found, x20 less x10, mean of fine-tuned, {name}"
    )
    printed_gain = _value(up_sampled_more(printed, name))
    return gain.evidence(_statement(number, gain), printed=printed_gain)


def index_lead(
    counts: pd.DataFrame, wrong: Mapping[str, float], left_out: Collection[Run], name: str
) -> Evidence:
    """Table 3.7: few-shot estimators share more contexts than fine-tuned ones, on the same ones."""
    lead = _lead(index_ends(counts, wrong), name, left_out)
    contexts = counts[name].xs("contexts", axis=1, level="count")
    # Row 0 is the data; every estimator has the same contexts.
    n_contexts = int(contexts.iloc[0].min())
    number = (
        f"Jaccard index on the same {n_contexts} contexts, few-shot less mean of fine-tuned, {name}"
    )
    statement = _statement(number, lead, name, left_out)
    return lead.evidence(statement, printed=printed_lead_of_index(name))


def outperform_on_main(
    rates: Rates, printed: Rates, left_out: Collection[Run], name: str
) -> Evidence:
    """Table 3.6: fine-tuned estimators are ahead on Main."""
    lead = _lead(certain(-rates.scores("Main", "F1")), name, left_out)
    printed_lead = _lead(certain(-printed.scores("Main", "F1")), name)
    number = f"mean macro F1 on Main, fine-tuned less few-shot, {name}, by dialogues"
    statement = _statement(number, lead, name, left_out)
    return lead.evidence(statement, rates.n(name), _value(printed_lead))


def threshold_helps(chosen: Rates) -> Evidence:
    """Beyond: macro recall of the fine-tuned estimators on Main at a threshold of their own."""
    # Main's labels are the raters', of which none is in doubt.
    recall = certain(chosen.scores("Main", "R"))
    statement = "macro recall on Main, mean of fine-tuned"
    return recall.mean(fine_tuned(recall.value)).evidence(statement, n=chosen.n())
