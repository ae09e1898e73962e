"""The replica of chapter 5: recorded answers, and the tables and findings that are made of their scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from equipoise import project
from equipoise.answer_modes import in_order, mode_parts
from equipoise.loaders.answers import read_answers
from equipoise.measures.attribution import attribution_confidence, bias, citation_rows, score_answers
from equipoise.measures.attribution.scores import quality_table
from equipoise.reports.printed import printed_table
from equipoise.studies.attribution.derived import Evidence, numbers, printed_totals
from equipoise.studies.attribution.design import CELLS, FOLDER, of_experiment
from equipoise.studies.recording import read_settings

BY = ["benchmark", "model"]
RENAMED = {
    "relevant_author": "relevant",
    "nonrelevant_author": "non-relevant",
    "answers": "questions",
    "exact_match": "EM",
    "relevant_ac": "relevant AC",
    "nonrelevant_ac": "non-relevant AC",
}
EXPERIMENTS: Mapping[str, Sequence[str]] = {
    **{name: [name] for name in ("modes", "mixed", "names", "placebo")},
    **{name: ["names", name] for name in ("retrievers", "documents")},
}
"""Tables of CAS and CAB, each with the experiments whose answers it takes."""


# --- recordings ---------------------------------------------------------------------------------------------------


def recorded_answers(names: Sequence[str], most: int | None = None) -> pd.DataFrame:
    """Scored answers of some records, of the first ``most`` questions of each benchmark, with the column model."""
    frames = [read_answers(project.data(*FOLDER, f"{name}.jsonl")).assign(model=name) for name in names]
    answers = pd.concat(frames, ignore_index=True)
    asked = answers.drop_duplicates(["benchmark", "question"]).groupby("benchmark")["question"]
    return score_answers(answers[answers["question"].isin(asked.head(most or len(answers)))].reset_index(drop=True))


def models(names: Sequence[str]) -> pd.DataFrame:
    """What answered: weights, program and sampling of each record."""
    settings = pd.DataFrame([read_settings(project.data(*FOLDER, f"{name}.jsonl")) for name in names])
    weights = [(name, sha256[:16] + "…") for models in settings["models"] for name, sha256 in models.items()]
    table = pd.DataFrame(weights, columns=["weights", "sha256"]).assign(program=settings["program"])
    table.insert(0, "model", names)
    return table.join(pd.DataFrame([*settings["sampling"]])[["temperature", "max_tokens", "seed"]])


def sizes(scored: pd.DataFrame) -> pd.DataFrame:
    """Size of every experiment that has been recorded in more than two of its settings, and the time it took."""
    rows = [
        (name, *group, part["question"].nunique(), len(part), part["prompt_tokens"].mean(), part["seconds"].sum() / 60)
        for name in CELLS
        for group, part in of_experiment(scored, name).groupby(["model", "benchmark"])
        if len(part[["mode", "retriever", "k", "relevant_author"]].drop_duplicates()) > 2
    ]
    names = ["experiment", "model", "benchmark", "questions", "answers", "prompt tokens an answer", "minutes"]
    return pd.DataFrame(rows, columns=names)


def faults(scored: pd.DataFrame) -> pd.DataFrame:
    """What was wrong with the answers of each model."""
    counted = scored.assign(answers=1, cut_off=scored["finish"] != "stop", citations=scored["citations"].map(len))
    names = ["answers", "uncited", "out_of_range", "repeated", "malformed", "cut_off", "citations"]
    totals = counted.groupby(["model", "benchmark"], sort=False)[names].sum()
    cited = citation_rows(scored)
    unknown = cited[cited["probability"].isna()].groupby(["model", "benchmark"]).size()
    return totals.assign(without_probability=unknown.reindex(totals.index, fill_value=0)).reset_index()


def noise(again: pd.DataFrame, scored: pd.DataFrame) -> pd.DataFrame:
    """How many answers stayed the same when their prompts were put once more."""
    same = ["benchmark", "retriever", "labels", "k", "question", "mode", "relevant_author", "nonrelevant_author"]
    twice = again.merge(scored, on=same, suffixes=(" again", ""))
    compared = {"same words": "answer", "same precision": "precision", "same recall": "recall"}
    counts = {name: int((twice[column] == twice[f"{column} again"]).sum()) for name, column in compared.items()}
    return pd.DataFrame([{"answers put twice": len(twice), **counts}])


# --- quality ------------------------------------------------------------------------------------------------------


def quality(scored: pd.DataFrame) -> pd.DataFrame:
    """Quality of every mode in points of 100, under the thesis's names; mixed modes also by their parts."""
    table = quality_table(scored, BY).rename(columns=RENAMED)
    table["Precision"], table["Recall"] = 100 * table["precision"], 100 * table["recall"]
    parts = table["mode"].map(mode_parts).str
    return table.assign(**{"relevant mode": parts[0], "non-relevant mode": parts[1]})


