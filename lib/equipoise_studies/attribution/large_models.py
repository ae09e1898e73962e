"""What public answers of large models, and people's labels of such answers, say of attribution.

The models of the first part were not asked to cite, and no passage has a label of its author: there
is no CAS and no CAB of them. Scores are in points. An interval draws questions with all their rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from equipoise.arrays import Floats, Integers
from equipoise.statistics import resampled
from equipoise.statistics.intervals import bootstrap_intervals
from equipoise_compendium import facts
from equipoise_compendium.claims import Evidence
from equipoise_studies.attribution.facts import LARGE_MODELS, SUPPORT
from equipoise_studies.attribution.findings import SEED, pooled

READINGS: Mapping[str, Sequence[str]] = {
    "[1] alone": ["alone"],
    "lists too": ["brackets"],
    "all forms": ["brackets", "named"],
}
"""Ways to read citations: as the authors' code does, as our measures do, and in every form."""
SCORES = {"precision": "Precision", "recall": "Recall", "correct": "Correctness"}
FEWEST = 10
"""Questions below which a bootstrap says little, and none is drawn."""
_MODELS_ON = "nqoracle, answers of litm2026"
_PEOPLE_ON = "claims of expertqa, judged by experts"
DATA = {"large": _MODELS_ON, "support": _PEOPLE_ON}
"""What the claims whose names begin so are judged on."""


# --- large models ---------------------------------------------------------------------------------


def scored(reading: str = "all forms") -> pd.DataFrame:
    """Answers with what they cite in a reading, precision, recall and correctness.

    ``cites``: 100 where an answer cites a passage that it was shown. Precision is 0 where it does
    not, as in the thesis.
    """
    answers = facts.read("attribution", LARGE_MODELS)
    cited = []
    hits = []
    for row in answers[[*READINGS[reading], "place"]].itertuples(index=False):
        *texts, place = row
        numbers = set(" ".join(texts).split())
        cited.append(len(numbers))
        hits.append(str(place) in numbers)
    n_cited = np.array(cited)
    recall = 100.0 * np.array(hits)
    return answers.assign(
        benchmark="NQ",
        cited=n_cited,
        cites=100.0 * (n_cited > 0),
        precision=recall / np.maximum(n_cited, 1),
        recall=recall,
        correct=100.0 * answers["correct"],
    )


def by_reading() -> pd.DataFrame:
    """Means over the answers of each model, number of passages and reading, in three columns each.

    ``lists``: in percent of the answers that cite in brackets, those with a list such as [1, 28].
    """
    keys = ["model", "passages"]
    answers = facts.read("attribution", LARGE_MODELS)
    in_brackets = answers[answers["brackets"] != ""]
    table = answers.groupby(keys, sort=False).size().to_frame("answers")
    table["lists"] = 100 * (in_brackets["lists"] > 0).groupby([in_brackets[k] for k in keys]).mean()
    for reading in READINGS:
        groups = scored(reading).groupby(keys, sort=False)
        table[f"cites, {reading}"] = groups["cites"].mean()
        table[f"P, {reading}"] = groups["precision"].mean()
        table[f"R, {reading}"] = groups["recall"].mean()
    return table.reset_index()


def scores_by(table: pd.DataFrame, over: str, level: float, resamples: int) -> pd.DataFrame:
    """Mean scores of each model by a column, with intervals over questions.

    Precision and recall are of the answers that cite, which none was asked to; correctness is of
    all. Each question has its mean first. No interval where there are fewer than `FEWEST`.
    """
    rows = []
    means_of_questions = []
    for score, name in SCORES.items():
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


def _change(answers: pd.DataFrame, score: str, said: str) -> Evidence:
    """A score with 30 passages less that with 10, mean over models that weigh alike.

    Each question has its mean in a model first; only questions with both are compared.
    """
    keys = ["model", "benchmark", "question"]
    wide = answers.pivot_table(score, keys, "passages").dropna(subset=[10, 30])
    table = (wide[30] - wide[10]).rename("change").reset_index()
    return pooled(table, "change", f"{said} with 30 passages less that with 10", settings=["model"])


