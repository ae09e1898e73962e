"""Claims of chapter 5: intervals and nulls; and all again by a second, plain implementation."""

from __future__ import annotations

import csv
import json
import math
import re
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from equipoise.measures.attribution import bias_table, score_answers
from equipoise_compendium import project
from equipoise_compendium.protocol import Evidence
from equipoise_compendium.verdicts import read
from equipoise_studies.attribution import claims, data, published
from notebook_evidence import committed_evidence, result_of

NQ, NQ_UTD, LARGE = "NQ, Qwen 1.5B", "NQ-UTD, Qwen 1.5B", "NQ, four large models"
SAMPLE = 500
"""Questions of a benchmark in the thesis (section 5.4)."""
STUDY = data.read_study("replica")


@cache
def scored() -> pd.DataFrame:
    return score_answers(data.cached_answers(STUDY))


@cache
def differences() -> pd.DataFrame:
    return claims.changes(scored())


def rows(values: list[float]) -> pd.DataFrame:
    questions = [f"q{number}" for number in range(len(values))]
    return pd.DataFrame({"question": questions, "gap": values})


# --- intervals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("up", "down", "n"), [(0, 0, 15), (3, 1, 20), (9, 4, 29)])
def test_an_interval_is_that_of_bonett_and_price(up: int, down: int, n: int) -> None:
    """Adjusted Wald interval of paired proportions: its formula adds one change either way."""
    values = [100.0] * up + [-100.0] * down + [0.0] * (n - up - down)
    it = claims.pooled_mean(rows(values), "gap")
    first, second = (up + 1) / (n + 2), (down + 1) / (n + 2)
    error = math.sqrt((first + second - (first - second) ** 2) / (n + 2))
    assert it.estimate == pytest.approx(100 * (up - down) / n)
    expected = tuple(100 * (first - second + side * 1.96 * error) for side in (-1, 1))
    assert (it.low, it.high) == pytest.approx(expected, abs=200 / (n + 2))
    assert it.n == n


def test_no_question_is_invented_where_there_are_many() -> None:
    values = [100.0] * 20 + [-100.0] * 45 + [0.0] * 235
    it = claims.pooled_mean(rows(values), "gap")
    error = np.std(values) / math.sqrt(300)
    expected = tuple(np.mean(values) + side * 1.96 * error for side in (-1, 1))
    assert (it.low, it.high) == pytest.approx(expected, abs=0.5)
    assert claims.pooled_mean(rows([5.0] * 30), "gap").low == pytest.approx(5)


def test_rows_of_a_question_are_drawn_together() -> None:
    values = np.random.default_rng(3).choice([-100.0, 0.0, 100.0], 40).tolist()
    once = claims.pooled_mean(rows(values), "gap")
    thrice = claims.pooled_mean(pd.concat([rows(values)] * 3), "gap")
    assert (thrice.estimate, thrice.low, thrice.high, thrice.n) == pytest.approx(
        (once.estimate, once.low, once.high, 40)
    )

    relevant, others = rows(values).assign(relevant=True), rows([5.0] * 40).assign(relevant=False)
    sides = pd.concat([relevant, others])
    sides["probability"] = sides["gap"] / 100
    once = claims.confidence_gap(sides, 0.0)
    again = claims.confidence_gap(pd.concat([sides] * 2), 0.0)
    assert (once.estimate, once.low, once.high) == pytest.approx(
        (again.estimate, again.low, again.high)
    )
    assert once.estimate == pytest.approx(np.mean(values) - 5)


def test_settings_have_the_same_weight_as_in_a_mean_of_published_cells() -> None:
    few = rows([100.0, 0.0]).assign(setting="few")
    many = rows([0.0] * 9 + [-100.0]).assign(setting="many")
    table = pd.concat([few, many])
    by_setting = claims.pooled_mean(table, "gap", settings=["setting"])
    assert by_setting.estimate == pytest.approx((50 - 10) / 2)
    assert claims.pooled_mean(table, "gap").estimate == pytest.approx(0)
    assert by_setting.n == 10  # q0 and q1 are asked in both


def test_no_interval_is_computed_from_fewer_than_ten_questions() -> None:
    answers = data.large_model_answers(STUDY)
    few = answers[answers["question"].isin(answers["question"].unique()[:9])]
    table = claims.scores_by(few, "passages", 0.95, 99)
    assert table["questions"].max() == 9
    assert table["low"].isna().all()
    ten = answers[answers["question"].isin(answers["question"].unique()[:10])]
    correct = claims.scores_by(ten, "passages", 0.95, 99).query("score == 'Correctness'")
    assert (correct["questions"] == 10).all()
    assert correct["low"].notna().any()


# --- changes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("experiment", ["modes", "mixed", "names", "placebo"])
def test_changes_are_those_of_the_table_of_biases(experiment: str) -> None:
    small = scored()[scored()["model"] != "Qwen 1.5B (large)"]
    ours = claims.changes(small)
    ours = ours[ours["experiment"] == experiment]
    answers = data.in_experiment(small, experiment)
    theirs = bias_table(answers, ["model", "benchmark"], resamples=9)
    keys = ["model", "benchmark", "relevant", "non-relevant", "score"]
    for quantity in ("CAB", "CAS"):
        table = theirs[theirs["quantity"] == quantity]
        table = table.rename(columns=data.COLUMNS | {"measure": "score"})
        expected = 100 * table.groupby(keys)["value"].mean()
        ours_by_setting = ours.groupby(keys)[quantity].mean()
        pd.testing.assert_series_equal(ours_by_setting, expected, check_names=False)


