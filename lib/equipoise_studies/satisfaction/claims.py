"""What the claims of chapter 3 rest on: the number of each, with its interval.

The numbers are those of the printed tables, of the counts behind them, or of the replica.
"""

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
from equipoise_studies.satisfaction import data
from equipoise_studies.satisfaction.data import COLLECTIONS, load_relabelled
from equipoise_studies.satisfaction.dialogues import label_of
from equipoise_studies.satisfaction.estimates import Ends, Rates, certain, index_ends
from equipoise_studies.satisfaction.redrawn import interval

Run = tuple[str, str]
"""A collection and an estimator in it."""

COUNTED = "all of them are counted, nothing is sampled"
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
    gaps = []
    variance = 0.0
    n_dialogues = 0
    for name in COLLECTIONS:
        dissatisfied = load_relabelled(name).eq(0)
        agreement = cohens_kappa(pd.crosstab(dissatisfied["human"], dissatisfied["model"]))
        gaps.append(agreement.kappa - printed_kappas[name])
        variance += agreement.std_kappa**2
        n_dialogues += len(dissatisfied)
    # The two collections are independent, so the variances add up.
    mean = np.mean(gaps)
    reach = stats.norm.isf(0.025) * variance**0.5 / len(gaps)
    statement = (
        "kappa of a language model and people less the printed one of two annotators, "
        "mean of both collections"
    )
    return Evidence(statement, float(mean), float(mean - reach), float(mean + reach), n=n_dialogues)


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


def written_more(written: pd.DataFrame, readers: str) -> Evidence:
    """Table 3.4: of what a model wrote, more of the dissatisfying responses do what was asked for.

    ``written``: columns asked for, labelled and turned. ``readers``: who labelled, in words.
    """
    statement = (
        "share of written responses that turn the user to dissatisfied less that to satisfied, "
        f"by labels of {readers}"
    )
    counts = written.groupby("asked for")[["turned", "labelled"]].sum()
    if len(counts) < 2 or not counts["labelled"].all():
        return Evidence(statement, reason="nothing that was written has been labelled")
    n_lost, n_to_lose = counts.loc["dissatisfied"]
    n_won, n_to_win = counts.loc["satisfied"]
    low, high = confint_proportions_2indep(n_lost, n_to_lose, n_won, n_to_win, method="newcomb")
    gap = n_lost / n_to_lose - n_won / n_to_win
    return Evidence(statement, float(gap), float(low), float(high), n=int(n_to_lose + n_to_win))


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
    """Table 3.6: fine-tuned models are ahead on Main."""
    lead = _lead(certain(printed.scores("Main", "F1")))
    statement = "mean macro F1 of fine-tuned less few-shot models on Main"
    return certain(-lead.value).evidence(statement, printed.n())


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


def comparable(printed: Rates) -> Evidence:
    """Table 3.6: few-shot models do as well on CF as on Main."""
    # Accuracy depends on the share of dissatisfied samples, which differs; macro recall does not.
    recall = 100 * (printed.scores("CF", "R") - printed.scores("Main", "R"))
    accuracy = 100 * (printed.scores("CF", "Acc") - printed.scores("Main", "Acc"))
    changes = accuracy[few_shot(accuracy)].iloc[0]
    statement = (
        "macro recall on CF less Main in points, mean of the few-shot models "
        f"(their accuracy changes by {changes.min():+.1f} to {changes.max():+.1f})"
    )
    return certain(recall).mean(few_shot(recall)).evidence(statement, printed.n())


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


def zephyr_first() -> Evidence:
    """Table 3.7: Zephyr has the higher index, MistralIF the higher accuracy on Main."""
    index = printed_table("thesis/table-3.7").set_index("model").astype(float)
    scores = printed_table("thesis/table-3.6").set_index(["test data", "model"])
    leads = []
    for name in COLLECTIONS:
        leads.append(index.loc["Zephyr", name] - index.loc["MistralIF", name])
        accuracy = scores.loc["Main", f"{name} Acc"].astype(float)
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
