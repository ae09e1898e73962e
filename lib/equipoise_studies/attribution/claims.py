"""Evidence for the claims of chapter 5, with an interval over questions.

All answers to a question are resampled together. Where a benchmark has few questions, two invented
ones are added, one at either extreme, as in the adjusted interval of a difference of paired
proportions (Bonett and Price 2012). Where none of fifteen questions changes, a bootstrap alone
would exclude that any ever does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from equipoise.answer_modes import mode_parts
from equipoise.arrays import Floats, Integers, ratio
from equipoise.measures.attribution import score_answers
from equipoise.statistics import resampled
from equipoise.statistics.intervals import intervals_of_means
from equipoise_compendium.evidence import bootstrapped, not_sampled
from equipoise_compendium.printed import printed_table
from equipoise_compendium.protocol import Evidence
from equipoise_studies.attribution.data import EXPERIMENTS, Study, in_experiment
from equipoise_studies.attribution.published import (
    DIFFERENCES,
    numbers,
    tables,
    with_interval,
)

PUBLISHED = "published numbers"
REPLICATED = ("NQ, Qwen 1.5B", "NQ-UTD, Qwen 1.5B", "NQ, Qwen 0.5B")
"""Collections of cached answers: benchmark and model."""
SEED = 14
FEWEST = 10
"""Questions below which a bootstrap says little, and no figure shows an interval."""
FEWEST_PER_SIDE = 5
"""Citations of relevant passages, and of others, below which their confidence is not tested.

Where questions are resampled it is the number of questions with such citations.
"""
FEW = 30
"""Questions below which two invented ones are added."""
CELL = ["experiment", "model", "benchmark", "retriever", "k", "relevant", "non-relevant"]
PUBLISHED_IN = {"modes": "5.3", "mixed": "5.5", "names": "5.8"}
"""Experiments, and the tables that report their CAB."""


# --- published numbers ----------------------------------------------------------------------------


def parts(values: pd.Series) -> dict[str, dict[str, Evidence]]:
    """Return evidence from published numbers, one part per row, named after the row."""
    return {PUBLISHED: not_sampled(values, "no error is published")}


def mean_biases(
    biases: pd.DataFrame, keys: Sequence[str], sample: int
) -> dict[str, dict[str, Evidence]]:
    """Return the mean of published CAB over settings, one part per group of ``keys``.

    ``biases``: ``gap`` and ``error`` of settings. Settings of one benchmark share their questions,
    so their errors may all have one sign; the benchmarks are independent.
    """
    by_benchmark = biases.groupby([*keys, "benchmark"], sort=False)[["gap", "error"]].mean()
    groups = by_benchmark.groupby(list(keys), sort=False)
    squares = (by_benchmark["error"] ** 2).groupby(list(keys), sort=False).sum()
    means = pd.DataFrame({"gap": groups["gap"].mean(), "error": np.sqrt(squares) / groups.size()})
    return with_errors(means, sample, sample * biases["benchmark"].nunique())


def with_errors(
    table: pd.DataFrame, sample: int, n: int, tail: float = 0.025
) -> dict[str, dict[str, Evidence]]:
    """Return evidence from the ``gap`` and ``error`` of each row of a table; ``n`` questions.

    ``tail``: probability of each tail of an interval.
    """
    table = with_interval(table, sample, tail)
    by_part = {}
    for label, gap, low, high in table[["gap", "low", "high"]].itertuples(name=None):
        name = ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)
        by_part[name] = Evidence(gap, low, high, n=n, level=1 - 2 * tail)
    return {PUBLISHED: by_part}


def largest_shifts(shifts: pd.DataFrame, sample: int) -> dict[str, dict[str, Evidence]]:
    """Return how far labels shift each model's recall in the setting with the largest shift.

    Random variation has no direction: it makes a CAS, but no shift of the mean. Of several settings
    one shifts most by chance, so each interval has Bonferroni's level. ``shifts``: ``gap`` and
    ``error`` of each setting.
    """
    shifts = shifts.assign(gap=shifts["gap"].abs())
    by_model = shifts.groupby("model", sort=False)["gap"]
    largest = shifts.loc[by_model.idxmax()].set_index("model")
    return with_errors(largest, sample, sample, tail=0.025 / by_model.size().max())


def margins_over(
    table: pd.DataFrame,
    index: Sequence[str],
    lowest: str,
    columns: str = "model",
    scores: Sequence[str] = tuple(DIFFERENCES),
) -> dict[str, dict[str, Evidence]]:
    """Return the published scores of the others minus the scores of ``lowest``."""
    wide = numbers(table, scores).pivot_table(index=list(index), columns=columns, values=[*scores])
    margins = {}
    for score in scores:
        for name in wide[score].columns.drop(lowest):
            margins[score.removeprefix("Δ"), name] = wide[score, name] - wide[score, lowest]
    return parts(pd.concat(margins))


def scored_as_stated(
    artefact: str, key: str, right: Collection[str], cites_wrongly: Collection[str]
) -> dict[str, dict[str, Evidence]]:
    """Return whether the scores of published answers agree with the text, 1 or 0.

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
    agrees = (scored["recall"] == is_right) & (scored["exact_match"] == is_right)
    has_wrong_citation = scored["cited"] > scored["cited_relevant"]
    agrees &= has_wrong_citation == scored.index.isin(cites_wrongly)
    return parts(agrees.astype(float))


