"""What the recorded answers say of the sentences of chapter 5: pooled scores with intervals.

Each interval is of questions drawn with replacement, all answers to a question together. Of each
benchmark two questions that never were are drawn along, one at either extreme, as in the adjusted
interval of a difference of paired proportions (Bonett and Price 2012): where none of fifteen
questions changes, a bootstrap alone would say that none ever does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from equipoise.answer_modes import mode_parts
from equipoise.arrays import Floats, Integers, ratio
from equipoise.measures.attribution import citation_rows
from equipoise.statistics import resampled
from equipoise_compendium.claims import Evidence
from equipoise_compendium.printed import printed_table
from equipoise_studies.attribution import from_print
from equipoise_studies.attribution.derived import SCORES, numbers, printed_numbers
from equipoise_studies.attribution.design import CELLS, of_experiment, tables_of
from equipoise_studies.attribution.study import standing_for, stands_for

SEED = 14
PRINTED_IN = {
    "modes": {"CAS": "5.2", "CAB": "5.3"},
    "mixed": {"CAB": "5.5"},
    "names": {"CAS": "5.7", "CAB": "5.8"},
    "retrievers": {"CAS": "5.9", "CAB": "5.9"},
}
"""Experiments, and the tables that print their CAS and CAB."""

UNIT = ["benchmark", "question"]
CELL = ["experiment", "model", "benchmark", "retriever", "k", "relevant", "non-relevant"]
_NONE = "no recorded answer of a model above the level of chance"


# --- intervals ------------------------------------------------------------------------------------


def pooled(
    table: pd.DataFrame,
    column: str,
    statistic: str,
    *,
    settings: Sequence[str] = (),
    lowest: float = -100.0,
    printed: float | None = None,
) -> Evidence:
    """The mean of a column of scores up to 100, questions drawn with all their rows.

    ``settings``: columns that tell settings apart, each of which has its mean first, as in a mean
    of printed cells; without them every row counts alike. ``statistic``: what it is, in words.
    ``lowest``: the lowest value that a score can have.
    """
    scores = table.dropna(subset=[column])
    if scores.empty:
        return Evidence(statistic, reason=_NONE)
    setting = scores.groupby(list(settings)).ngroup() if settings else 0
    by_question = scores.assign(setting=setting).pivot_table(
        column, UNIT, "setting", aggfunc=["sum", "count"], fill_value=0
    )
    sums = by_question["sum"].to_numpy(dtype=np.float64)  # (questions, settings)
    counts = by_question["count"].to_numpy(dtype=np.float64)
    estimate = _mean_of_settings(sums, counts)

    # Two invented questions of each benchmark, one at either extreme, stand in all its settings,
    # each time with as many rows as its others there on average.
    of_question = by_question.index.get_level_values("benchmark")
    for benchmark in of_question.unique():
        of_benchmark = counts[: len(of_question)][of_question == benchmark]
        rows = ratio(of_benchmark.sum(axis=0), (of_benchmark > 0).sum(axis=0), 0.0)
        sums = np.vstack([sums, lowest * rows, 100 * rows])
        counts = np.vstack([counts, rows, rows])

    def mean(drawn: Integers) -> float:
        return _mean_of_settings(sums[drawn], counts[drawn])

    _, low, high = resampled(mean, len(sums), np.random.default_rng(SEED))
    return Evidence(
        statistic,
        estimate,
        min(low, estimate),
        max(high, estimate),
        n=len(by_question),
        printed=printed,
    )


def _mean_of_settings(sums: Floats, counts: Floats) -> float:
    """Mean of the settings' means; takes sums and numbers of rows, shaped (questions, settings)."""
    total = counts.sum(axis=0)
    means = ratio(sums.sum(axis=0), total, np.nan)
    return float(np.nanmean(means))  # a draw may hold no question of a setting


# --- differences, question by question ------------------------------------------------------------