def _first_place(answers: pd.DataFrame) -> Evidence:
    """How much more often answers are right where the relevant passage is first of 20 or 30."""
    many = answers[answers["passages"] > 10]
    keys = ["model", "benchmark", "question"]
    first = many[many["place"] == 1].groupby(keys)["correct"].mean()
    later = many[many["place"] > 1].groupby(keys)["correct"].mean()
    table = (first - later).rename("gain").reset_index()
    said = "correctness with the relevant passage first less that with it elsewhere, in points"
    return pooled(table, "gain", said, settings=["model"])


def unread(by_one_form: pd.DataFrame, by_all_forms: pd.DataFrame) -> Evidence:
    """Recall that goes unseen where only [1] is read, mean over models that weigh alike.

    Further citations can only raise recall, so what as many drawn at random would give it is taken
    off. Takes answers as of `scored` in two readings.
    """
    further = by_all_forms["cited"] - by_one_form["cited"]
    others = by_all_forms["passages"] - by_one_form["cited"]
    by_chance = (100 - by_one_form["recall"]) * further / others.clip(lower=1)
    unseen = by_all_forms["recall"] - by_one_form["recall"] - by_chance
    said = (
        "recall by all forms of citation less that by [1] alone, and less what as many citations "
        "at random would add, mean of the models, in points"
    )
    return pooled(by_all_forms.assign(unseen=unseen), "unseen", said, settings=["model"])


# --- what people judged ---------------------------------------------------------------------------


def support() -> pd.DataFrame:
    """Claims with what experts said: ``full`` support, ``right`` definitely, in points."""
    claims = facts.read("attribution", SUPPORT, {"cited": int, "sources": int})
    return claims.assign(
        benchmark="ExpertQA",
        full=100.0 * (claims["support"] == "Complete"),
        right=100.0 * (claims["truth"] == "Definitely correct"),
    )


def by_system(claims: pd.DataFrame) -> pd.DataFrame:
    """What experts said of the claims of each system, in percent."""
    groups = claims.groupby("system", sort=False)
    table = groups.agg(questions=("question", "nunique"), claims=("claim", "size"))
    citing = claims[claims["cited"] > 0]
    table["cite"] = 100 * (claims["cited"] > 0).groupby(claims["system"]).mean()
    table["of these in full"] = citing.groupby("system")["full"].mean()
    for name, supported in {"supported": 100.0, "not supported": 0.0}.items():
        part = citing[citing["full"] == supported]
        table[f"right if {name}"] = part.groupby("system")["right"].mean()
    return table.reset_index()


def _right_if_supported(citing: pd.DataFrame) -> Evidence:
    """How much more often a claim is right if it is fully supported, claims of all questions."""
    said = "share of claims that are right, fully supported less the others that cite, in points"
    supported = citing["full"] == 100
    sides = pd.DataFrame({"supported": supported, "others": ~supported}).astype("float64")
    right = sides.mul(citing["right"], axis=0)
    counts = sides.groupby(citing["question"]).sum().to_numpy()
    sums = right.groupby(citing["question"]).sum().to_numpy()
    return difference_of_means(sums, counts, said)


def difference_of_means(sums: Floats, counts: Floats, said: str) -> Evidence:
    """A mean less another, each over all rows of the questions drawn; both (questions, 2)."""

    def gap(drawn: Integers) -> float:
        first, second = sums[drawn].sum(axis=0) / counts[drawn].sum(axis=0)
        return float(first - second)

    estimate, low, high = resampled(gap, len(sums), np.random.default_rng(SEED))
    return Evidence(said, estimate, low, high, n=len(sums))


# --- evidence -------------------------------------------------------------------------------------


def evidence() -> dict[str, Evidence]:
    """What both say of our own claims, by claim."""
    answers = scored()
    citing = answers[answers["cites"] > 0]
    claims = support()
    citing_claims = claims[claims["cited"] > 0]
    share = pooled(citing_claims, "full", "claims that cite, fully supported, in percent", lowest=0)
    return {
        "large-precision": _change(citing, "precision", "precision of answers that cite,"),
        "large-recall": _change(citing, "recall", "recall of answers that cite,"),
        "large-correct": _change(answers, "correct", "correctness,"),
        "large-first": _first_place(answers),
        "large-forms": unread(scored("[1] alone"), answers),
        "support-full": share,
        "support-right": _right_if_supported(citing_claims),
    }
