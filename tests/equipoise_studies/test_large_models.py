"""Public answers of large models, and what people said of such: read again, line by line."""

from collections import defaultdict
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from equipoise_compendium import facts
from equipoise_compendium.claims import Evidence, stated, verdict
from equipoise_studies.attribution import large_models, words
from equipoise_studies.attribution.public_answers import citations_by_form

DEEPSEEK = {10: 0.497, 20: 0.465, 30: 0.434}
"""Precision of DeepSeek's citations by the passages shown, as issue 32 has it."""


@cache
def evidence() -> dict[str, Evidence]:
    return large_models.evidence()


@cache
def lines() -> list[dict[str, Any]]:
    """Every answer, with the numbers that it cites, in any form and as [1] alone."""
    rows = facts.read("attribution", "large_models.parquet").to_dict("records")
    for row in rows:
        row["all"] = {int(number) for number in f"{row['brackets']} {row['named']}".split()}
        row["one form"] = {int(number) for number in row["alone"].split()}
    return rows


# --- what is read ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "alone", "brackets", "named", "lists"),
    [
        ("So [3], and so again [3].", "3", "3", "", 0),
        ("So [1, 28], and [2].", "2", "1 28 2", "", 1),
        ("So [Document 4], (Documents 5 and 6).", "", "", "4 5 6", 0),
        ("So says Document [7], not [31] or [0].", "7", "7", "", 0),
        ("Nothing is cited.", "", "", "", 0),
    ],
)
def test_citations_are_told_apart_by_their_form(
    answer: str, alone: str, brackets: str, named: str, lists: int
) -> None:
    expected = {"alone": alone, "brackets": brackets, "named": named, "lists": lists}
    assert citations_by_form(answer, 30) == expected


def test_answers_are_as_many_as_were_asked() -> None:
    answers = facts.read("attribution", "large_models.parquet")
    asked = answers.groupby(["model", "passages", "place"])["question"].agg(["size", "nunique"])
    assert (asked["size"] == asked["nunique"]).all()
    by_model = asked["size"].groupby("model").unique().map(list).to_dict()
    assert by_model == {
        "Claude Sonnet 4.6": [100],
        "DeepSeek": [300],
        "GPT-4.1": [100],
        "Gemini 2.5 Flash": [300],
    }
    assert len(answers) == 12000
    known = facts.read("attribution", "questions.csv")
    assert set(answers["question"]) <= set(known["question"])


@pytest.mark.parametrize("passages", DEEPSEEK)
def test_the_precision_of_deepseek_is_that_of_the_issue(passages: int) -> None:
    precision = []
    for row in lines():
        if row["model"] == "DeepSeek" and row["passages"] == passages:
            cited = row["brackets"].split()
            precision.append((str(row["place"]) in cited) / max(len(cited), 1))
    assert np.mean(precision) == pytest.approx(DEEPSEEK[passages], abs=5e-4)
    table = large_models.by_reading().set_index(["model", "passages"])
    ours = table.loc[("DeepSeek", passages), "P, lists too"]
    assert ours == pytest.approx(100 * np.mean(precision))


def test_a_third_to_a_half_of_geminis_citing_answers_have_lists() -> None:
    table = large_models.by_reading().set_index(["model", "passages"])
    assert table.loc["Gemini 2.5 Flash", "lists"].between(33, 50).all()


def test_no_interval_is_drawn_from_fewer_than_ten_questions() -> None:
    answers = large_models.scored()
    few = answers[answers["question"].isin(answers["question"].unique()[:9])]
    table = large_models.scores_by(few, "passages", 0.95, 99)
    assert table["questions"].max() == 9
    assert table["low"].isna().all()
    ten = answers[answers["question"].isin(answers["question"].unique()[:10])]
    correct = large_models.scores_by(ten, "passages", 0.95, 99).query("score == 'Correctness'")
    assert (correct["questions"] == 10).all()
    assert correct["low"].notna().any()


# --- evidence again -------------------------------------------------------------------------------


def score_of(row: dict[str, Any], score: str) -> float | None:
    """Precision or recall of an answer that cites, or its correctness, in points."""
    if score == "correct":
        return 100.0 * row["correct"]
    if not row["all"]:
        return None
    hit = 100.0 * (row["place"] in row["all"])
    return hit if score == "recall" else hit / len(row["all"])


def mean_over_models(by_model: dict[str, list[float]]) -> float:
    return float(np.mean([np.mean(values) for values in by_model.values()]))


@pytest.mark.parametrize("score", ["precision", "recall", "correct"])
def test_what_more_passages_do_again(score: str) -> None:
    values = defaultdict(list)
    for row in lines():
        value = score_of(row, score)
        if value is not None:
            values[row["model"], row["question"], row["passages"]].append(value)
    changes: dict[str, list[float]] = defaultdict(list)
    for model, question, passages in list(values):
        if passages == 10 and (model, question, 30) in values:
            after, before = values[model, question, 30], values[model, question, 10]
            changes[model].append(float(np.mean(after) - np.mean(before)))
    found = evidence()[f"large-{score}"]
    assert found.estimate == pytest.approx(mean_over_models(changes))
    # The error of each model's mean; the questions of one are those of another, which adds to it.
    errors = [np.std(gaps) / np.sqrt(len(gaps)) for gaps in changes.values()]
    assert found.low is not None
    assert found.high is not None
    half = (found.high - found.low) / 2
    assert 1.96 * np.linalg.norm(errors) / 4 * 0.9 < half < 1.96 * np.mean(errors) * 1.2