def by_label(scored: pd.DataFrame) -> pd.DataFrame:
    """Scores times 100, a row each, with the label of the relevant passage: Human, LLM or none.

    An answer of several experiments has a row for each.
    """
    table = pd.concat(tables_of(scored), names=["experiment"])
    table = table.reset_index("experiment").reset_index(drop=True)

    relevant_modes = {mode: mode_parts(mode)[0] for mode in table["mode"].unique()}
    relevant_mode = table["mode"].map(relevant_modes)
    # Informed tells the truth of the relevant passage, CF-informed the opposite.
    labelled_human = (table["relevant_author"] == "Human") == (relevant_mode == "Informed")
    table["label"] = np.where(labelled_human, "Human", "LLM")
    table.loc[relevant_mode == "Vanilla", "label"] = "none"

    names = {"relevant_author": "relevant", "nonrelevant_author": "non-relevant"}
    table = table.drop(columns="relevant").rename(columns=names)
    keys = [*CELL, "weights", "question", "label"]
    scores = table.melt(keys, ["precision", "recall"], "score", "value")
    scores["value"] *= 100
    return scores


def changes(labelled: pd.DataFrame) -> pd.DataFrame:
    """CAB and CAS of every question, cell and score; takes the table of `by_label`.

    Where one author wrote all passages, CAS is the mean of both modes with labels; otherwise the
    one that tells the truth. Of several records of a model, each cell is that of the largest.
    """
    keys = [*CELL, "weights", "score", "question"]
    wide = labelled.pivot_table(index=keys, columns="label", values="value")
    wide = wide.reindex(columns=["Human", "LLM", "none"]).dropna(subset=["Human", "LLM"])
    wide = wide.reset_index()
    wide["CAB"] = wide["Human"] - wide["LLM"]

    moved = wide[["Human", "LLM"]].sub(wide["none"], axis=0).abs()
    one_author = wide["relevant"] == wide["non-relevant"]
    by_truth = moved["Human"].where(wide["relevant"] == "Human", moved["LLM"])
    wide["CAS"] = moved.mean(axis=1, skipna=False).where(one_author, by_truth)
    return _of_largest_record(wide)


def _of_largest_record(differences: pd.DataFrame) -> pd.DataFrame:
    """Of several records of a model, the rows of the one that has most questions in a cell."""
    questions = differences.groupby([*CELL, "score"])["question"].transform("nunique")
    differences = differences.assign(questions=questions)
    ordered = differences.sort_values("questions", ascending=False, kind="stable")
    # Records of one model have the same weights, and differ in the name of the model.
    cell = [name for name in CELL if name != "model"] + ["weights"]
    largest = ordered.groupby(cell)["model"].transform("first")
    return ordered[ordered["model"] == largest].sort_index()


# --- chance ---------------------------------------------------------------------------------------


def chance(scored: pd.DataFrame) -> dict[str, Evidence]:
    """By how many points each model's recall exceeds that of as many random citations."""
    margin = scored.assign(above=100 * (scored["recall"] - scored["cited"] / scored["k"]))
    margins = {}
    for model, answers in margin.groupby("model", sort=False):
        statistic = f"recall of {model} above that of random citations, in points"
        margins[str(model)] = pooled(answers, "above", statistic)
    return margins


def above_chance(scored: pd.DataFrame) -> list[str]:
    """Models whose recall exceeds that of random citations with its interval."""
    models = []
    for model, margin in chance(scored).items():
        if margin.low is not None and margin.low > 0:
            models.append(model)
    return models


# --- evidence -------------------------------------------------------------------------------------


def _printed_mean(tables: Sequence[str], quantity: str, cells: pd.DataFrame) -> float | None:
    """Mean of the printed scores of the settings that are among ours; None where there is none."""
    ours = cells.assign(benchmark=cells["benchmark"].map(stands_for), quantity=quantity)
    scores: list[float] = []
    for table in tables:
        printed = numbers(printed_table(f"thesis/table-{table}"), list(SCORES))
        keys = ["benchmark", "relevant", "non-relevant", "quantity"]
        shared = [name for name in keys if name in printed]
        same_settings = printed.merge(ours[shared].drop_duplicates())
        scores += same_settings[list(SCORES)].to_numpy().ravel().tolist()
    return float(np.mean(scores)) if scores else None