def test_of_several_records_of_a_model_the_largest_is_used() -> None:
    small = scored()[scored()["model"] == "Qwen 1.5B"]
    few = small[small["question"].isin(small["question"].unique()[:4])].assign(model="few")
    both = claims.changes(pd.concat([few, small], ignore_index=True))
    assert set(both["model"]) == {"Qwen 1.5B"}
    other = few.assign(collection="other")
    both = claims.changes(pd.concat([other, small], ignore_index=True))
    assert set(both["model"]) == {"Qwen 1.5B", "few"}
    mixed = differences().query("experiment == 'mixed' and benchmark == 'NQ'")
    assert set(mixed["model"]) == {"Qwen 1.5B (large)"}


def test_chance_is_the_recall_of_random_citations() -> None:
    rng = np.random.default_rng(8)
    questions = [f"q{number}" for number in range(300)]
    blind = pd.DataFrame({"collection": "blind", "question": questions, "k": 5})
    blind = blind.assign(cited=2, recall=(rng.random(300) < 2 / 5).astype(float))
    knows = blind.assign(collection="knows", cited=1, recall=1.0)
    names = ["knows", "blind", "neither"]
    margins = claims.on_collections(pd.concat([blind, knows]), names, claims.above_chance)
    assert margins["knows"].estimate == pytest.approx(80)
    assert abs(margins["blind"].estimate or 0) < 8
    assert margins["neither"].estimate is None


def test_confidence_is_not_compared_where_few_questions_have_one_kind_of_citation() -> None:
    questions = [f"q{number}" for number in range(12)]
    citations = pd.DataFrame({"question": questions, "relevant": True, "probability": 0.9})
    for others, is_compared in [(4, False), (5, True)]:
        lower = citations[:others].assign(relevant=False, probability=0.4)
        it = claims.confidence_gap(pd.concat([citations, lower, lower]), 4.5)
        assert (it.low is not None) == is_compared
    assert (it.estimate, it.published) == pytest.approx((50, 4.5))


def test_published_means_are_of_the_same_settings() -> None:
    table = published.numbers(published.tables("5.3"), published.DIFFERENCES)
    cells = table[published.DIFFERENCES].to_numpy()
    assert claims.published_cab(differences(), "modes", STUDY) == pytest.approx(cells.mean())
    nq = differences().query("benchmark == 'NQ'")
    expected = cells[table["benchmark"] == "NQ"].mean()
    assert claims.published_cab(nq, "modes", STUDY) == pytest.approx(expected)
    assert claims.published_cab(differences(), "placebo", STUDY) is None


def test_published_answers_are_scored_as_the_text_states() -> None:
    """Mistral cites [2] and [5], the others [5] alone; all are right."""
    table = ("thesis/table-5.16", "model")
    for right, wrong, agreeing in [
        (["Mistral", "Llama3", "GPT-4"], ["Mistral"], 3),
        (["Mistral", "Llama3", "GPT-4"], [], 2),
        (["GPT-4"], ["Mistral"], 1),
    ]:
        (parts,) = claims.scored_as_stated(*table, right, wrong).values()
        assert sum(part.estimate or 0 for part in parts.values()) == agreeing


def test_published_values_are_of_the_same_setting() -> None:
    ours = pd.DataFrame({"benchmark": ["own", "own"], "mode": ["Vanilla", "Informed"], "R": 1.0})
    table = published.tables("5.1").query("relevant == 'LLM'")
    shown = published.next_to(ours, table, "Recall", benchmarks={"own": "NQ"})
    first, second = shown["published Recall"]
    assert first == "Mistral 76.6; Llama3 69.2; GPT-4 68.8"
    assert second == "Mistral 68.2; Llama3 69.6; GPT-4 64.6"


# --- errors of published means --------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_no_error_exceeds_the_bound_of_its_means(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    a, b = rng.random((2, n)).round(int(rng.integers(0, 3)))
    total = a.mean() + b.mean()
    bound = np.sqrt((min(total, 2 - total) - (a - b).mean() ** 2) / (n - 1))
    assert stats.sem(a - b) <= bound + 1e-12


def test_a_mark_bounds_the_error() -> None:
    """A significant paired t-test has such an error; without its mark a cell has a wider bound."""
    rng = np.random.default_rng(2)
    scores = rng.choice([-1.0, 0.0, 1.0], SAMPLE, p=[0.03, 0.88, 0.09])
    assert stats.ttest_1samp(scores, 0).pvalue < 0.05
    row = {"benchmark": "NQ", "model": "a", "relevant": "LLM", "ΔRecall": "0.0"}
    errors = []
    for mark in ("†", ""):
        gap = f"{100 * scores.mean():+.1f}{mark}"
        table = published.biases(pd.DataFrame([row | {"ΔPrecision": gap}]), SAMPLE)
        errors.append(table.set_index("score").loc["Precision", "error"])
    assert 100 * stats.sem(scores) < errors[0] < errors[1]


# --- nulls ----------------------------------------------------------------------------------------


def on_nq(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["collection"] == NQ]


def relabelled(quantity: str) -> pd.DataFrame:
    """CAB or CAS with the two kinds of labels exchanged at random, question by question."""
    pairs = on_nq(claims.with_placebo(differences(), quantity))
    names = pairs[["question"]].drop_duplicates().reset_index(drop=True)
    names["exchanged"] = np.random.default_rng(1).random(len(names)) < 0.5
    pairs = pairs.merge(names)
    authors = pairs["authors"].where(~pairs["exchanged"], pairs["placebo"])
    placebo = pairs["placebo"].where(~pairs["exchanged"], pairs["authors"])
    return pairs.assign(authors=authors, placebo=placebo, gap=authors - placebo)


