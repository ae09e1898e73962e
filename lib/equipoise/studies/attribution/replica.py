"""The replica of chapter 5: recorded answers, and the tables and findings that are made of their scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from equipoise import project
from equipoise.answer_modes import mode_parts
from equipoise.loaders.answers import read_answers
from equipoise.measures.attribution import attribution_confidence, bias_table, citation_rows, score_answers
from equipoise.reports.printed import printed_table
from equipoise.studies.attribution.derived import Evidence, numbers, printed_totals
from equipoise.studies.attribution.design import CELLS, FOLDER, of_experiment
from equipoise.studies.attribution.tables import citations_by_position, compare_modes, quality_table
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
    rows = []
    for name in names:
        settings = read_settings(project.data(*FOLDER, f"{name}.jsonl"))
        ((weights, sha256),) = settings["models"].items()
        row = {"model": name, "weights": weights, "sha256": sha256[:16] + "…", "program": settings["program"]}
        rows.append(row | {key: settings["sampling"][key] for key in ("temperature", "max_tokens", "seed")})
    return pd.DataFrame(rows)


def sizes(scored: pd.DataFrame) -> pd.DataFrame:
    """Size of every experiment that has been recorded in more than two of its settings, and the time it took."""
    rows = [
        {
            "experiment": experiment,
            "model": model,
            "benchmark": benchmark,
            "questions": part["question"].nunique(),
            "answers": len(part),
            "prompt tokens an answer": part["prompt_tokens"].mean(),
            "minutes": part["seconds"].sum() / 60,
        }
        for experiment in CELLS
        for (model, benchmark), part in of_experiment(scored, experiment).groupby(["model", "benchmark"])
        if len(part[["mode", "retriever", "k", "relevant_author"]].drop_duplicates()) > 2
    ]
    return pd.DataFrame(rows)


def faults(scored: pd.DataFrame) -> pd.DataFrame:
    """What was wrong with the answers of each model."""
    cited = citation_rows(scored).assign(unknown=lambda rows: rows["probability"].isna())
    groups = scored.assign(cut_off=scored["finish"] != "stop", citations=scored["citations"].map(len)).groupby(
        ["model", "benchmark"], sort=False
    )
    totals = groups[["uncited", "out_of_range", "repeated", "malformed", "cut_off", "citations"]].sum()
    unknown = cited.groupby(["model", "benchmark"], sort=False)["unknown"].sum()
    totals["without_probability"] = unknown.reindex(totals.index, fill_value=0)
    return groups.size().rename("answers").to_frame().join(totals).reset_index()


def noise(again: pd.DataFrame, scored: pd.DataFrame) -> pd.DataFrame:
    """How many answers stayed the same when their prompts were put once more."""
    same = ["benchmark", "retriever", "labels", "k", "question", "mode", "relevant_author", "nonrelevant_author"]
    twice = again.merge(scored, on=same, suffixes=(" again", ""))
    counts = {"answers put twice": len(twice)}
    for name, column in (("words", "answer"), ("precision", "precision"), ("recall", "recall")):
        counts[f"same {name}"] = int((twice[column] == twice[f"{column} again"]).sum())
    return pd.DataFrame([counts])


# --- quality ------------------------------------------------------------------------------------------------------


def quality(scored: pd.DataFrame) -> pd.DataFrame:
    """Quality of every mode in points of 100, under the thesis's names; mixed modes also by their parts."""
    table = quality_table(scored, BY).rename(columns=RENAMED)
    table["Precision"], table["Recall"] = 100 * table["precision"], 100 * table["recall"]
    parts = table["mode"].map(mode_parts).str
    return table.assign(**{"relevant mode": parts[0], "non-relevant mode": parts[1]})