def over_settings(differences: pd.DataFrame, quantity: str, *experiments: str) -> Evidence:
    """CAS or CAB over all settings of some experiments; takes the table of `changes`.

    With the mean that the thesis prints of the same settings.
    """
    cells = differences[differences["experiment"].isin(experiments)].dropna(subset=[quantity])
    scores = " and ".join(sorted(cells["score"].unique(), reverse=True)).replace("_", " ")
    settings = cells.groupby(CELL).ngroups
    statistic = f"mean {quantity} of {scores}, mean of {settings} settings, in points"

    tables = []
    for name in experiments:
        if quantity in PRINTED_IN.get(name, {}):
            tables.append(PRINTED_IN[name][quantity])
    printed = _printed_mean(tables, quantity, cells)
    lowest = -100.0 if quantity == "CAB" else 0.0
    return pooled(cells, quantity, statistic, settings=CELL, lowest=lowest, printed=printed)


def over_passages(scored: pd.DataFrame) -> pd.DataFrame:
    """CAS and CAB by the number of passages, mean of both scores, with intervals; by people.

    Of models and benchmarks that were asked with several numbers.
    """
    differences = changes(by_label(scored))
    is_asked = differences["experiment"] == "documents"
    table = differences[is_asked & (differences["relevant"] == "Human")]
    numbers_of_passages = table.groupby(["benchmark", "model"])["k"].transform("nunique")
    table = table[numbers_of_passages > 1]
    rows = []
    keys = ["benchmark", "model", "k"]
    for group, part in table.groupby(keys):
        for quantity in ("CAS", "CAB"):
            change = over_settings(part, quantity, "documents")
            rows.append([*group, quantity, change.n, change.estimate, change.low, change.high])
    return pd.DataFrame(rows, columns=[*keys, "quantity", "questions", "value", "low", "high"])


def beside_placebo(differences: pd.DataFrame, quantity: str, labels: str = "mixed") -> pd.DataFrame:
    """CAB or CAS with labels of authors and with labels that mean nothing, in two columns.

    For the same questions and passages. ``labels``: the experiment; the other column is placebo.
    """
    names = [labels, "placebo"]
    keys = [name for name in CELL if name != "experiment"] + ["score", "question"]
    rows = differences[differences["experiment"].isin(names)]
    wide = rows.pivot_table(index=keys, columns="experiment", values=quantity)
    wide = wide.reindex(columns=names).dropna().reset_index()
    return wide.rename(columns={labels: "authors"})


def more_sensitive(beside: pd.DataFrame) -> Evidence:
    """How much more labels of authors change than labels that mean nothing do.

    Takes CAS as of `beside_placebo`.
    """
    statistic = (
        "CAS with labels of authors less that with labels that mean nothing, mean over questions, "
        "in points"
    )
    return pooled(beside.assign(gap=beside["authors"] - beside["placebo"]), "gap", statistic)


def farther_from_zero(beside: pd.DataFrame) -> Evidence:
    """How much farther from zero CAB is with labels of authors than with labels that mean nothing.

    Which of two such labels stands in the place of Human is arbitrary, and to exchange them changes
    the sign of their CAB and nothing else: only its distance from zero says something. Takes CAB as
    of `beside_placebo`.
    """
    columns = ["authors", "placebo"]
    statistic = "distance of CAB from zero, labels of authors less labels that mean nothing"
    if beside.empty:
        return Evidence(statistic, reason=_NONE)
    by_question = beside.groupby(UNIT)[columns].agg(["sum", "count"])
    sums = by_question.xs("sum", axis=1, level=1).to_numpy(dtype=np.float64)
    counts = by_question.xs("count", axis=1, level=1).to_numpy(dtype=np.float64)[:, :1]
    authors, placebo = sums.sum(axis=0) / counts.sum()

    # Two invented questions as in `pooled`, in which each kind of labels has one at either extreme.
    rows = counts.mean()
    sums = np.vstack([sums, [100 * rows, -100 * rows], [-100 * rows, 100 * rows]])
    counts = np.vstack([counts, [rows], [rows]])

    def excess(drawn: Integers) -> float:
        means = np.abs(sums[drawn].sum(axis=0) / counts[drawn].sum())
        return float(means[0] - means[1])

    _, low, high = resampled(excess, len(sums), np.random.default_rng(SEED))
    estimate = abs(authors) - abs(placebo)
    return Evidence(
        f"{statistic} (|{authors:.1f}| less |{placebo:.1f}|), in points",
        float(estimate),
        min(low, float(estimate)),
        max(high, float(estimate)),
        n=len(by_question),
    )