def random_citations() -> Evidence:
    """The margin over chance of a model whose citations are drawn."""
    rng = np.random.default_rng(1)
    answers = on_nq(scored())
    hit = rng.random(len(answers)) < answers["cited"] / answers["k"]
    return claims.above_chance(answers.assign(recall=hit.astype(float)))


def least(evidence: dict[str, dict[str, Evidence]]) -> Evidence:
    (parts,) = evidence.values()
    return min(parts.values(), key=lambda part: part.low or 0)


def noisy_shifts() -> Evidence:
    """Shifts of recall that are no more than their errors."""
    shifts = published.differences("Informed", "Vanilla", SAMPLE).query("score == 'Recall'")
    noise = np.random.default_rng(1).normal(0, shifts["error"])
    return least(claims.largest_shifts(shifts.assign(gap=noise), SAMPLE))


def random_further_citations() -> Evidence:
    """What one form misses, if all further citations were of passages drawn at random."""
    rng = np.random.default_rng(1)
    one_form = data.large_model_answers(STUDY, "[1] alone")
    answers = data.large_model_answers(STUDY)
    further = answers["cited"] - one_form["cited"]
    others = answers["passages"] - one_form["cited"]
    is_hit = (one_form["recall"] > 0) | (rng.random(len(answers)) < further / others)
    return claims.missed_recall(one_form, answers.assign(recall=100.0 * is_hit))


NULLS: dict[str, Callable[[], Evidence]] = {
    "thesis/cites-relevant": random_citations,
    "thesis/5.2-sensitive": noisy_shifts,
    "thesis/placebo-bias": lambda: claims.farther_from_zero(relabelled("CAB")),
    "thesis/placebo-cas": lambda: claims.pooled_mean(relabelled("CAS"), "gap"),
    "thesis/large-forms": random_further_citations,
}
"""Evidence for claims where there is no effect."""


@pytest.mark.parametrize("name", NULLS)
def test_a_claim_is_not_supported_by_chance(name: str) -> None:
    evidence = NULLS[name]()
    assert evidence.low is not None
    beyond = {"thesis/large-forms": "> 1"}  # what a random further citation would add, in points
    is_question = name.startswith(("thesis/placebo", "thesis/large"))
    criterion = beyond.get(name, "> 0") if is_question else ""
    assert result_of(name, evidence, criterion) != "supports"


def test_biases_beyond_the_placebo_are_found() -> None:
    """Else the test above would show nothing: an effect of 20 points is found, either way."""
    pairs = on_nq(claims.with_placebo(differences(), "CAB"))
    distances = []
    for shift in (0, 20, -20):
        moved = claims.farther_from_zero(pairs.assign(authors=pairs["authors"] + shift))
        distances.append(moved.low or 0.0)
    assert distances[0] < 0 < min(distances[1:])
    sensitive = on_nq(claims.with_placebo(differences(), "CAS"))
    moved = claims.pooled_mean(sensitive.assign(gap=sensitive["gap"] + 20), "gap")
    assert result_of("thesis/placebo-cas", moved, "> 0") == "supports"
    # Which of two meaningless labels takes the place of people makes no difference.
    first = claims.farther_from_zero(pairs)
    exchanged = claims.farther_from_zero(pairs.assign(placebo=-pairs["placebo"]))
    assert exchanged.estimate == pytest.approx(first.estimate)
    # Fifteen questions that never change have an interval that is not a point.
    unchanged = on_nq(claims.with_placebo(differences(), "CAB"))[:15].assign(authors=0, placebo=0)
    it = claims.farther_from_zero(unchanged)
    assert it.low is not None
    assert it.high is not None
    assert it.low < 0 < it.high


@pytest.mark.parametrize("column", ["gap", "error"])
def test_published_biases_depend_on_their_sign_and_their_error(column: str) -> None:
    """With the modes exchanged in half of the settings, or doubled errors, no bias is left."""
    table = published.biases(published.tables("5.3"), SAMPLE, ("Informed", "CF-informed"))
    factor = np.where(table["relevant"] == "Human", 1, -1) if column == "gap" else 2
    results = []
    for rows_of_table in (table, table.assign(**{column: table[column] * factor})):
        evidence = least(claims.mean_biases(rows_of_table, ["model", "score"], SAMPLE))
        results.append(result_of("thesis/5.3-human", evidence))
    assert results == ["supports", "imprecise"]


def test_citing_by_rank_alone_is_not_above_rank_alone() -> None:
    """It is above random, since the first passages are the better ones."""
    shown = data.answers_of_people(STUDY)
    rate = shown.groupby(["author", "rank"])["cited"].transform("mean")
    shown["cited"] = np.random.default_rng(1).random(len(shown)) < rate
    by_rank = claims.scores_of_people(shown, least=2)
    above_random, above_rank = (
        claims.of_author(by_rank, "people", f"precision_above_{name}")
        for name in ("random", "rank")
    )
    for it in (above_random, above_rank):
        assert it.low is not None
        assert it.high is not None
        assert (it.low > 0) == (it is above_random)
        assert it.high > 0


# --- again, by a plain way ------------------------------------------------------------------------

PUBLISHED = "published numbers"
Question = tuple[str, str]  # benchmark and question
SWAPS = ("Informed/CF-informed", "CF-informed/Informed")
MODELS = ("Mistral", "Llama3", "GPT-4")
COMMITTED = committed_evidence("thesis_ch5_attribution")


def numbers_of(claim: str, collection: str = PUBLISHED, part: str = "") -> tuple[float, ...]:
    """Estimate and interval, without an interval the estimate alone."""
    it = COMMITTED[f"thesis/{claim}"][collection][part]
    numbers = (it.estimate, it.low, it.high)
    return tuple(float(number) for number in numbers if number is not None)


