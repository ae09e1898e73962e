"""The replica of chapter 5: recorded answers, and the tables and findings that are made of their scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from equipoise.answer_modes import in_order, mode_parts
from equipoise.arrays import Floats
from equipoise.loaders.answers import read_answers
from equipoise.measures.attribution import (
    attribution_confidence,
    bias,
    citation_rows,
    score_answers,
)
from equipoise.measures.attribution.scores import quality_table
from equipoise.statistics.intervals import bootstrap_intervals
from equipoise_compendium.printed import printed_table
from equipoise_studies.attribution.derived import numbers, printed_totals
from equipoise_studies.attribution.design import CELLS, of_experiment, tables_of, with_experiments
from equipoise_studies.attribution.study import Study
from equipoise_studies.config import recorded
from equipoise_studies.recording import read_settings

BY = ["benchmark", "model"]
RENAMED = {
    "relevant_author": "relevant",
    "nonrelevant_author": "non-relevant",
    "answers": "questions",
    "exact_match": "EM",
    "relevant_ac": "relevant AC",
    "nonrelevant_ac": "non-relevant AC",
    "relevant_citations": "relevant citations",
    "nonrelevant_citations": "non-relevant citations",
    "cited_relevant": "relevant cited",
    "cited": "total cited",
}
FEWEST = 5
"""Citations on either side that a mark of significance on confidences needs."""


# --- recordings -----------------------------------------------------------------------------------


def recorded_answers(study: Study, names: Sequence[str]) -> pd.DataFrame:
    """Scored answers of some records, with model, weights and the experiments that they are of."""
    paths = {name: recorded(study.answers(name), study.chapter) for name in names}
    weights = {name: " ".join(read_settings(path)["models"]) for name, path in paths.items()}
    frames = [
        read_answers(path).assign(model=study.called(name), weights=weights[name])
        for name, path in paths.items()
    ]
    return score_answers(with_experiments(pd.concat(frames, ignore_index=True), study))


def models(study: Study) -> pd.DataFrame:
    """What answered: weights, program and sampling of each record."""
    names = study.answered()
    settings = pd.DataFrame([read_settings(study.answers(name)) for name in names])
    weights = [
        (name, sha256[:16] + "…" if sha256 else "")
        for models in settings["models"]
        for name, sha256 in models.items()
    ]
    table = pd.DataFrame(weights, columns=["weights", "sha256"]).assign(program=settings["program"])
    table.insert(0, "model", study.who())
    return table.join(pd.DataFrame([*settings["sampling"]])[["temperature", "max_tokens", "seed"]])


def sizes(scored: pd.DataFrame) -> pd.DataFrame:
    """Size of every experiment that has been recorded in more than two of its settings, and the time it took."""
    rows = [
        (
            name,
            *group,
            part["question"].nunique(),
            len(part),
            part["prompt_tokens"].mean(),
            part["seconds"].sum() / 60,
        )
        for name in dict.fromkeys(
            (*CELLS, *(one for held in scored["experiments"] for one in held))
        )
        for group, part in of_experiment(scored, name).groupby(["model", "benchmark"])
        if len(part[["mode", "retriever", "k", "relevant_author"]].drop_duplicates()) > 2
    ]
    names = [
        "experiment",
        "model",
        "benchmark",
        "questions",
        "answers",
        "prompt tokens an answer",
        "minutes",
    ]
    return pd.DataFrame(rows, columns=names)


def faults(scored: pd.DataFrame) -> pd.DataFrame:
    """What was wrong with the answers of each model."""
    counted = scored.assign(
        answers=1, cut_off=scored["finish"] != "stop", citations=scored["citations"].map(len)
    )
    names = ["answers", "uncited", "out_of_range", "repeated", "malformed", "cut_off", "citations"]
    totals = counted.groupby(["model", "benchmark"], sort=False)[names].sum()
    cited = citation_rows(scored)
    unknown = cited[cited["probability"].isna()].groupby(["model", "benchmark"]).size()
    return totals.assign(
        without_probability=unknown.reindex(totals.index, fill_value=0)
    ).reset_index()


def noise(study: Study, scored: pd.DataFrame) -> pd.DataFrame:
    """How many answers of the first record stayed the same when their prompts were put once more, where they were."""
    again = recorded_answers(study, [study.repeated] if study.repeated else study.answered()[:1])
    scored = scored[scored["model"] == study.who()[0]]
    same = [
        "benchmark",
        "retriever",
        "labels",
        "k",
        "question",
        "mode",
        "relevant_author",
        "nonrelevant_author",
    ]
    twice = again.merge(scored, on=same, suffixes=(" again", ""))
    compared = {"same words": "answer", "same precision": "precision", "same recall": "recall"}
    counts = {
        name: int((twice[column] == twice[f"{column} again"]).sum())
        for name, column in compared.items()
    }
    return pd.DataFrame([{"answers put twice": len(twice), **counts}] if study.repeated else [])


def shown_p(p: float) -> str:
    """A p-value as papers print it."""
    return "" if np.isnan(p) else "<0.001" if p < 0.001 else f"{p:.3f}"


# --- quality --------------------------------------------------------------------------------------


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

    Returns, sorted by group, each pair once in the order of `MODES`: by, ``relevant_author,
    nonrelevant_author, measure, mode, against, questions, left_out, difference, t, p_t``, not
    corrected for the number of comparisons.
    """
    rows: list[tuple[Any, ...]] = []
    for group, modes in bias.scores_by_mode(
        bias.each_answer_once(scored, by, measures), by, measures
    ):
        for first, second in combinations(in_order(modes), 2):
            a, b, left_out = bias.common_scores(modes[first], modes[second])
            difference = float((a - b).mean()) if len(a) else np.nan
            rows.append(
                (*group, first, second, len(a), left_out, difference, *bias.paired_test(a - b))
            )
    names = ["measure", "mode", "against", "questions", "left_out", "difference", "t", "p_t"]
    return pd.DataFrame(rows, columns=[*by, *bias.AUTHORS_OF, *names])


