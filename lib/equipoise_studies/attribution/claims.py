"""Evidence for the claims of chapter 5, with an interval over questions.

All answers to a question are drawn together. Of each benchmark two invented questions are drawn
too, one at either extreme, as in the adjusted interval of a difference of paired proportions
(Bonett and Price 2012): where none of fifteen questions changes, a bootstrap alone would say that
none ever does.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd

from equipoise.answer_modes import mode_parts
from equipoise.arrays import Floats, Integers, ratio
from equipoise.measures.attribution import score_answers
from equipoise.statistics import resampled
from equipoise.statistics.intervals import bootstrap_intervals
from equipoise_compendium.claims import Evidence
from equipoise_compendium.printed import printed_table
from equipoise_studies.attribution.data import EXPERIMENTS, Study, in_experiment
from equipoise_studies.attribution.published import DIFFERENCES, numbers, tables, with_interval

SEED = 14
FEWEST = 10
"""Questions below which a bootstrap says little, and none is computed."""
UNIT = ["benchmark", "question"]
CELL = ["experiment", "model", "benchmark", "retriever", "k", "relevant", "non-relevant"]
PUBLISHED_IN = {"modes": "5.3", "mixed": "5.5", "names": "5.8"}
"""Experiments, and the tables that report their CAB."""


# --- evidence -------------------------------------------------------------------------------------


def published(said: str, value: float) -> Evidence:
    """Evidence that follows from published numbers alone."""
    return Evidence(said, float(value), reason="published numbers: nothing is sampled")


def pooled_mean(
    table: pd.DataFrame,
    column: str,
    said: str,
    *,
    settings: Sequence[str] = (),
    lowest: float = -100.0,
) -> Evidence:
    """The mean of a column of scores up to 100, by bootstrap over questions.

    ``settings``: columns; each setting has its mean first, as in a mean of published cells. Without
    them every row has the same weight. ``said``: what the number is. ``lowest``: the lowest value
    that a score can have.
    """
    scores = table.dropna(subset=[column])
    if scores.empty:
        return Evidence(said, reason="no cached answer of a model above the level of chance")
    setting = scores.groupby(list(settings)).ngroup() if settings else 0
    by_question = scores.assign(setting=setting).pivot_table(
        column, UNIT, "setting", aggfunc=["sum", "count"], fill_value=0
    )
    sums = by_question["sum"].to_numpy(dtype=np.float64)  # shape (questions, settings)
    counts = by_question["count"].to_numpy(dtype=np.float64)
    estimate = _mean_of_settings(sums, counts)

    # An invented question has as many rows in a setting as the others there on average.
    benchmarks = by_question.index.get_level_values("benchmark")
    for benchmark in benchmarks.unique():
        asked = counts[: len(benchmarks)][benchmarks == benchmark]
        rows = ratio(asked.sum(axis=0), (asked > 0).sum(axis=0), 0.0)
        sums = np.vstack([sums, lowest * rows, 100 * rows])
        counts = np.vstack([counts, rows, rows])

    def mean(drawn: Integers) -> float:
        return _mean_of_settings(sums[drawn], counts[drawn])

    _, low, high = resampled(mean, len(sums), np.random.default_rng(SEED))
    low, high = min(low, estimate), max(high, estimate)
    return Evidence(said, estimate, low, high, n=len(by_question))


def _mean_of_settings(sums: Floats, counts: Floats) -> float:
    """Mean of the settings' means; sums and numbers of rows have shape (questions, settings)."""
    means = ratio(sums.sum(axis=0), counts.sum(axis=0), np.nan)
    return float(np.nanmean(means))  # a draw may contain no question of a setting