def estimates(claim: str) -> dict[str, float]:
    """Estimates that follow from published numbers, by part."""
    parts = COMMITTED[f"thesis/{claim}"][PUBLISHED]
    return {name: float(it.estimate or 0) for name, it in parts.items()}


# --- cached answers -------------------------------------------------------------------------------


@cache
def cited() -> dict[tuple[str, str, str, str, str], dict[str, float]]:
    """Precision and recall by labels, mode, author, benchmark and question; passages by one author.

    Of NQ from the large record, of NQ-UTD from the small one, which alone asked it.
    """
    scores = {}
    for name, benchmark in (("large/qwen-1.5b", "NQ"), ("qwen-1.5b", "NQ-UTD")):
        path = project.data("outputs", "attribution", f"{name}.jsonl")
        for text in path.read_text(encoding="utf-8").splitlines()[1:]:
            line = json.loads(text)
            usual = line["k"] == 5 and line["retriever"] == "BM25"
            one_author = line["relevant_author"] == line["nonrelevant_author"]
            if line["benchmark"] != benchmark or not (usual and one_author):
                continue
            numbers = {int(number) for number in re.findall(r"\[(\d+)\]", line["answer"])}
            documents = {number for number in numbers if 1 <= number <= 5}
            hit = float(line["relevant"][0] in documents)
            key = ("labels", "mode", "relevant_author", "benchmark", "question")
            scores[tuple(line[name] for name in key)] = {
                "precision": hit / len(documents) if documents else 0.0,
                "recall": hit,
            }
    return scores


def cab_and_cas(labels: str) -> dict[tuple[str, Question], list[tuple[float, float]]]:
    """By author and question a pair of CAB and CAS in points for each score."""
    pairs = defaultdict(list)
    for key in cited():
        named, mode, author, benchmark, question = key
        if named != labels or mode != SWAPS[0]:
            continue
        first = cited()[key]
        second = cited()[labels, SWAPS[1], author, benchmark, question]
        plain = cited()["none", "Vanilla", author, benchmark, question]
        for score in ("precision", "recall"):
            # The first mode labels the relevant passage with the truth.
            sign = 100 if author == "Human" else -100
            gap = sign * (first[score] - second[score])
            moved = abs(first[score] - plain[score]) + abs(second[score] - plain[score])
            pairs[author, (benchmark, question)].append((gap, 50 * moved))
    return pairs


def plain_interval(
    rows: dict[tuple[str, Question], list[float]], *, by_setting: bool
) -> tuple[float, float, float]:
    """A mean over rows, or over settings first, by bootstrap over the questions of a benchmark.

    ``rows``: by author and question. A setting is an author. Fewer than 30 questions have two
    invented ones.
    """
    of_question: dict[Question, dict[str, list[float]]] = defaultdict(dict)
    for (author, question), values in rows.items():
        setting = author if by_setting else ""
        of_question[question].setdefault(setting, []).extend(values)
    settings = sorted({setting for asked in of_question.values() for setting in asked})

    totals = []  # of each question: a sum and a number of rows for each setting
    for asked in of_question.values():
        sums = [sum(asked.get(setting, [])) for setting in settings]
        counts = [float(len(asked.get(setting, []))) for setting in settings]
        totals.append((sums, counts))
    real = len(totals)
    if real < 30:
        rows_each = []
        for setting in settings:
            sizes = [len(asked[setting]) for asked in of_question.values() if setting in asked]
            rows_each.append(sum(sizes) / len(sizes))
        for extreme in (-100.0, 100.0):
            totals.append(([extreme * size for size in rows_each], rows_each))

    def mean(drawn: np.ndarray) -> float:
        sums, counts = (np.array([totals[place][part] for place in drawn]) for part in (0, 1))
        sums, counts = sums.sum(axis=0), counts.sum(axis=0)
        return float(np.mean(sums[counts > 0] / counts[counts > 0]))

    rng = np.random.default_rng(7)
    samples = sorted(mean(rng.choice(len(totals), len(totals))) for _ in range(1000))
    return mean(np.arange(real)), samples[24], samples[974]


def on(benchmark: str, rows: dict[tuple[str, Question], Any]) -> dict[tuple[str, Question], Any]:
    return {key: values for key, values in rows.items() if key[1][0] == benchmark}


def check(claim: str, collection: str, plain: tuple[float, float, float], reach: float) -> None:
    estimate, low, high = numbers_of(claim, collection)
    assert estimate == pytest.approx(plain[0], abs=1e-6)
    assert (low, high) == pytest.approx(plain[1:], abs=reach)


@pytest.mark.parametrize(("collection", "reach"), [(NQ, 0.9), (NQ_UTD, 6.0)])
def test_cab_and_cas_of_cached_answers(collection: str, reach: float) -> None:
    """CAB in the mixed mode, CAB of the placebo, and CAS with authors minus with the placebo."""
    benchmark = collection.partition(",")[0]
    authors = on(benchmark, cab_and_cas("plain"))
    placebo = on(benchmark, cab_and_cas("placebo"))
    mixed_cab = {key: [cab for cab, _ in pairs] for key, pairs in authors.items()}
    placebo_cab = {key: [cab for cab, _ in pairs] for key, pairs in placebo.items()}
    gaps = {}
    for key, pairs in placebo.items():
        gaps[key] = [own[1] - other[1] for own, other in zip(authors[key], pairs, strict=True)]
    check("5.5-human", collection, plain_interval(mixed_cab, by_setting=True), reach)
    check("placebo-cab", collection, plain_interval(placebo_cab, by_setting=False), reach)
    check("placebo-cas", collection, plain_interval(gaps, by_setting=False), reach)