def quality_with_marks(scored: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """Quality of every mode, and the scores in which it is significantly better than every other (paired t-test)."""
    compared = compare_modes(scored, BY)
    turned = compared.rename(columns={"mode": "against", "against": "mode"}).assign(
        difference=-compared["difference"]
    )
    both = pd.concat([compared, turned], ignore_index=True).rename(columns=RENAMED)
    both["wins"] = (both["difference"] > 0) & (both["p_t"] < alpha)
    keys = [*BY, "relevant", "non-relevant", "mode"]
    wins = both.pivot_table(index=keys, columns="measure", values="wins", aggfunc="all").astype(
        bool
    )
    named = wins.apply(lambda row: " ".join(row.index[row]), axis=1).rename(
        "better than both others in"
    )
    return quality(scored).join(named, on=keys, how="inner")


# --- sensitivity and bias -------------------------------------------------------------------------


def biases(scored: pd.DataFrame, **options: Any) -> pd.DataFrame:
    """CAS and CAB of every experiment in points of 100, under the thesis's names; options of `bias_table`."""
    tables = {
        name: bias.bias_table(part, [*BY, "retriever", "k"], **options)
        for name, part in tables_of(scored).items()
        if len(part)
    }
    table = pd.concat(tables, names=["experiment"]).reset_index("experiment").reset_index(drop=True)
    table[["value", "low", "high"]] *= 100
    table["changed"] = table["changed"].astype(str) + " of " + table["questions"].astype(str)
    table["score"] = table["measure"].str.capitalize()
    table[["p_t", "p_permutation"]] = table[["p_t", "p_permutation"]].map(shown_p)
    names = {"value": "Δ", "p_t": "p (t-test)", "p_permutation": "p (permutation)"}
    return table.rename(columns=RENAMED | names)


def sensitivity_to_labels(cas: pd.DataFrame) -> pd.DataFrame:
    """CAS against Vanilla with labels of authors and with labels that mean nothing; passages by people."""
    labels = {"mixed": "Human / LLM", "names": "name / AI", "placebo": "Birch / Maple"}
    moved = cas[(cas["relevant"] == "Human") & cas["experiment"].isin(list(labels))]
    moved = moved.assign(labels=moved["experiment"].map(labels))
    return moved.pivot_table(
        index=[*BY, "score", "mode"], columns="labels", values="Δ"
    ).reset_index()


def over_documents(table: pd.DataFrame) -> pd.DataFrame:
    """CAS and CAB over the number of passages, of models that were shown more than one number, for a figure."""
    over = table[table["experiment"] == "documents"].rename(columns={"Δ": "value"})
    over = over[over.groupby(BY)["k"].transform("nunique") > 1]
    return over.assign(
        group=over["model"] + ", " + over["benchmark"] + ", " + over["score"].str.lower()
    )


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

    .. math:: M(j) = \frac{1}{|Q_j|} \sum_{q \in Q_j} \bar M^q, \quad Q_j = \{q : \text{relevant
    document at } j\}

    with the mean over the answers to a question first, since these are not independent.

    There must be one relevant document an answer. ``measures``: columns of scores, without gaps.
    Returns, sorted: by, ``position, measure, questions, answers, value, low, high`` (percentile
    interval of the bootstrap over questions, NaN for fewer than two).

    Beyond the thesis, which puts the relevant document at random (section 5.D).
    """
    if (scored["relevant"].map(len) != 1).any():
        raise ValueError("one relevant document an answer is wanted")
    if not np.isfinite(scored[list(measures)].to_numpy(dtype=np.float64)).all():
        raise ValueError(f"{', '.join(measures)}: every score must be finite")
    start = int(np.random.default_rng(seed).integers(2**63))
    long = scored[[*by, "question", *measures]].assign(position=scored["relevant"].str[0])
    found: list[tuple[Any, ...]] = []
    each: list[Floats] = []
    for group, part in long.groupby([*by, "position"], sort=True, observed=True):
        questions = part.groupby("question", sort=True)[list(measures)].mean()
        for measure in measures:
            each.append(questions[measure].to_numpy(dtype=np.float64))
            found.append((*group, measure, len(questions), len(part), float(each[-1].mean())))
    table = pd.DataFrame(
        found, columns=[*by, "position", "measure", "questions", "answers", "value"]
    )
    table[["low", "high"]] = bootstrap_intervals(each, start, level=level, resamples=resamples)
    return table


def positions(scored: pd.DataFrame, models_in_order: Sequence[str], **options: Any) -> pd.DataFrame:
    """Scores by the position of the relevant passage in points of 100, models in order; see `citations_by_position`."""
    table = citations_by_position(scored, BY, **options)
    table[["value", "low", "high"]] *= 100
    order = table["model"].map(list(models_in_order).index).sort_values(kind="stable")
    return table.assign(group=table["model"]).loc[order.index]


def reach(counts: Sequence[int], alpha: float, level: float) -> pd.DataFrame:
    """What a CAB of recall must be to leave zero, by number of questions, if all that change change one way.

    Beside it, if recall changed as often as Table 5.2 prints: how far an interval reaches to either
    side, and how often the exact test would find a CAB as large as Table 5.3 prints, on average
    over its settings.
    """
    share, bias_ = (
        numbers(printed_table(f"thesis/table-5.{n}"), ["ΔRecall"])["ΔRecall"].to_numpy() / 100
        for n in (2, 3)
    )
    rows = []
    for n in sorted(set(counts)):
        changed = np.arange(1, n + 1)
        left_out = (1 - changed / n) ** n < (
            1 - level
        ) / 2  # a bootstrap sample without any of them
        one_way = 2.0 ** (1 - changed) < alpha
        width = (
            100
            * stats.t.isf((1 - level) / 2, n - 1)
            * np.sqrt(np.array([share.min(), share.max()]) / (n - 1))
        )
        least = [
            100 * found[0] / n if len(found := changed[enough]) else np.nan
            for enough in (left_out, one_way)
        ]
        rows.append((n, *least, *width, 100 * float(np.mean(_power(n, share, bias_, alpha)))))
    names = [
        "questions",
        "least CAB (bootstrap)",
        "least CAB (permutation)",
        "reach at the lowest CAS",
    ]
    return pd.DataFrame(
        rows, columns=[*names, "reach at the highest CAS", "printed CAB found, percent of runs"]
    )


def _power(n: int, changed: Floats, gap: Floats, alpha: float) -> Floats:
    """Power of the exact paired test of n scores of 0 or 1, if a share of them changes and their mean by a gap."""
    of = np.arange(n + 1)[:, None]
    fewest = stats.binom.ppf(alpha / 2, of, 0.5)
    fewest -= (
        2 * stats.binom.cdf(fewest, of, 0.5) >= alpha
    )  # the most on the lesser side that is significant
    upward = (1 + gap / changed) / 2
    found = stats.binom.cdf(fewest, of, upward) + stats.binom.cdf(fewest, of, 1 - upward)
    power: Floats = (stats.binom.pmf(of, n, changed) * found).sum(axis=0)
    return power


# --- confidence and numbers of citations ----------------------------------------------------------


def confidence(scored: pd.DataFrame, alpha: float) -> pd.DataFrame:
    """Attribution confidence of every setting under the thesis's names, with a mark where the two sides differ.

    A mark needs `FEWEST` citations of either side.
    """
    table = attribution_confidence(
        citation_rows(scored), [*BY, "relevant_author", "nonrelevant_author", "mode"]
    )
    enough = table[["relevant_citations", "nonrelevant_citations"]].min(axis=1) >= FEWEST
    marks = np.where((table["p"] < alpha) & enough, "†", "")
    return table.rename(columns=RENAMED).assign(significant=marks, p=table["p"].map(shown_p))


def mean_citations(scored: pd.DataFrame) -> pd.DataFrame:
    """Mean number of citations an answer: as printed, over the settings of Tables 5.12 and 5.13, and as recorded."""
    theirs = (
        printed_totals()
        .groupby(BY, sort=False)["total"]
        .mean()
        .reset_index()
        .assign(source="printed")
    )
    ours = (
        scored.groupby(BY, sort=False)["cited"]
        .mean()
        .rename("total")
        .reset_index()
        .assign(source="recorded")
    )
    return pd.concat([theirs, ours], ignore_index=True)


# --- examples -------------------------------------------------------------------------------------


def most_varied(
    scored: pd.DataFrame, score: str, spread: str | Callable[..., Any] = np.ptp
) -> pd.DataFrame:
    """Answers to the question in which a score varies most, the first of equals."""
    each = (
        scored.groupby(["benchmark", "question"])[score]
        .agg(spread)
        .sort_values(ascending=False, kind="stable")
    )
    benchmark, question = each.index[0]
    return scored[(scored["benchmark"] == benchmark) & (scored["question"] == question)]


def example_parts(
    rows: pd.DataFrame, answered: pd.DataFrame, words: Mapping[str, int]
) -> pd.DataFrame:
    """A question, its gold answer, the ids and lengths of its passages, and the answers to it.

    ``words``: of the passages, by id, as far as they are known. The texts of question and passages
    are not ours to show.
    """
    first = rows.iloc[0]
    parts = [("Question", first["question"]), ("Gold answer", "; ".join(first["gold"]))]
    for number, document in enumerate(first["shown"], start=1):
        part = f"[{number}], relevant" if number in first["relevant"] else f"[{number}]"
        length = f", {words[document]} words" if document in words else ""
        parts.append((part, f"passage {document}{length}"))
    for row in answered.itertuples():
        parts.append((f"{row.model}, {row.mode}", str(row.answer)))
    return pd.DataFrame(parts, columns=["part", "text"])


def examples(rows: pd.DataFrame) -> pd.DataFrame:
    """Examples of answers as a table shows them, the question by its id."""
    columns = ["question", "gold", "relevant", "model", "mode"]
    columns += ["relevant_author", "nonrelevant_author", "answer", "precision", "recall"]
    shown = rows[columns].rename(columns={"relevant": "relevant passage"} | RENAMED)
    return shown.map(lambda cell: "; ".join(map(str, cell)) if isinstance(cell, tuple) else cell)