def difference_of_means(
    table: pd.DataFrame, column: str, first: str, said: str, *, published_mean: float | None = None
) -> Evidence:
    """The mean of the rows whose column ``first`` is true minus that of the others."""
    sides = table.assign(side=np.where(table[first], "first", "other"))
    wide = sides.pivot_table(column, UNIT, "side", aggfunc=["sum", "count"], fill_value=0)
    sums = wide["sum"].to_numpy(dtype=np.float64)  # shape (questions, 2)
    counts = wide["count"].to_numpy(dtype=np.float64)

    def gap(drawn: Integers) -> float:
        means = sums[drawn].sum(axis=0) / np.maximum(counts[drawn].sum(axis=0), 1)
        return float(means[0] - means[1])

    estimate, low, high = resampled(gap, len(wide), np.random.default_rng(SEED))
    return Evidence(said, estimate, low, high, n=len(wide), printed=published_mean)


def farther_from_zero(pairs: pd.DataFrame) -> Evidence:
    """How much farther from zero CAB is with labels of authors than with meaningless labels.

    Which of two meaningless labels takes the place of Human is arbitrary, and exchanging them
    changes the sign of their CAB: only its distance from zero is informative. ``pairs``: CAB as
    `with_placebo` returns it.
    """
    columns = ["authors", "placebo"]
    by_question = pairs.groupby(UNIT)[columns].agg(["sum", "count"])
    sums = by_question.xs("sum", axis=1, level=1).to_numpy(dtype=np.float64)
    counts = by_question.xs("count", axis=1, level=1).to_numpy(dtype=np.float64)[:, :1]
    authors, placebo = sums.sum(axis=0) / counts.sum()

    # In the two invented questions each kind of labels is at either extreme once.
    rows = counts.mean()
    sums = np.vstack([sums, [100 * rows, -100 * rows], [-100 * rows, 100 * rows]])
    counts = np.vstack([counts, [rows], [rows]])

    def excess(drawn: Integers) -> float:
        distances = np.abs(sums[drawn].sum(axis=0) / counts[drawn].sum())
        return float(distances[0] - distances[1])

    _, low, high = resampled(excess, len(sums), np.random.default_rng(SEED))
    estimate = float(abs(authors) - abs(placebo))
    said = (
        "distance of CAB from zero, labels of authors minus meaningless labels "
        f"(|{authors:.1f}| minus |{placebo:.1f}|), in points"
    )
    return Evidence(said, estimate, min(low, estimate), max(high, estimate), n=len(by_question))


def least_mean_bias(biases: pd.DataFrame, sample: int, said: str) -> Evidence:
    """The least mean bias of a model in precision or recall, over its settings.

    ``biases``: ``gap`` and ``error`` of published settings. Settings of one benchmark share their
    questions, so their errors may all have one sign; the benchmarks are independent.
    """
    keys = ["model", "score"]
    by_benchmark = biases.groupby([*keys, "benchmark"])[["gap", "error"]].mean()
    groups = by_benchmark.groupby(keys)
    errors = np.sqrt((by_benchmark["error"] ** 2).groupby(keys).sum()) / groups.size()
    means = pd.DataFrame({"gap": groups["gap"].mean(), "error": errors})
    model, score = means["gap"].idxmin()
    gap, low, high = with_interval(means, sample)[["gap", "low", "high"]].min()
    said = f"{said}, least mean of a model: {score} of {model}, in points"
    return Evidence(said, gap, low, high, n=sample * biases["benchmark"].nunique())


def least_shift(shifts: pd.DataFrame, sample: int) -> Evidence:
    """How far labels shift a model's recall in the setting with the largest shift; least model.

    Random variation has no direction: it makes a CAS, but no shift of the mean. Of several settings
    one shifts most by chance, so each interval has Bonferroni's level. ``shifts``: ``gap`` and
    ``error`` of each setting.
    """
    shifts = shifts.assign(gap=shifts["gap"].abs())
    by_model = shifts.groupby("model")["gap"]
    largest = shifts.loc[by_model.idxmax()]
    largest = with_interval(largest, sample, tail=0.025 / by_model.size().max())
    least = largest.loc[largest["low"].idxmin()]
    said = f"shift of recall by labels, largest of the settings of {least['model']}, in points"
    return Evidence(said, least["gap"], least["low"], least["high"], n=sample)