def test_distance_from_zero() -> None:
    authors, placebo = cab_and_cas("plain"), cab_and_cas("placebo")
    rows = []
    for key, pairs in on("NQ", placebo).items():
        own = np.mean([cab for cab, _ in authors[key]])
        rows.append((own, np.mean([cab for cab, _ in pairs])))
    table = np.array(rows)

    def excess(drawn: np.ndarray) -> float:
        own, other = np.abs(table[drawn].mean(axis=0))
        return float(own - other)

    rng = np.random.default_rng(7)
    samples = sorted(excess(rng.choice(len(table), len(table))) for _ in range(1000))
    check("placebo-bias", NQ, (excess(np.arange(len(rows))), samples[24], samples[974]), 0.5)


def test_the_control_is_recall_above_random_citations() -> None:
    """Of Qwen 0.5B, whose 15 questions are all in one file."""
    path = project.data("outputs", "attribution", "qwen-0.5b.jsonl")
    above = []
    for text in path.read_text(encoding="utf-8").splitlines()[1:]:
        line = json.loads(text)
        numbers = {int(number) for number in re.findall(r"\[(\d+)\]", line["answer"])}
        documents = {number for number in numbers if 1 <= number <= line["k"]}
        above.append(100 * ((line["relevant"][0] in documents) - len(documents) / line["k"]))
    assert numbers_of("cites-relevant", "NQ, Qwen 0.5B")[0] == pytest.approx(np.mean(above))


def test_confidence_is_pooled_over_citations() -> None:
    """By benchmark; where fewer than five questions have citations of one kind, no number."""
    sides: dict[tuple[str, bool], list[tuple[str, float]]] = defaultdict(list)
    for name in ("qwen-1.5b", "large/qwen-1.5b"):
        path = project.data("outputs", "attribution", f"{name}.jsonl")
        for text in path.read_text(encoding="utf-8").splitlines()[1:]:
            line = json.loads(text)
            usual = line["k"] == 5 and line["retriever"] == "BM25"
            three_modes = line["mode"] in ("Vanilla", "Informed", "CF-informed")
            two_authors = line["relevant_author"] != line["nonrelevant_author"]
            if not usual or line["labels"] not in ("none", "plain"):
                continue
            if two_authors != three_modes and line["mode"] != "Vanilla":
                continue
            for citation in line["citations"]:
                if citation["document"] <= 5 and citation["probability"] is not None:
                    side = (line["benchmark"], citation["document"] in line["relevant"])
                    sides[side].append((line["question"], citation["probability"]))

    def gap(questions: list[str]) -> float:
        means = []
        for side in (True, False):
            asked = defaultdict(list)
            for question, probability in sides["NQ", side]:
                asked[question].append(probability)
            means.append(np.mean([p for question in questions for p in asked[question]]))
        return float(100 * (means[0] - means[1]))

    everyone = sorted({question for side in (True, False) for question, _ in sides["NQ", side]})
    rng = np.random.default_rng(7)
    samples = sorted(gap(rng.choice(everyone, len(everyone)).tolist()) for _ in range(400))
    check("5.6-signal", NQ, (gap(everyone), samples[9], samples[389]), 0.9)
    assert len({question for question, _ in sides["NQ-UTD", False]}) < 5
    assert numbers_of("5.6-signal", NQ_UTD) == ()


# --- published numbers ----------------------------------------------------------------------------


def published_rows(*numbers: str) -> list[dict[str, str]]:
    rows = []
    for number in numbers:
        path = project.data("published", "thesis", f"table-{number}.csv")
        rows += list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    return rows


def shares() -> dict[tuple[str, ...], float]:
    """Precision and recall by benchmark, model, the two authors, mode and score."""
    share: dict[tuple[str, ...], float] = {}
    for row in published_rows("5.1", "5.11", "5.14", "5.15", "5.4"):
        mode = row.get("mode") or f"{row['relevant mode']}/{row['non-relevant mode']}"
        key = (row["benchmark"], row["model"], row["relevant"], row["non-relevant"], mode)
        for score in ("Precision", "Recall"):
            share[*key, score] = float(row[score].rstrip("†")) / 100
    return share


def cells_of(number: str, modes: tuple[str, str] | None) -> dict[tuple[str, ...], Any]:
    """CAB of a table with its largest error: by model, benchmark, author or retriever, and score.

    The error has three bounds: scores from 0 to 1, the means of the two modes where they are
    published, and a mark, which says that CAB is more than 1.964729 errors from zero.
    """
    share = shares()
    cells: dict[tuple[str, ...], Any] = {}
    for row in published_rows(number):
        if row.get("quantity", "CAB") != "CAB":
            continue
        for score in ("Precision", "Recall"):
            text = row[f"Δ{score}"]
            gap = float(text.rstrip("†"))
            bounds = [(100**2 - gap**2) / (SAMPLE - 1)]
            setting = tuple(row.get(key, "") for key in ("benchmark", "model", "relevant"))
            setting += (row.get("non-relevant", ""),)
            if modes and (*setting, modes[0], score) in share:
                first, second = (share[*setting, mode, score] for mode in modes)
                most = min(first + second, 2 - first - second) + 0.001
                bounds.append(100**2 * (most - (first - second) ** 2) / (SAMPLE - 1))
            if text.endswith("†"):
                bounds.append(((abs(gap) + 0.05) / 1.964729) ** 2)
            key = (row["model"], row["benchmark"], row.get("relevant") or row["retriever"], score)
            cells[key] = gap, min(bounds) ** 0.5
    return cells