# --- intervals over questions ---------------------------------------------------------------------


def on_collections(
    table: pd.DataFrame, names: Sequence[str], compute: Callable[[pd.DataFrame], Evidence]
) -> dict[str, Evidence]:
    """Evidence on each collection of cached answers, from its rows of a table."""
    evidence = {}
    for name in names:
        rows = table[table["collection"] == name]
        missing = Evidence(reason="there is no cached answer")
        evidence[name] = missing if rows.empty else compute(rows)
    return evidence


def pooled_mean(
    table: pd.DataFrame, column: str, *, settings: Sequence[str] = (), lowest: float = -100.0
) -> Evidence:
    """Return the mean of a column of scores up to 100, with a bootstrap CI over questions.

    ``settings``: columns; each setting has its mean first, as in a mean of published cells. Without
    them every row has the same weight. ``lowest``: the lowest value that a score can have.
    """
    scores = table.dropna(subset=[column])
    setting = scores.groupby(list(settings)).ngroup() if settings else 0
    sums, counts = _by_question(scores.assign(setting=setting), column, "setting")
    return _over_questions(_mean_of_settings, sums, counts, [lowest, 100.0])


def _by_question(table: pd.DataFrame, column: str, over: str) -> tuple[Floats, Floats]:
    """Return sums and numbers of rows, both shaped (questions, values of ``over``)."""
    wide = table.pivot_table(column, "question", over, aggfunc=["sum", "count"], fill_value=0)
    return wide["sum"].to_numpy(dtype=np.float64), wide["count"].to_numpy(dtype=np.float64)


def _with_invented(sums: Floats, counts: Floats, extremes: Sequence[Any]) -> tuple[Floats, Floats]:
    """Add a question at each extreme where questions are few; shapes (questions, settings)."""
    if len(sums) >= FEW:
        return sums, counts
    # An invented question has as many rows in a setting as the others there on average.
    rows = ratio(counts.sum(axis=0), (counts > 0).sum(axis=0), 0.0)
    invented = [np.multiply(extreme, rows) for extreme in extremes]
    return np.vstack([sums, *invented]), np.vstack([counts, *([rows] * len(extremes))])


def _over_questions(
    statistic: Callable[[Floats, Floats], float],
    sums: Floats,
    counts: Floats,
    extremes: Sequence[Any],
) -> Evidence:
    """Compute a statistic of sums and numbers of rows; the interval includes invented questions."""
    estimate = statistic(sums, counts)
    more_sums, more_counts = _with_invented(sums, counts, extremes)

    def of_drawn(drawn: Integers) -> float:
        return statistic(more_sums[drawn], more_counts[drawn])

    _, low, high = resampled(of_drawn, len(more_sums), np.random.default_rng(SEED))
    return Evidence(estimate, min(low, estimate), max(high, estimate), n=len(sums))


def _mean_of_settings(sums: Floats, counts: Floats) -> float:
    """Average the settings' means; sums and numbers of rows have shape (questions, settings)."""
    means = ratio(sums.sum(axis=0), counts.sum(axis=0), np.nan)
    return float(np.nanmean(means))  # a sample may contain no question of a setting