def missed_recall(one_form: pd.DataFrame, all_forms: pd.DataFrame) -> Evidence:
    """Recall that is missed where only [1] is read, mean of the models.

    Further citations can only raise recall, so what as many random citations would add is
    subtracted. Takes answers of `data.large_model_answers` in two readings.
    """
    further = all_forms["cited"] - one_form["cited"]
    others = all_forms["passages"] - one_form["cited"]
    at_random = (100 - one_form["recall"]) * further / others.clip(lower=1)
    missed = all_forms.assign(missed=all_forms["recall"] - one_form["recall"] - at_random)
    said = (
        "recall by all forms of citation minus that by [1] alone, and minus what as many random "
        "citations would add, mean of the models, in points"
    )
    return pooled_mean(missed, "missed", said, settings=["model"])


def least_margin(
    table: pd.DataFrame,
    index: Sequence[str],
    lowest: str,
    columns: str = "model",
    scores: Sequence[str] = tuple(DIFFERENCES),
) -> Evidence:
    """The least difference between the published scores of the others and those of ``lowest``."""
    wide = numbers(table, scores).pivot_table(index=list(index), columns=columns, values=[*scores])
    margins = []
    for score in scores:
        others = wide[score].drop(columns=lowest)
        margins.append(others.sub(wide[score, lowest], axis=0).to_numpy().ravel())
    gaps = np.concatenate(margins)
    said = f"smallest of {gaps.size} differences from {lowest} ({(gaps > 0).sum()} are above zero)"
    return published(said, gaps.min())


def scored_otherwise(
    artefact: str, key: str, right: Collection[str], cites_wrongly: Collection[str]
) -> Evidence:
    """How many published answers are scored otherwise than the text states.

    ``key``: the column that names an answer. ``right``, ``cites_wrongly``: the answers of which the
    text says so.
    """
    answers = printed_table(artefact).rename(columns={"query": "question"})
    answers["relevant"] = [(int(number),) for number in answers["relevant document"]]
    answers["gold"] = answers["gold answer"].str.split("; ")
    scored = score_answers(answers[["question", key, "answer", "relevant", "gold"]])
    scored = scored.set_index(key)

    # An answer that is right contains the gold answer and cites the relevant passage.
    is_right = scored.index.isin(right)
    otherwise = (scored["recall"] != is_right) | (scored["exact_match"] != is_right)
    has_wrong_citation = scored["cited"] > scored["cited_relevant"]
    otherwise |= has_wrong_citation != scored.index.isin(cites_wrongly)
    precision = ", ".join(f"{name} {value:.2f}" for name, value in scored["precision"].items())
    return published(f"answers scored otherwise (precision: {precision})", otherwise.sum())


# --- changes, question by question ----------------------------------------------------------------