TABLES = {"5.3": ("Informed", "CF-informed"), "5.5": SWAPS, "5.8": None}


@pytest.mark.parametrize(
    ("claim", "number"), [("5.3-human", "5.3"), ("5.5-human", "5.5"), ("5.8-names", "5.8")]
)
def test_the_mean_bias_of_a_model(claim: str, number: str) -> None:
    """Errors of a benchmark's two settings may be equal, the benchmarks are independent."""
    cells = cells_of(number, TABLES[number])
    for model in MODELS:
        for score in ("Precision", "Recall"):
            means, errors = [], []
            for benchmark in ("NQ", "MS MARCO"):
                pair = [cells[model, benchmark, author, score] for author in ("Human", "LLM")]
                means.append((pair[0][0] + pair[1][0]) / 2)
                errors.append((pair[0][1] + pair[1][1]) / 2)
            mean, error = sum(means) / 2, (errors[0] ** 2 + errors[1] ** 2) ** 0.5 / 2
            reach = 1.964729 * error + 0.05
            again = (mean, mean - reach, mean + reach)
            assert numbers_of(claim, part=f"{model}, {score}") == pytest.approx(again, abs=1e-4)


def test_marks_alone_bound_the_precision_of_table_5_5() -> None:
    """The intervals that marks give to GPT-4; other bounds can only be closer."""
    cells = [3.3, 4.4, 7.4, 5.4]
    reach = (((3.3 + 4.4) / 2 + 0.05) ** 2 + ((7.4 + 5.4) / 2 + 0.05) ** 2) ** 0.5 / 2 + 0.05
    again = (sum(cells) / 4, sum(cells) / 4 - reach, sum(cells) / 4 + reach)
    assert again == pytest.approx((5.125, 1.3, 8.9), abs=0.05)
    assert numbers_of("5.5-human", part="GPT-4, Precision") == pytest.approx(again, abs=1e-4)


def test_biases_of_one_origin_one_retriever_and_one_setting() -> None:
    mixed = cells_of("5.5", SWAPS)
    for author in ("Human", "LLM"):
        pair = [mixed["GPT-4", benchmark, author, "Recall"] for benchmark in ("NQ", "MS MARCO")]
        mean = (pair[0][0] + pair[1][0]) / 2
        reach = 1.964729 * (pair[0][1] ** 2 + pair[1][1] ** 2) ** 0.5 / 2 + 0.05
        again = (mean, mean - reach, mean + reach)
        part = f"GPT-4, {author}, Recall"
        assert numbers_of("5.5-origin", part=part) == pytest.approx(again, abs=1e-4)

    for (model, _, retriever, score), (gap, error) in cells_of("5.9", None).items():
        reach = 1.964729 * error + 0.05
        again = (gap, gap - reach, gap + reach)
        part = f"{model}, {retriever}, {score}"
        assert numbers_of("5.9-retrievers", part=part) == pytest.approx(again, abs=1e-4)

    other = {"Human": "LLM", "LLM": "Human"}
    known = COMMITTED["thesis/5.4-labelled-human"][PUBLISHED]
    assert len(known) == 48
    for number in ("5.3", "5.5"):
        for (model, benchmark, author, score), (gap, error) in cells_of(
            number, TABLES[number]
        ).items():
            nonrelevant = author if number == "5.5" else other[author]
            part = f"{benchmark}, {model}, {author}, {nonrelevant}, {score}"
            reach = 1.964729 * error + 0.05
            again = (gap, gap - reach, gap + reach)
            assert numbers_of("5.4-labelled-human", part=part) == pytest.approx(again, abs=1e-4)


def test_the_shift_of_recall() -> None:
    """What Table 5.2 and the recalls give: the changed questions, and their balance."""
    changed = {}
    for row in published_rows("5.2"):
        changed[row["model"], row["benchmark"], row["relevant"]] = row["ΔRecall"]
    recall = {}
    for row in published_rows("5.1", "5.11"):
        key = (row["model"], row["benchmark"], row["relevant"])
        recall[*key, row["mode"]] = float(row["Recall"].rstrip("†"))
    agrees = []
    for model in MODELS:
        shifts = []
        for key, text in changed.items():
            if key[0] == model:
                shift = abs(recall[*key, "Informed"] - recall[*key, "Vanilla"])
                variance = float(text.rstrip("†")) / 100 - (shift / 100) ** 2
                error = 100 * (variance / (SAMPLE - 1)) ** 0.5
                shifts.append((shift, error))
                agrees.append(text.endswith("†") == (shift / error > 1.964729))
        shift, error = max(shifts)
        reach = 2.507230 * error + 0.05
        again = (shift, shift - reach, shift + reach)
        assert numbers_of("5.2-sensitive", part=model) == pytest.approx(again, abs=1e-3)
    assert sorted(estimates("5.2-marks").values()) == sorted(map(float, agrees))


def test_the_gap_of_confidence_by_label() -> None:
    """A mean of three models, which give no interval."""
    gap: dict[tuple[str, ...], float] = {}
    for row in published_rows("5.6", "5.10"):
        key = (row["benchmark"], row["model"], row["relevant"], row["mode"])
        gap[key] = 100 * (float(row["relevant AC"]) - float(row["non-relevant AC"]))
    assert sorted(estimates("5.6-signal").values()) == pytest.approx(sorted(gap.values()))
    assert sum(value > 0 for value in gap.values()) == 34
    wider = []
    for model in MODELS:
        pairs = []
        for benchmark in ("NQ", "MS MARCO"):
            by_people = gap[benchmark, model, "Human", "Informed"]
            pairs.append(by_people - gap[benchmark, model, "Human", "CF-informed"])
            by_model = gap[benchmark, model, "LLM", "CF-informed"]
            pairs.append(by_model - gap[benchmark, model, "LLM", "Informed"])
        wider.append(np.mean(pairs))
    assert numbers_of("5.6-labels-move") == pytest.approx((np.mean(wider),), abs=1e-4)
    assert COMMITTED["thesis/5.6-labels-move"][PUBLISHED][""].n == len(wider)