def _confidence(scored: pd.DataFrame) -> Evidence:
    """How much more probable citations of relevant passages are than the others, in points."""
    statistic = "mean probability of a relevant passage's number less that of another's, in points"
    citations = citation_rows(scored).dropna(subset=["probability"])
    if citations["relevant"].nunique() < 2:
        return Evidence(statistic, reason=_NONE)

    citations["side"] = np.where(citations["relevant"], "relevant", "other")
    by_question = citations.pivot_table(
        "probability", UNIT, "side", aggfunc=["sum", "count"], fill_value=0
    )
    sums = by_question["sum"][["relevant", "other"]].to_numpy(dtype=np.float64)
    counts = by_question["count"][["relevant", "other"]].to_numpy(dtype=np.float64)

    def gap(drawn: Integers) -> float:
        relevant, nonrelevant = sums[drawn].sum(axis=0) / np.maximum(counts[drawn].sum(axis=0), 1)
        return 100 * float(relevant - nonrelevant)

    estimate, low, high = resampled(gap, len(by_question), np.random.default_rng(SEED))
    printed_gaps: list[float] = []
    for number in ("5.6", "5.10"):
        table = printed_table(f"thesis/table-{number}")
        gaps = table["relevant AC"].astype(float) - table["non-relevant AC"].astype(float)
        printed_gaps += gaps.tolist()
    printed = 100 * float(np.mean(printed_gaps))
    return Evidence(statistic, estimate, low, high, n=len(by_question), printed=printed)


def _fall_short(scored: pd.DataFrame) -> Evidence:
    """Mean precision over the modes on what stands for NQ."""
    quality = standing_for(of_experiment(scored, "modes"), "NQ")
    quality = quality.assign(points=100 * quality["precision"])
    printed = numbers(printed_table("thesis/table-5.1"), ["Precision"])["Precision"].mean()
    statistic = "mean precision over the modes, in percent"
    return pooled(quality, "points", statistic, lowest=0.0, printed=float(printed))


def biases(differences: pd.DataFrame) -> dict[str, Evidence]:
    """CAB of the answers, by the claim of the thesis on its own models that is about the same."""
    not_bm25 = differences[differences["retriever"] != "BM25"]
    by_people = differences[differences["relevant"] == "Human"]
    return {
        "5.3-human": over_settings(differences, "CAB", "modes"),
        "5.4-labelled-human": over_settings(differences, "CAB", "modes", "mixed"),
        "5.5-human": over_settings(differences, "CAB", "mixed"),
        "5.8-names": over_settings(differences, "CAB", "names"),
        "5.9-retrievers": over_settings(not_bm25, "CAB", "retrievers"),
        "5.9-passages": over_settings(by_people, "CAB", "documents"),
    }


def pooled_biases(scored: pd.DataFrame) -> dict[str, Evidence]:
    """`biases` of the answers of all models above the level of chance together."""
    pool = scored[scored["model"].isin(above_chance(scored))]
    return biases(changes(by_label(pool)))