def test_the_first_place_again() -> None:
    right: dict[tuple[str, str], dict[bool, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in lines():
        if row["passages"] > 10:
            right[row["model"], row["question"]][row["place"] == 1].append(100 * row["correct"])
    gains: dict[str, list[float]] = defaultdict(list)
    for (model, _), sides in right.items():
        gains[model].append(float(np.mean(sides[True]) - np.mean(sides[False])))
    assert evidence()["large-first"].estimate == pytest.approx(mean_over_models(gains))


def test_what_one_form_misses_again() -> None:
    missed = defaultdict(list)
    for row in lines():
        before, after = row["place"] in row["one form"], row["place"] in row["all"]
        further = len(row["all"] - row["one form"])
        by_chance = 0.0
        if not before and further:
            by_chance = further / (row["passages"] - len(row["one form"]))
        missed[row["model"]].append(100 * (after - before - by_chance))
    assert evidence()["large-forms"].estimate == pytest.approx(mean_over_models(missed))


def test_what_experts_said_again() -> None:
    claims = facts.read("attribution", "support.csv").to_dict("records")
    citing = [claim for claim in claims if claim["cited"] != "0"]
    assert (len(claims), len(citing)) == (1292, 1065)
    assert all(claim["support"] == "Missing" for claim in claims if claim["cited"] == "0")
    full = [claim for claim in citing if claim["support"] == "Complete"]
    others = [claim for claim in citing if claim["support"] != "Complete"]
    found = evidence()["support-full"]
    assert found.estimate == pytest.approx(100 * len(full) / len(citing))
    assert found.n == len({claim["question"] for claim in citing})
    right = [
        np.mean([claim["truth"] == "Definitely correct" for claim in side])
        for side in (full, others)
    ]
    assert evidence()["support-right"].estimate == pytest.approx(100 * (right[0] - right[1]))


def test_all_rows_of_a_question_are_drawn_together() -> None:
    sums, counts = np.array([[1.0, 0.0], [3.0, 1.0], [0.0, 2.0]]), np.full((3, 2), 4.0)
    once = large_models.difference_of_means(sums, counts, "a gap")
    again = large_models.difference_of_means(5 * sums, 5 * counts, "a gap")
    assert (once.low, once.high, once.n) == pytest.approx((again.low, again.high, 3))


def test_words_follow_the_intervals() -> None:
    title = words.title_of_large_models(evidence())
    assert "mean precision, recall and correctness fall from" in title
    rising = {name: Evidence("a change", 1.0, -1.0, 3.0) for name in evidence()}
    assert words.title_of_large_models(rising).startswith("No mean")
    said = words.large_models(evidence())
    assert f"precision by {evidence()['large-precision'].estimate:+.1f} points" in said
    readings = large_models.by_reading()
    gpt = readings[(readings["model"] == "GPT-4.1") & (readings["passages"] == 10)].iloc[0]
    said = words.forms(readings, evidence()["large-forms"])
    assert "answers of Gemini 2.5 Flash that cite in brackets" in said
    assert f"recall {gpt['R, [1] alone']:.1f} in place of {gpt['R, all forms']:.1f}" in said
    said = words.support(large_models.support(), evidence())
    assert said.startswith("Of 1,292 claims to 219 questions 1,065 cite a source.")


# --- chance ---------------------------------------------------------------------------------------


def drawn_at_random() -> Evidence:
    """What one form misses, if all further citations were of passages drawn at random."""
    rng = np.random.default_rng(1)
    one_form = large_models.scored("[1] alone")
    answers = large_models.scored("all forms")
    further = answers["cited"] - one_form["cited"]
    others = answers["passages"] - one_form["cited"]
    is_hit = (one_form["recall"] > 0) | (rng.random(len(answers)) < further / others)
    return large_models.unread(one_form, answers.assign(recall=100.0 * is_hit))


NULLS: dict[str, Callable[[], Evidence]] = {"thesis/large-forms": drawn_at_random}
"""Evidence for claims with a null, where there is nothing behind them."""


@pytest.mark.parametrize("name", NULLS)
def test_a_claim_does_not_hold_by_chance(name: str) -> None:
    words = stated("thesis").loc[name.removeprefix("thesis/")]
    assert words["null"]
    assert verdict(NULLS[name](), words["contradicted_if"]) != "holds"


@pytest.mark.parametrize("name", ["large-precision", "large-recall", "large-correct"])
def test_claims_on_passages_hang_on_their_sign(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bound = stated("thesis").loc[name, "contradicted_if"]
    assert verdict(evidence()[name], bound) == "holds"
    answers = large_models.scored()
    exchanged = answers["passages"].map({10: 30, 20: 20, 30: 10})
    monkeypatch.setattr(
        large_models,
        "scored",
        lambda *_: answers.assign(passages=exchanged),
    )
    assert verdict(large_models.evidence()[name], bound) == "contradicted"


def test_support_by_system_has_no_claim_without_its_questions() -> None:
    table = large_models.by_system(large_models.support()).set_index("system")
    assert (table["questions"].sum(), table["claims"].sum()) == (219, 1292)
    claims = pd.read_csv("data/facts/attribution/support.csv")
    bing = claims[(claims["system"] == "Bing Chat") & (claims["cited"] > 0)]
    share = 100 * (bing["support"] == "Complete").mean()
    assert table.loc["Bing Chat", "of these in full"] == pytest.approx(share)