def test_counts_of_published_cells() -> None:
    correct: defaultdict[Any, dict[Any, Any]] = defaultdict(dict)
    for row in published_rows("5.1", "5.4"):
        mode = row.get("mode") or row["relevant mode"]
        if mode != "Vanilla":
            human = (row["relevant"] == "Human") == (mode == "Informed")
            key = (row["model"], row["relevant"], row["non-relevant"])
            correct[key][human] = float(row["EM"])
    gains = sorted(scores[True] - scores[False] for scores in correct.values())
    for claim in ("5.1-correctness", "5.1-correctness-not-consistent"):
        assert sorted(estimates(claim).values()) == pytest.approx(gains)


def test_marks_of_published_cells() -> None:
    for number in ("5.7", "5.8"):
        marks = sum(value.endswith("†") for row in published_rows(number) for value in row.values())
        assert estimates(f"{number}-marked") == {"": marks}
    significant = []
    for quantity, tables in {"CAS": ["5.2"], "CAB": ["5.3", "5.5"]}.items():
        for row in published_rows(*tables):
            for score in ("ΔPrecision", "ΔRecall"):
                if row[score].endswith("†"):
                    significant.append((quantity, float(row[score].rstrip("†"))))
    reported = estimates("5.2-3-to-18").items()
    assert sorted((part.partition(",")[0], gap) for part, gap in reported) == sorted(significant)


def test_shares_of_published_cells() -> None:
    by_model, by_mode = defaultdict(list), defaultdict(list)
    for row in published_rows("5.6", "5.10"):
        above = float(row["relevant AC"]) > float(row["non-relevant AC"])
        by_model[row["model"]].append(above)
        by_mode[row["mode"]].append(above)
    for name, groups in {"5.6-confident": by_model, "5.6-labels": by_mode}.items():
        again = {group: 100 * np.mean(answers) for group, answers in groups.items()}
        assert estimates(name) == pytest.approx(again)
    one_label: defaultdict[Any, dict[Any, Any]] = defaultdict(dict)
    for row in published_rows("5.14", "5.15"):
        if row["relevant mode"] == row["non-relevant mode"] != "Vanilla":
            human = (row["relevant"] == "Human") == (row["relevant mode"] == "Informed")
            key = (row["benchmark"], row["model"], row["relevant"])
            one_label[key][human] = float(row["Recall"].rstrip("†"))
    raised = 100 * np.mean([scores[True] > scores[False] for scores in one_label.values()])
    assert raised > 50
    assert estimates("5.14-same-label")["Recall"] == pytest.approx(raised)


@pytest.mark.parametrize("number", [2, 3, 5, 7])
def test_margins_over_gpt_4(number: int) -> None:
    cells: dict[tuple[str, ...], float] = {}
    for row in published_rows(f"5.{number}"):
        for score in ("ΔPrecision", "ΔRecall"):
            key = (row["model"], row["benchmark"], row["relevant"], score)
            cells[key] = float(row[score].rstrip("†"))
    margins = []
    for (model, *rest), value in cells.items():
        if model != "GPT-4":
            margins.append(value - cells["GPT-4", *rest])
    assert sorted(estimates(f"5.{number}-gpt4-lower").values()) == pytest.approx(sorted(margins))


def test_margins_of_the_marks_of_table_5_1() -> None:
    cells: defaultdict[Any, dict[str, str]] = defaultdict(dict)
    for row in published_rows("5.1", "5.11"):
        for score in ("Precision", "Recall"):
            setting = (row["benchmark"], row["model"], row["relevant"], score)
            cells[setting][row["mode"]] = row[score]
    margins = []
    for modes in cells.values():
        values = {mode: float(text.rstrip("†")) for mode, text in modes.items()}
        for mode, text in modes.items():
            if text.endswith("†"):
                others = [value for name, value in values.items() if name != mode]
                margins.append(values[mode] - max(others))
    assert sorted(estimates("5.1-marks").values()) == pytest.approx(sorted(margins))


# --- public answers of large models, and claims that experts judged -------------------------------


@cache
def lines() -> list[dict[str, Any]]:
    """Answers of large models, with the numbers cited in one form and in all forms as sets."""
    path = project.data("facts", "attribution", "large_models.parquet")
    rows = pd.read_parquet(path).to_dict("records")
    for row in rows:
        row["one form"] = set(map(int, row["alone"].split()))
        row["all"] = set(map(int, f"{row['brackets']} {row['named']}".split()))
    return rows


def score_of(row: dict[str, Any], score: str) -> float:
    """Precision or recall of an answer (0 where it cites nothing), or correctness, in points."""
    if score == "correct":
        return 100.0 * row["correct"]
    hit = 100.0 * (row["place"] in row["all"])
    return hit if score == "recall" else hit / max(len(row["all"]), 1)


def mean_over_models(by_model: dict[str, list[float]]) -> float:
    return float(np.mean([np.mean(values) for values in by_model.values()]))