def of_models(scored: pd.DataFrame) -> dict[str, Evidence]:
    """What answers of the models that the thesis names say of each of them, by claim.

    A sentence on all of them rests on the model that bears it out least.
    """
    by_claim: dict[str, list[Evidence]] = {}
    for _, answers in scored.groupby("model", sort=False):
        differences = changes(by_label(answers))
        of_model = biases(differences)
        of_model["5.1-fall-short"] = _fall_short(answers)
        for name, labels in {"5.2-sensitive": "mixed", "5.7-sensitive": "names"}.items():
            of_model[name] = more_sensitive(beside_placebo(differences, "CAS", labels))
        for name, finding in of_model.items():
            by_claim.setdefault(name, []).append(finding)

    not_shown = from_print.without_numbers()
    evidence = {name: _least(findings) for name, findings in by_claim.items()}
    return not_shown | evidence


def _least(findings: Sequence[Evidence]) -> Evidence:
    """Of the evidence on several models the one that lies lowest; that without numbers is last."""
    shown = [finding for finding in findings if finding.low is not None]
    return min(shown, key=lambda finding: finding.low or 0.0) if shown else findings[0]


def evidence(scored: pd.DataFrame) -> dict[str, Evidence]:
    """What the recorded answers say of what is not about the thesis's own models, by claim.

    Pooled are the answers of models above the level of chance.
    """
    margins = chance(scored).values()
    weakest = min(margins, key=lambda margin: margin.estimate or 0)
    pool = scored[scored["model"].isin(above_chance(scored))]
    differences = changes(by_label(pool))
    placebo = differences[differences["experiment"] == "placebo"]
    cab_beside = beside_placebo(differences, "CAB")
    return {
        "5.1-every-model-above-chance": weakest,
        "5.5-negligible": replace(over_settings(differences, "CAB", "mixed"), printed=None),
        "5.6-signal": _confidence(of_experiment(pool, "modes", "mixed")),
        "placebo-cab": pooled(
            placebo, "CAB", "CAB of labels that mean nothing, mean over questions, in points"
        ),
        "placebo-cas": more_sensitive(beside_placebo(differences, "CAS")),
        "placebo-bias": farther_from_zero(cab_beside),
    }


# --- overview -------------------------------------------------------------------------------------

KINDS = {
    "modes": "Human / LLM, true authors",
    "mixed": "Human / LLM, mixed mode",
    "names": "name / AI, mixed mode",
    "placebo": "Birch / Maple, mixed mode (placebo)",
}
"""Experiments of the overview, and what their labels and modes are."""


def overview(scored: pd.DataFrame) -> pd.DataFrame:
    """CAB of every experiment, model and benchmark, beside the mean and range that are printed.

    Over all settings and both scores.
    """
    differences = changes(by_label(scored)).dropna(subset=["CAB"])
    models_above_chance = above_chance(scored)
    kinds = dict(KINDS)
    for name in differences["experiment"].unique():
        if name not in CELLS:  # labels of one's own
            kinds[name] = f"{name}, mixed mode"

    rows = []
    for experiment, kind in kinds.items():
        printed_low, printed_high = np.nan, np.nan
        table = PRINTED_IN.get(experiment, {}).get("CAB")
        if table:
            printed = printed_numbers(table)
            printed_low, printed_high = printed.min(axis=None), printed.max(axis=None)
        experiment_rows = differences[differences["experiment"] == experiment]
        for (model, benchmark), rows_of_model in experiment_rows.groupby(
            ["model", "benchmark"], sort=False
        ):
            cab = over_settings(rows_of_model, "CAB", experiment)
            changed = rows_of_model.loc[rows_of_model["CAB"] != 0, UNIT].drop_duplicates()
            name = f"{model}, {benchmark}, n = {cab.n}"
            if model not in models_above_chance:
                name += " (chance level)"
            rows.append(
                {
                    "group": kind,
                    "name": name,
                    "questions": cab.n,
                    "changed": len(changed),
                    "value": cab.estimate,
                    "low": cab.low,
                    "high": cab.high,
                    "printed mean": cab.printed,
                    "printed low": printed_low,
                    "printed high": printed_high,
                }
            )
    return pd.DataFrame(rows)