def confidence_gap(citations: pd.DataFrame, published_mean: float) -> Evidence:
    """Return the mean probability of relevant citations minus that of others, in points.

    ``citations``: with ``relevant`` and ``probability``.
    """
    questions = citations.groupby("relevant")["question"].nunique().reindex([True, False])
    if questions.fillna(0).min() < FEWEST_PER_SIDE:
        return Evidence(reason=f"fewer than {FEWEST_PER_SIDE} questions have citations of one kind")
    points = 100 * citations["probability"]
    sides = citations.assign(points=points, side=np.where(citations["relevant"], 0, 1))
    sums, counts = _by_question(sides, "points", "side")

    def gap(drawn: Integers) -> float:
        means = ratio(sums[drawn].sum(axis=0), counts[drawn].sum(axis=0), np.nan)
        return float(means[0] - means[1])  # NaN where a sample has no row of one side

    return bootstrapped(gap, len(sums), published_mean, seed=SEED)


def above_chance(scored: pd.DataFrame, settings: Sequence[str] = ()) -> Evidence:
    """Return recall minus the recall of as many random citations, in points.

    ``scored`` has ``recall`` from 0 to 1, ``cited`` and the number ``k`` of passages.
    """
    above = 100 * (scored["recall"] - scored["cited"] / scored["k"])
    return pooled_mean(scored.assign(above=above), "above", settings=settings)


def farther_from_zero(pairs: pd.DataFrame) -> Evidence:
    """Return the distance of CAB from zero with author labels minus that with meaningless labels.

    Which of two meaningless labels takes the place of Human is arbitrary, and exchanging them
    changes the sign of their CAB: only its distance from zero is informative. ``pairs``: CAB as
    `with_placebo` returns it.
    """
    long = pairs.melt(["question"], ["authors", "placebo"], "labels", "value")
    sums, counts = _by_question(long, "value", "labels")

    def excess(sums: Floats, counts: Floats) -> float:
        authors, placebo = np.abs(sums.sum(axis=0) / counts.sum(axis=0))
        return float(authors - placebo)

    # In the two invented questions each kind of labels is at the extreme once, the other at zero.
    return _over_questions(excess, sums, counts, [[100, 0], [0, 100]])


def missed_recall(one_form: pd.DataFrame, all_forms: pd.DataFrame) -> Evidence:
    """Return the recall that is missed if only [1] is read, mean of the models.

    Further citations can only raise recall, so what as many random citations would add is
    subtracted. Takes answers of `data.large_model_answers` in two readings.
    """
    further = all_forms["cited"] - one_form["cited"]
    others = all_forms["passages"] - one_form["cited"]
    at_random = (100 - one_form["recall"]) * further / others.clip(lower=1)
    missed = all_forms.assign(missed=all_forms["recall"] - one_form["recall"] - at_random)
    return pooled_mean(missed, "missed", settings=["model"])


# --- changes, question by question ----------------------------------------------------------------