@pytest.mark.parametrize("score", ["precision", "recall", "correct"])
def test_the_effect_of_more_passages(score: str) -> None:
    values = defaultdict(list)
    for row in lines():
        values[row["model"], row["question"], row["passages"]].append(score_of(row, score))
    changes: dict[str, list[float]] = defaultdict(list)
    for model, question, passages in list(values):
        if passages == 10 and (model, question, 30) in values:
            after, before = values[model, question, 30], values[model, question, 10]
            changes[model].append(float(np.mean(after) - np.mean(before)))
    estimate, low, high = numbers_of(f"large-{score}", LARGE)
    assert estimate == pytest.approx(mean_over_models(changes))
    # The error of each model's mean; the models share their questions, which adds to it.
    errors = [np.std(gaps) / np.sqrt(len(gaps)) for gaps in changes.values()]
    half = (high - low) / 2
    assert 1.96 * np.linalg.norm(errors) / 4 * 0.9 < half < 1.96 * np.mean(errors) * 1.2


def test_the_effect_of_the_first_place() -> None:
    right: dict[tuple[str, str], dict[bool, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in lines():
        if row["passages"] > 10:
            right[row["model"], row["question"]][row["place"] == 1].append(100 * row["correct"])
    gains: dict[str, list[float]] = defaultdict(list)
    for (model, _), sides in right.items():
        gains[model].append(float(np.mean(sides[True]) - np.mean(sides[False])))
    assert numbers_of("large-first", LARGE)[0] == pytest.approx(mean_over_models(gains))


def test_recall_that_one_form_misses() -> None:
    missed = defaultdict(list)
    for row in lines():
        before, after = row["place"] in row["one form"], row["place"] in row["all"]
        further = len(row["all"] - row["one form"])
        by_chance = 0.0
        if not before and further:
            by_chance = further / (row["passages"] - len(row["one form"]))
        missed[row["model"]].append(100 * (after - before - by_chance))
    assert numbers_of("large-forms", LARGE)[0] == pytest.approx(mean_over_models(missed))


def test_recall_of_large_models_above_random_citations() -> None:
    above = defaultdict(list)
    for row in lines():
        hit = row["place"] in row["all"]
        above[row["model"]].append(100 * (hit - len(row["all"]) / row["passages"]))
    control = numbers_of("large-cite-relevant", LARGE)[0]
    assert control == pytest.approx(mean_over_models(above))


# --- people ---------------------------------------------------------------------------------------

PEOPLE = "TREC RAG 2024, GPT-4o and people"


@cache
def facts(name: str) -> list[dict[str, str]]:
    path = project.data("facts", "attribution", name)
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


@cache
def people() -> dict[str, dict[str, dict[str, float]]]:
    """Scores by name, question and author, means over the answers to a question."""
    graded: dict[str, dict[str, int]] = defaultdict(dict)
    for row in facts("grades.csv"):
        graded[row["question"]][row["rank"]] = int(row["grade"])
    times: dict[tuple[str, str], int] = defaultdict(int)
    for row in facts("people.csv"):
        for rank in row["cited"].split():
            times[row["author"], rank] += 1
    values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for row in facts("people.csv"):
        author, question, cites = row["author"], row["question"], row["cited"].split()
        values["fewer", question, author].append(len(cites))
        grades = graded[question]
        relevant = [rank for rank in grades if grades[rank] >= 2]
        if not 0 < len(relevant) < len(grades):
            continue
        seen = [rank for rank in cites if rank in grades]
        hits = sum(rank in relevant for rank in seen)
        values["recall", question, author].append(100 * hits / len(relevant))
        margin = hits / len(relevant) - len(seen) / len(grades)
        values["control", question, author].append(100 * margin)
        if seen:
            of_relevant = sum(times[author, rank] for rank in relevant)
            expected = of_relevant / sum(times[author, rank] for rank in grades)
            values["precision", question, author].append(100 * hits / len(seen))
            values["by-rank", question, author].append(100 * (hits / len(seen) - expected))
    scores: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for (name, question, author), each in values.items():
        scores[name][question][author] = float(np.mean(each))
    return scores


@pytest.mark.parametrize(
    ("name", "n"), [("fewer", 301), ("recall", 68), ("precision", 68), ("by-rank", 68)]
)
def test_gpt_4o_minus_people(name: str, n: int) -> None:
    both = [it for it in people()[name].values() if len(it) == 2]
    gaps = np.array([it["GPT-4o"] - it["people"] for it in both])
    rng = np.random.default_rng(7)
    samples = sorted(rng.choice(gaps, len(gaps)).mean() for _ in range(1000))
    check(f"people-{name}", PEOPLE, (gaps.mean(), samples[24], samples[974]), 0.5)
    assert COMMITTED[f"thesis/people-{name}"][PEOPLE][""].n == len(gaps) == n


def test_mistakes_of_gpt_4o_and_its_control() -> None:
    by_question = people()
    precision = np.mean([it["GPT-4o"] for it in by_question["precision"].values()])
    assert numbers_of("mistakes", PEOPLE)[0] == pytest.approx(100 - precision)
    control = np.mean([it["GPT-4o"] for it in by_question["control"].values()])
    assert numbers_of("large-cite-relevant", PEOPLE)[0] == pytest.approx(control)


# --- answers --------------------------------------------------------------------------------------


def test_the_answer_says_that_the_numbers_carry_both_biases() -> None:
    path = project.root() / "reports" / "thesis_ch5_attribution" / "manifest.json"
    answer = " ".join(json.loads(path.read_text(encoding="utf-8"))["answer"])
    assert "the numbers of the thesis carry the bias of its own models" in answer
    answers = {it["claim"]: it["in_paper"] for it in read() if it["paper"] == "thesis"}
    assert answers["5.3-human"] == answers["5.5-human"] == "carried"