def changes(scored: pd.DataFrame) -> pd.DataFrame:
    """CAB and CAS of every question, cell (columns of `CELL`) and score, in points.

    Where one author wrote all passages, CAS is the mean of both modes with labels; otherwise it is
    that of the mode with true labels. Where several records of a model have a cell, the one with
    most questions is used.
    """
    groups: dict[str, tuple[str, ...]] = {}
    for name in EXPERIMENTS:
        if name != "same label":
            groups[name] = (name,)
    groups |= {"retrievers": ("names", "retrievers"), "documents": ("names", "documents")}
    for name in sorted(set().union(*scored["experiments"]) - set(EXPERIMENTS)):
        groups[name] = (name,)
    parts = [
        in_experiment(scored, *group).assign(experiment=name) for name, group in groups.items()
    ]
    table = pd.concat(parts, ignore_index=True).drop(columns="relevant")
    table = table.rename(
        columns={"relevant_author": "relevant", "nonrelevant_author": "non-relevant"}
    )

    relevant_modes = {mode: mode_parts(mode)[0] for mode in table["mode"].unique()}
    mode = table["mode"].map(relevant_modes)
    # Informed tells the truth about the relevant passage, CF-informed the opposite.
    labelled_human = (table["relevant"] == "Human") == (mode == "Informed")
    table["label"] = np.select([mode == "Vanilla", labelled_human], ["none", "Human"], "LLM")

    keys = [*CELL, "weights", "score", "question"]
    scores = table.melt(
        [*CELL, "weights", "question", "label"], ["precision", "recall"], "score", "value"
    )
    wide = scores.pivot_table(index=keys, columns="label", values="value") * 100
    wide = wide.reindex(columns=["Human", "LLM", "none"]).dropna(subset=["Human", "LLM"])
    wide = wide.reset_index()
    wide["CAB"] = wide["Human"] - wide["LLM"]
    moved = wide[["Human", "LLM"]].sub(wide["none"], axis=0).abs()
    one_author = wide["relevant"] == wide["non-relevant"]
    by_truth = moved["Human"].where(wide["relevant"] == "Human", moved["LLM"])
    wide["CAS"] = moved.mean(axis=1, skipna=False).where(one_author, by_truth)

    # Records of one model have the same weights, and differ in the name of the model.
    wide["questions"] = wide.groupby([*CELL, "score"])["question"].transform("nunique")
    ordered = wide.sort_values("questions", ascending=False, kind="stable")
    cell = [name for name in CELL if name != "model"] + ["weights"]
    largest = ordered.groupby(cell)["model"].transform("first")
    return ordered[ordered["model"] == largest].sort_index()


def above_chance(scored: pd.DataFrame) -> dict[str, Evidence]:
    """By how many points each model's recall exceeds that of as many random citations."""
    margin = scored.assign(above=100 * (scored["recall"] - scored["cited"] / scored["k"]))
    margins = {}
    for model, answers in margin.groupby("model", sort=False):
        said = f"recall of {model} above that of random citations, in points"
        margins[str(model)] = pooled_mean(answers, "above", said)
    return margins


def over_settings(differences: pd.DataFrame, quantity: str, experiment: str) -> Evidence:
    """CAS or CAB over all settings of an experiment, from the table of `changes`."""
    rows = differences[differences["experiment"] == experiment].dropna(subset=[quantity])
    settings = rows.groupby(CELL).ngroups
    said = f"mean {quantity} of recall and precision, mean of {settings} settings, in points"
    lowest = -100.0 if quantity == "CAB" else 0.0
    return pooled_mean(rows, quantity, said, settings=CELL, lowest=lowest)


def published_cab(differences: pd.DataFrame, experiment: str, study: Study) -> float | None:
    """The mean CAB that the thesis reports for the settings of an experiment that are in a table.

    ``differences``: the table of `changes`. None where the thesis reports none.
    """
    if experiment not in PUBLISHED_IN:
        return None
    rows = differences[differences["experiment"] == experiment]
    names = {name: benchmark.stands_for for name, benchmark in study.benchmarks.items()}
    settings = rows.assign(benchmark=rows["benchmark"].map(names))
    table = numbers(tables(PUBLISHED_IN[experiment]), DIFFERENCES)
    shared = [key for key in ("benchmark", "relevant", "non-relevant") if key in table]
    cells = table.merge(settings[shared].drop_duplicates())[DIFFERENCES].to_numpy()
    return float(cells.mean()) if cells.size else None