def changes(scored: pd.DataFrame) -> pd.DataFrame:
    """Return CAB and CAS by question, cell (columns of `CELL`) and score, in points.

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
    tables_of = [
        in_experiment(scored, *group).assign(experiment=name) for name, group in groups.items()
    ]
    table = pd.concat(tables_of, ignore_index=True).drop(columns="relevant")
    table = table.rename(
        columns={"relevant_author": "relevant", "nonrelevant_author": "non-relevant"}
    )

    relevant_modes = {mode: mode_parts(mode)[0] for mode in table["mode"].unique()}
    mode = table["mode"].map(relevant_modes)
    # Informed tells the truth about the relevant passage, CF-informed the opposite.
    labelled_human = (table["relevant"] == "Human") == (mode == "Informed")
    table["label"] = np.select([mode == "Vanilla", labelled_human], ["none", "Human"], "LLM")

    keys = [*CELL, "collection", "score", "question"]
    scores = table.melt(
        [*CELL, "collection", "question", "label"], ["precision", "recall"], "score", "value"
    )
    wide = scores.pivot_table(index=keys, columns="label", values="value") * 100
    wide = wide.reindex(columns=["Human", "LLM", "none"]).dropna(subset=["Human", "LLM"])
    wide = wide.reset_index()
    wide["CAB"] = wide["Human"] - wide["LLM"]
    moved = wide[["Human", "LLM"]].sub(wide["none"], axis=0).abs()
    one_author = wide["relevant"] == wide["non-relevant"]
    by_truth = moved["Human"].where(wide["relevant"] == "Human", moved["LLM"])
    wide["CAS"] = moved.mean(axis=1, skipna=False).where(one_author, by_truth)

    # Records of one model are one collection, and differ in the name of the model.
    wide["questions"] = wide.groupby([*CELL, "score"])["question"].transform("nunique")
    ordered = wide.sort_values("questions", ascending=False, kind="stable")
    cell = [name for name in CELL if name != "model"] + ["collection"]
    largest = ordered.groupby(cell)["model"].transform("first")
    return ordered[ordered["model"] == largest].sort_index()


def over_settings(differences: pd.DataFrame, quantity: str, experiment: str) -> Evidence:
    """Return CAS or CAB over all settings of an experiment, from the table of `changes`."""
    rows = differences[differences["experiment"] == experiment]
    lowest = -100.0 if quantity == "CAB" else 0.0
    return pooled_mean(rows, quantity, settings=CELL, lowest=lowest)


def published_cab(differences: pd.DataFrame, experiment: str, study: Study) -> float | None:
    """Return the mean CAB that the thesis reports for the settings of an experiment.

    ``differences``: the table of `changes`. None where the thesis reports none.
    """
    if experiment not in PUBLISHED_IN:
        return None
    rows = differences[differences["experiment"] == experiment]
    settings = rows.assign(benchmark=rows["benchmark"].map(study.benchmarks_of_the_thesis()))
    table = numbers(tables(PUBLISHED_IN[experiment]), DIFFERENCES)
    shared = [key for key in ("benchmark", "relevant", "non-relevant") if key in table]
    cells = table.merge(settings[shared].drop_duplicates())[DIFFERENCES].to_numpy()
    return float(cells.mean()) if cells.size else None


LABELS = {
    "modes": "Human / LLM, true authors",
    "mixed": "Human / LLM, mixed mode",
    "names": "name / AI, mixed mode",
    "placebo": "Birch / Maple, mixed mode (placebo)",
}
"""Experiments of the overview, and the labels that they compare."""


def overview(differences: pd.DataFrame, study: Study, voting: Collection[str]) -> pd.DataFrame:
    """Return CAB by experiment and collection, and mean and range of the published CAB.

    In each experiment the collection with most questions comes first.

    ``differences``: the table of `changes`. ``voting``: collections whose control is supported.
    """
    own = sorted(set(differences["experiment"]) - set(EXPERIMENTS))
    rows = []
    for experiment, labels in (LABELS | {name: f"{name}, mixed mode" for name in own}).items():
        cells = np.array([np.nan])
        if experiment in PUBLISHED_IN:
            cells = numbers(tables(PUBLISHED_IN[experiment]), DIFFERENCES)[DIFFERENCES].to_numpy()
        experiment_rows = differences[differences["experiment"] == experiment]
        of_labels = []
        for collection, part in experiment_rows.groupby("collection", sort=False):
            cab = over_settings(part, "CAB", experiment)
            at_chance = "" if collection in voting else " (chance level)"
            of_labels.append(
                {
                    "group": labels,
                    "name": f"{collection}, n = {cab.n}{at_chance}",
                    "questions": cab.n,
                    "changed": part.loc[part["CAB"] != 0, "question"].nunique(),
                    "value": cab.estimate,
                    "low": cab.low,
                    "high": cab.high,
                    "published mean": published_cab(part, experiment, study),
                    "published low": cells.min(),
                    "published high": cells.max(),
                }
            )
        rows += sorted(of_labels, key=lambda row: -row["questions"])
    return pd.DataFrame(rows)


def over_passages(differences: pd.DataFrame) -> pd.DataFrame:
    """Return CAS and CAB by the number of passages, mean of both scores; passages by people.

    Only models and benchmarks with several numbers of passages are included.
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
    """Return CAB or CAS of the same questions with author labels and with meaningless labels.

    The two are the columns ``authors`` and ``placebo``, their difference is ``gap``.
    """
    keys = [name for name in CELL if name != "experiment"] + ["collection", "score", "question"]
    rows = differences[differences["experiment"].isin(["mixed", "placebo"])]
    wide = rows.pivot_table(index=keys, columns="experiment", values=quantity)
    wide = wide.reindex(columns=["mixed", "placebo"]).dropna()
    wide = wide.reset_index().rename(columns={"mixed": "authors"})
    return wide.assign(gap=wide["authors"] - wide["placebo"])