def compare_modes(
    scored: pd.DataFrame, by: Sequence[str] = (), measures: Sequence[str] = ("precision", "recall")
) -> pd.DataFrame:
    r"""Paired t-test of every two modes of a group, over the questions that both answer.

    .. math:: \Delta = \frac{1}{|Q|} \sum_{q \in Q} (M^q_{X} - M^q_{Y})

    Returns, sorted by group, each pair once in the order of `MODES`: by, ``relevant_author, nonrelevant_author,
    measure, mode, against, questions, left_out, difference, t, p_t``, not corrected for the number of comparisons.
    """
    rows: list[tuple[Any, ...]] = []
    for group, modes in bias.scores_by_mode(bias.each_answer_once(scored, by, measures), by, measures):
        for first, second in combinations(in_order(modes), 2):
            a, b, left_out = bias.common_scores(modes[first], modes[second])
            difference = float((a - b).mean()) if len(a) else np.nan
            rows.append((*group, first, second, len(a), left_out, difference, *bias.paired_test(a, b)))
    names = ["measure", "mode", "against", "questions", "left_out", "difference", "t", "p_t"]
    return pd.DataFrame(rows, columns=[*by, *bias.AUTHORS_OF, *names])


def quality_with_marks(scored: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """Quality of every mode, and the scores in which it is significantly better than every other (paired t-test)."""
    compared = compare_modes(scored, BY)
    turned = compared.rename(columns={"mode": "against", "against": "mode"}).assign(difference=-compared["difference"])
    both = pd.concat([compared, turned], ignore_index=True).rename(columns=RENAMED)
    both["wins"] = (both["difference"] > 0) & (both["p_t"] < alpha)
    keys = [*BY, "relevant", "non-relevant", "mode"]
    wins = both.pivot_table(index=keys, columns="measure", values="wins", aggfunc="all").astype(bool)
    named = wins.apply(lambda row: " ".join(row.index[row]), axis=1).rename("better than both others in")
    return quality(scored).join(named, on=keys, how="inner")


def better_where_labelled_human(table: pd.DataFrame) -> Evidence:
    """Whether a benchmark's scores are higher where the relevant passage is labelled Human, of those of `quality`."""
    told = table[table["mode"] != "Vanilla"]
    human = (told["relevant"] == "Human") == (told["mode"] == "Informed")
    scores = ["Precision", "Recall", "EM"]
    there, here = (told[side].set_index(["model", "relevant"])[scores] for side in (~human, human))
    wins = (here > there.reindex(here.index)).sum()
    told_of = ", ".join(f"{score} higher in {count} of {len(here)}" for score, count in wins.items())
    return wins["Precision"] == wins["Recall"] == len(here), told_of


# --- sensitivity and bias -----------------------------------------------------------------------------------------


def biases(scored: pd.DataFrame, **options: Any) -> pd.DataFrame:
    """CAS and CAB of every experiment in points of 100, under the thesis's names; options of `bias_table`."""
    tables = {
        name: bias.bias_table(of_experiment(scored, *parts), [*BY, "retriever", "k"], **options)
        for name, parts in EXPERIMENTS.items()
    }
    table = pd.concat(tables, names=["experiment"]).reset_index("experiment").reset_index(drop=True)
    table[["value", "low", "high"]] *= 100
    table["changed"] = table["changed"].astype(str) + " of " + table["questions"].astype(str)
    table["score"] = table["measure"].str.capitalize()
    names = {"value": "Δ", "p_t": "p (t-test)", "p_permutation": "p (permutation)"}
    return table.rename(columns=RENAMED | names)


def some_significant(tests: pd.DataFrame, alpha: float) -> Evidence:
    """Whether some CAS goes with a significant change."""
    found = tests["p (t-test)"] < alpha
    range_of = f"CAS from {tests['Δ'].min():.1f} to {tests['Δ'].max():.1f}"
    return bool(found.any()), f"{int(found.sum())} of {len(tests)} tests; {range_of}"


def all_above_zero(tests: pd.DataFrame) -> Evidence:
    """Whether every CAB is above zero with its interval."""
    values, low, high = tests["Δ"], tests["low"] > 0, tests["high"] < 0
    return bool(low.all()), (
        f"{int((values > 0).sum())} of {len(tests)} above zero, {int(low.sum())} with their interval, "
        f"{int(high.sum())} below zero with theirs; from {values.min():+.1f} to {values.max():+.1f}"
    )


def none_told_from_zero(tests: pd.DataFrame) -> Evidence:
    """Whether the interval of every CAB holds zero."""
    told = "; ".join(
        f"{row['benchmark']}, {row['model']}, {row['score']} {row['Δ']:+.1f} [{row['low']:+.1f}, {row['high']:+.1f}]"
        for _, row in tests.iterrows()
    )
    return bool(((tests["low"] <= 0) & (tests["high"] >= 0)).all()), told


def sensitivity_to_labels(cas: pd.DataFrame) -> pd.DataFrame:
    """CAS against Vanilla with labels of authors and with labels that mean nothing; passages by people."""
    labels = {"mixed": "Human / LLM", "names": "name / AI", "placebo": "Birch / Maple"}
    moved = cas[(cas["relevant"] == "Human") & cas["experiment"].isin(list(labels))]
    moved = moved.assign(labels=moved["experiment"].map(labels))
    return moved.pivot_table(index=[*BY, "score", "mode"], columns="labels", values="Δ").reset_index()


def authors_move_more(moved: pd.DataFrame) -> Evidence:
    """Whether labels of authors have a higher CAS than those that mean nothing, in `sensitivity_to_labels`."""
    authors, placebo = moved["Human / LLM"], moved["Birch / Maple"]
    told = f"{int((authors > placebo).sum())} of {len(moved)} comparisons"
    return bool((authors > placebo).all()), f"{told}; mean CAS {authors.mean():.1f} and {placebo.mean():.1f}"


def recall_of_every_experiment(cab: pd.DataFrame) -> pd.DataFrame:
    """CAB of recall as a figure shows it: name, value, low, high, group."""
    kinds = {
        "modes": "Human / LLM, true authors",
        "mixed": "Human / LLM, mixed mode",
        "names": "name / AI, mixed mode",
        "placebo": "Birch / Maple, mixed mode (placebo)",
    }
    shown = cab[(cab["score"] == "Recall") & cab["experiment"].isin(list(kinds))].rename(columns={"Δ": "value"})
    names = shown["model"] + ", " + shown["benchmark"] + ", " + shown["relevant"] + " / " + shown["non-relevant"]
    return shown.assign(name=names, group=shown["experiment"].map(kinds))


def over_documents(table: pd.DataFrame) -> pd.DataFrame:
    """CAS and CAB over the number of passages, of models that were shown more than one number, for a figure."""
    over = table[table["experiment"] == "documents"].rename(columns={"Δ": "value"})
    over = over[over.groupby("model")["k"].transform("nunique") > 1]
    return over.assign(group=over["model"] + ", " + over["score"].str.lower())


def citations_by_position(
    scored: pd.DataFrame,
    by: Sequence[str] = (),
    *,
    measures: Sequence[str] = ("precision", "recall"),
    level: float = 0.95,
    resamples: int = 9999,
    seed: int = 0,
) -> pd.DataFrame:
    r"""Scores by the position of the relevant document among those shown.

    .. math:: M(j) = \frac{1}{|Q_j|} \sum_{q \in Q_j} \bar M^q, \quad Q_j = \{q : \text{relevant document at } j\}

    with the mean over the answers to a question first, since these are not independent.

    There must be one relevant document an answer. ``measures``: columns of scores, without gaps. Returns, sorted: by,
    ``position, measure, questions, answers, value, low, high`` (percentile interval of the bootstrap over questions,
    NaN for fewer than two).

    Beyond the thesis, which puts the relevant document at random (section 5.D).
    """
    if (scored["relevant"].map(len) != 1).any():
        raise ValueError("one relevant document an answer is wanted")
    if not np.isfinite(scored[list(measures)].to_numpy(dtype=np.float64)).all():
        raise ValueError(f"{', '.join(measures)}: every score must be finite")
    start = int(np.random.default_rng(seed).integers(2**63))
    long = scored[[*by, "question", *measures]].assign(position=scored["relevant"].str[0])
    found: list[tuple[Any, ...]] = []
    for group, part in long.groupby([*by, "position"], sort=True, observed=True):
        questions = part.groupby("question", sort=True)[list(measures)].mean()
        for measure in measures:
            each = questions[measure].to_numpy(dtype=np.float64)
            ends = bias.interval(each, level, resamples, start)
            found.append((*group, measure, len(each), len(part), float(each.mean()), *ends))
    return pd.DataFrame(found, columns=[*by, "position", "measure", "questions", "answers", "value", "low", "high"])


def positions(scored: pd.DataFrame, models_in_order: Sequence[str], **options: Any) -> pd.DataFrame:
    """Scores by the position of the relevant passage in points of 100, models in order; see `citations_by_position`."""
    table = citations_by_position(scored, BY, **options)
    table[["value", "low", "high"]] *= 100
    order = table["model"].map(list(models_in_order).index).sort_values(kind="stable")
    return table.assign(group=table["model"]).loc[order.index]


def reach(counts: Sequence[int], level: float) -> pd.DataFrame:
    """Half the width of an interval of CAB, if recall changed as often as Table 5.2 prints, by number of questions."""
    share = numbers(printed_table("thesis/table-5.2"), ["ΔRecall"])["ΔRecall"] / 100
    ends, n = {"lowest": share.min(), "highest": share.max()}, np.array(sorted(set(counts)))
    table = pd.DataFrame({"questions": n, **{f"{name} printed CAS": 100 * value for name, value in ends.items()}})
    for name, value in ends.items():
        table[f"reach at the {name}"] = 100 * stats.t.isf((1 - level) / 2, n - 1) * np.sqrt(value / (n - 1))
    return table


# --- confidence and numbers of citations --------------------------------------------------------------------------


def confidence(scored: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """Attribution confidence of every setting under the thesis's names, with a mark where the two sides differ."""
    table = attribution_confidence(citation_rows(scored), [*BY, "relevant_author", "nonrelevant_author", "mode"])
    return table.rename(columns=RENAMED).assign(significant=np.where(table["p"] < alpha, "†", ""))


def more_confident_of_relevant(table: pd.DataFrame, artefact: str, alpha: float) -> Evidence:
    """Whether in most settings relevant passages are cited with more confidence; how many there are in print."""
    sides = ["relevant AC", "non-relevant AC"]
    here, printed = table.dropna(subset=sides), printed_table(artefact)[sides].astype(float)
    higher, there = (one[sides[0]] > one[sides[1]] for one in (here, printed))
    return bool(higher.mean() > 0.5), (
        f"{int(higher.sum())} of {len(higher)} here, {int((here['p'][higher] < alpha).sum())} significantly; "
        f"{int(there.sum())} of {len(there)} printed"
    )


def mean_citations(scored: pd.DataFrame) -> pd.DataFrame:
    """Mean number of citations an answer: as printed, over the settings of Tables 5.12 and 5.13, and of the replica."""
    theirs = printed_totals().groupby(BY, sort=False)["total"].mean().reset_index().assign(source="printed")
    ours = scored.groupby(BY, sort=False)["cited"].mean().rename("total").reset_index().assign(source="replica")
    return pd.concat([theirs, ours], ignore_index=True)


# --- examples -----------------------------------------------------------------------------------------------------


def most_varied(scored: pd.DataFrame, score: str, spread: str | Callable[..., Any] = np.ptp) -> pd.DataFrame:
    """Answers to the question in which a score varies most, the first of equals."""
    each = scored.groupby(["benchmark", "question"])[score].agg(spread).sort_values(ascending=False, kind="stable")
    benchmark, question = each.index[0]
    return scored[(scored["benchmark"] == benchmark) & (scored["question"] == question)]


def example_parts(rows: pd.DataFrame, answered: pd.DataFrame, passages: Mapping[str, str]) -> list[tuple[str, str]]:
    """A question, its gold answer, its passages as people wrote them, and the answers to it, each with a heading."""
    first = rows.iloc[0]
    marks = dict.fromkeys(first["relevant"], ", relevant")
    shown = [(f"[{n}]{marks.get(n, '')}", passages[document]) for n, document in enumerate(first["shown"], start=1)]
    answers = [(f"{row.model}, {row.mode}", str(row.answer)) for row in answered.itertuples()]
    return [("Question", first["text"]), ("Gold answer", "; ".join(first["gold"])), *shown, *answers]


def examples(rows: pd.DataFrame) -> pd.DataFrame:
    """Examples of answers as a table shows them."""
    columns = ["text", "gold", "relevant", "model", "mode", "relevant_author", "nonrelevant_author"]
    shown = rows[[*columns, "answer", "precision", "recall"]]
    return shown.map(lambda cell: "; ".join(map(str, cell)) if isinstance(cell, tuple) else cell)


def printed_examples_scored() -> Evidence:
    """Whether all printed answers of Table 5.16 are right, and only Mistral's cites what is not relevant."""
    given = printed_table("thesis/table-5.16").rename(columns={"query": "question"})
    relevant = given["relevant document"].map(lambda number: (int(number),))
    gold = given["gold answer"].str.split("; ")
    theirs = score_answers(given[["question", "model", "answer"]].assign(relevant=relevant, gold=gold))
    wrong = (theirs.set_index("model")["precision"] < 1).to_dict()
    told = ", ".join(
        f"{row.model} precision {row.precision:.2f}, exact match {row.exact_match:.0f}" for row in theirs.itertuples()
    )
    right = bool((theirs["exact_match"] == 1).all())
    return right and wrong == {"Mistral": True, "Llama3": False, "GPT-4": False}, told