def overview(differences: pd.DataFrame, study: Study, pool: Collection[str]) -> pd.DataFrame:
    """CAB of every experiment, model and benchmark, with mean and range of the published CAB.

    ``differences``: the table of `changes`. ``pool``: models above the level of chance.
    """
    kinds = {
        "modes": "Human / LLM, true authors",
        "mixed": "Human / LLM, mixed mode",
        "names": "name / AI, mixed mode",
        "placebo": "Birch / Maple, mixed mode (placebo)",
    }
    for name in sorted(set(differences["experiment"]) - set(EXPERIMENTS)):
        kinds[name] = f"{name}, mixed mode"  # other sets of labels
    rows = []
    for experiment, kind in kinds.items():
        cells = np.array([np.nan])
        if experiment in PUBLISHED_IN:
            cells = numbers(tables(PUBLISHED_IN[experiment]), DIFFERENCES)[DIFFERENCES].to_numpy()
        experiment_rows = differences[differences["experiment"] == experiment]
        for (model, benchmark), part in experiment_rows.groupby(["model", "benchmark"], sort=False):
            cab = over_settings(part, "CAB", experiment)
            at_chance = "" if model in pool else " (chance level)"
            rows.append(
                {
                    "group": kind,
                    "name": f"{model}, {benchmark}, n = {cab.n}{at_chance}",
                    "questions": cab.n,
                    "changed": part.loc[part["CAB"] != 0, "question"].nunique(),
                    "value": cab.estimate,
                    "low": cab.low,
                    "high": cab.high,
                    "printed mean": published_cab(part, experiment, study),
                    "printed low": cells.min(),
                    "printed high": cells.max(),
                }
            )
    return pd.DataFrame(rows)


def over_passages(differences: pd.DataFrame) -> pd.DataFrame:
    """CAS and CAB by the number of passages, mean of both scores; passages by people.

    Of models and benchmarks with several numbers of passages.
    """
    is_asked = (differences["experiment"] == "documents") & (differences["relevant"] == "Human")
    rows = []
    for group, part in differences[is_asked].groupby(["benchmark", "model", "k"]):
        for quantity in ("CAS", "CAB"):
            it = over_settings(part, quantity, "documents")
            rows.append([*group, quantity, it.n, it.estimate, it.low, it.high])
    columns = ["benchmark", "model", "k", "quantity", "questions", "value", "low", "high"]
    table = pd.DataFrame(rows, columns=columns)
    return table[table.groupby(["benchmark", "model"])["k"].transform("nunique") > 1]


def with_placebo(differences: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """CAB or CAS of the same questions with the labels Human and LLM, and with meaningless labels.

    The two are the columns ``authors`` and ``placebo``.
    """
    keys = [name for name in CELL if name != "experiment"] + ["score", "question"]
    rows = differences[differences["experiment"].isin(["mixed", "placebo"])]
    wide = rows.pivot_table(index=keys, columns="experiment", values=quantity)
    wide = wide.reindex(columns=["mixed", "placebo"]).dropna()
    return wide.reset_index().rename(columns={"mixed": "authors"})


def scores_by(table: pd.DataFrame, over: str, level: float, resamples: int) -> pd.DataFrame:
    """Mean scores of large models by a column, with intervals over questions.

    Precision and recall are of the answers that cite, correctness is of all. Each question has its
    mean first. Fewer than `FEWEST` questions have no interval.
    """
    rows = []
    means_of_questions = []
    for score, name in {
        "precision": "Precision",
        "recall": "Recall",
        "correct": "Correctness",
    }.items():
        answers = table if score == "correct" else table[table["cites"] > 0]
        by_question = answers.groupby(["model", over, "question"], sort=False)[score].mean()
        for group, means in by_question.groupby(["model", over], sort=False):
            rows.append([*group, name, len(means), means.mean()])
            enough = len(means) >= FEWEST
            means_of_questions.append(means.to_numpy() if enough else np.empty(0))
    scores = pd.DataFrame(rows, columns=["model", over, "score", "questions", "value"])
    intervals = bootstrap_intervals(means_of_questions, SEED, level=level, resamples=resamples)
    scores[["low", "high"]] = intervals
    return scores