# --- large models ---------------------------------------------------------------------------------


def change_over(table: pd.DataFrame, score: str, over: str, few: int, many: int) -> Evidence:
    """Return a score where a column is ``many`` minus where it is ``few``, mean of the models.

    Each question has its mean in a model first; only questions with both are compared.
    """
    wide = table.pivot_table(score, ["model", "question"], over).dropna(subset=[few, many])
    change = (wide[many] - wide[few]).rename("change").reset_index()
    return pooled_mean(change, "change", settings=["model"])


SCORES_OF_LARGE = {"precision": "Precision", "recall": "Recall", "correct": "Correctness"}
"""Scores of large models, and their names in a figure."""


def scores_by(
    table: pd.DataFrame,
    over: str,
    level: float,
    resamples: int,
    names: Mapping[str, str] = SCORES_OF_LARGE,
) -> pd.DataFrame:
    """Return mean scores of models by a column: ``over, at, model, score, value`` with CIs.

    Each question has its mean first. Fewer than `FEWEST` questions have no interval. ``names``: of
    the scores, by column.
    """
    rows = []
    means_of_questions = []
    for score, name in names.items():
        by_question = table.groupby(["model", over, "question"], sort=False)[score].mean()
        for (model, at), means in by_question.groupby(["model", over], sort=False):
            rows.append([over, at, model, name, len(means), means.mean()])
            enough = len(means) >= FEWEST
            means_of_questions.append(means.to_numpy() if enough else np.empty(0))
    scores = pd.DataFrame(rows, columns=["over", "at", "model", "score", "questions", "value"])
    intervals = intervals_of_means(means_of_questions, SEED, level=level, resamples=resamples)
    scores[["low", "high"]] = intervals
    return scores


# --- people ---------------------------------------------------------------------------------------

PEOPLE = "TREC RAG 2024, GPT-4o and people"
"""The collection of answers by GPT-4o and by people to the same questions."""


def scores_of_people(shown: pd.DataFrame, least: int) -> pd.DataFrame:
    """Score each answer by GPT-4o or by people on its judged passages, in points.

    ``shown``: of `data.answers_of_people`. ``least``: the least relevant grade. Questions without
    both kinds of passages are left out. Precision is missing where an answer cites nothing.
    ``above_random`` subtracts what as many random citations would reach, ``above_rank`` what an
    author would reach who cites each rank as often as this one, but regardless of the content.
    """
    rate = shown.groupby(["author", "rank"])["cited"].mean().rename("rate")
    judged = shown.dropna(subset=["grade"]).join(rate, on=["author", "rank"])
    judged["relevant"] = judged["grade"] >= least
    judged["hits"] = judged["relevant"] & judged["cited"]
    judged["rate of relevant"] = judged["rate"] * judged["relevant"]
    by_answer = judged.assign(k=1).groupby(["author", "question", "style"])
    sums = by_answer[["k", "cited", "relevant", "hits", "rate", "rate of relevant"]].sum()
    sums = sums[(sums["relevant"] > 0) & (sums["relevant"] < sums["k"])]
    precision, recall = sums["hits"] / sums["cited"], sums["hits"] / sums["relevant"]
    scores = {
        "precision": precision,
        "recall": recall,
        "precision_above_random": precision - sums["relevant"] / sums["k"],
        "precision_above_rank": precision - sums["rate of relevant"] / sums["rate"],
        "recall_above_random": recall - sums["cited"] / sums["k"],
    }
    return (100 * pd.DataFrame(scores)).reset_index()


def beyond_people(scores: pd.DataFrame, column: str) -> Evidence:
    """Return a score of GPT-4o minus the score of people, mean over questions that both have."""
    wide = scores.pivot_table(column, "question", "author").dropna()
    gaps = (wide["GPT-4o"] - wide["people"]).rename("gap")
    return pooled_mean(gaps.reset_index(), "gap")


def of_author(scores: pd.DataFrame, author: str, column: str) -> Evidence:
    """Return the mean over questions of a score of one author."""
    by_question = scores[scores["author"] == author].groupby("question")[[column]].mean()
    return pooled_mean(by_question.reset_index(), column)