def quality_with_marks(scored: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """Quality of every mode, and the scores in which it is significantly better than every other (paired t-test)."""
    compared = compare_modes(scored, BY)
    turned = compared.rename(columns={"mode": "against", "against": "mode"}).assign(difference=-compared["difference"])
    both = pd.concat([compared, turned], ignore_index=True).rename(columns=RENAMED)
    both["wins"] = (both["difference"] > 0) & (both["p_t"] < alpha)
    keys = [*BY, "relevant", "non-relevant", "mode"]
    wins = both.pivot_table(index=keys, columns="measure", values="wins", aggfunc="all").astype(bool)
    named = wins.apply(lambda row: " ".join(row.index[row]), axis=1).rename("better than both others in")
    return quality(scored).merge(named.reset_index(), on=keys)


def better_where_labelled_human(table: pd.DataFrame) -> Evidence:
    """Whether a benchmark's scores are higher where the relevant passage is labelled Human, of those of `quality`."""
    told = table[table["mode"] != "Vanilla"]
    human = (told["relevant"] == "Human") == (told["mode"] == "Informed")
    sides = told.assign(side=np.where(human, "Human", "LLM")).pivot_table(
        index=["model", "relevant"], columns="side", values=["Precision", "Recall", "EM"]
    )
    wins = {score: int((sides[score, "Human"] > sides[score, "LLM"]).sum()) for score in ("Precision", "Recall", "EM")}
    told_of = ", ".join(f"{score} higher in {count} of {len(sides)}" for score, count in wins.items())
    return wins["Precision"] == wins["Recall"] == len(sides), told_of


# --- sensitivity and bias -----------------------------------------------------------------------------------------


def biases(scored: pd.DataFrame, **options: Any) -> pd.DataFrame:
    """CAS and CAB of every experiment in points of 100, under the thesis's names; options of `bias_table`."""
    tables = {
        name: bias_table(of_experiment(scored, *parts), [*BY, "retriever", "k"], **options)
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


def over_documents(bias: pd.DataFrame) -> pd.DataFrame:
    """CAS and CAB over the number of passages, of models that were shown more than one number, for a figure."""
    over = bias[bias["experiment"] == "documents"].rename(columns={"Δ": "value"})
    over = over[over.groupby("model")["k"].transform("nunique") > 1]
    return over.assign(group=over["model"] + ", " + over["score"].str.lower())


def positions(scored: pd.DataFrame, models_in_order: Sequence[str], **options: Any) -> pd.DataFrame:
    """Scores by the position of the relevant passage in points of 100, models in order; see `citations_by_position`."""
    table = citations_by_position(scored, BY, **options)
    table[["value", "low", "high"]] *= 100
    order = table["model"].map(list(models_in_order).index).sort_values(kind="stable")
    return table.assign(group=table["model"]).loc[order.index]


def reach(counts: Sequence[int], level: float) -> pd.DataFrame:
    """Half the width of an interval of CAB, if recall changed as often as Table 5.2 prints, by number of questions."""
    share = numbers(printed_table("thesis/table-5.2"), ["ΔRecall"])["ΔRecall"] / 100
    rows = [
        {"questions": n, "lowest printed CAS": 100 * share.min(), "highest printed CAS": 100 * share.max()}
        | {
            f"reach at {name}": 100 * stats.t.isf((1 - level) / 2, n - 1) * np.sqrt(value / (n - 1))
            for name, value in (("the lowest", share.min()), ("the highest", share.max()))
        }
        for n in sorted(set(counts))
    ]
    return pd.DataFrame(rows)


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
    shown = [
        (f"[{number}]" + (", relevant" if number in first["relevant"] else ""), passages[document])
        for number, document in enumerate(first["shown"], start=1)
    ]
    answers = [(f"{row.model}, {row.mode}", str(row.answer)) for row in answered.itertuples()]
    return [("Question", first["text"]), ("Gold answer", "; ".join(first["gold"])), *shown, *answers]


def examples(rows: pd.DataFrame) -> pd.DataFrame:
    """Examples of answers as a table shows them."""
    columns = ["text", "gold", "relevant", "model", "mode", "relevant_author", "nonrelevant_author"]
    shown = rows[[*columns, "answer", "precision", "recall"]]
    return shown.map(lambda cell: "; ".join(map(str, cell)) if isinstance(cell, tuple) else cell)


def printed_examples_scored() -> Evidence:
    """Whether all printed answers of Table 5.16 are right, and only Mistral's cites what is not relevant."""
    given = printed_table("thesis/table-5.16")
    given = given.assign(
        question=given["query"],
        relevant=[(int(number),) for number in given["relevant document"]],
        gold=given["gold answer"].str.split("; ").map(tuple),
    )
    theirs = score_answers(given[["question", "model", "answer", "relevant", "gold"]])
    wrong = (theirs.set_index("model")["precision"] < 1).to_dict()
    told = ", ".join(
        f"{row.model} precision {row.precision:.2f}, exact match {row.exact_match:.0f}" for row in theirs.itertuples()
    )
    right = bool((theirs["exact_match"] == 1).all())
    return right and wrong == {"Mistral": True, "Llama3": False, "GPT-4": False}, told
