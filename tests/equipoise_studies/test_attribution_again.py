"""Claims of chapter 5 by a second, plain implementation, from the committed files."""

from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from equipoise_compendium import project

SAMPLE = 500
"""Questions of a benchmark in the thesis (section 5.4)."""

Question = tuple[str, str]  # benchmark and question
SWAPS = ("Informed/CF-informed", "CF-informed/Informed")
MODELS = ("Mistral", "Llama3", "GPT-4")


@cache
def reported() -> dict[str, dict[str, str]]:
    """The claims of the committed report, by name."""
    path = project.root() / "reports" / "claims.csv"
    rows = csv.DictReader(path.read_text(encoding="utf-8").splitlines())
    return {row["name"]: row for row in rows if row["notebook"] == "thesis_ch5_attribution"}


def numbers_of(claim: str) -> tuple[float, float, float]:
    row = reported()[claim]
    return float(row["estimate"]), float(row["low"]), float(row["high"])


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
    """A mean over rows, or over settings first, by bootstrap with two invented questions.

    ``rows``: by author and question. A setting is an author and a benchmark.
    """
    of_question: dict[Question, dict[tuple[str, str], list[float]]] = defaultdict(dict)
    for (author, question), values in rows.items():
        setting = (author, question[0]) if by_setting else ("", "")
        of_question[question].setdefault(setting, []).extend(values)
    settings = sorted({setting for asked in of_question.values() for setting in asked})

    totals = []  # of each question: a sum and a number of rows for each setting
    for asked in of_question.values():
        sums = [sum(asked.get(setting, [])) for setting in settings]
        counts = [float(len(asked.get(setting, []))) for setting in settings]
        totals.append((sums, counts))
    real = len(totals)
    for benchmark in sorted({question[0] for question in of_question}):
        rows_each = []
        for setting in settings:
            sizes = []
            for question, asked in of_question.items():
                if question[0] == benchmark and setting in asked:
                    sizes.append(len(asked[setting]))
            rows_each.append(sum(sizes) / len(sizes) if sizes else 0.0)
        for extreme in (-100.0, 100.0):
            totals.append(([extreme * size for size in rows_each], rows_each))

    def mean(drawn: np.ndarray) -> float:
        sums, counts = (np.array([totals[place][part] for place in drawn]) for part in (0, 1))
        sums, counts = sums.sum(axis=0), counts.sum(axis=0)
        return float(np.mean(sums[counts > 0] / counts[counts > 0]))

    rng = np.random.default_rng(7)
    samples = sorted(mean(rng.choice(len(totals), len(totals))) for _ in range(1000))
    return mean(np.arange(real)), samples[24], samples[974]


def check(claim: str, plain: tuple[float, float, float], reach: float) -> None:
    estimate, low, high = numbers_of(claim)
    assert estimate == pytest.approx(plain[0], abs=1e-6)
    assert (low, high) == pytest.approx(plain[1:], abs=reach)


def test_cab_of_the_mixed_mode_settings_first() -> None:
    rows = {key: [cab for cab, _ in pairs] for key, pairs in cab_and_cas("plain").items()}
    check("5.5-negligible", plain_interval(rows, by_setting=True), 1.0)


def test_cab_of_the_placebo() -> None:
    rows = {key: [cab for cab, _ in pairs] for key, pairs in cab_and_cas("placebo").items()}
    check("placebo-cab", plain_interval(rows, by_setting=False), 0.4)


def test_cas_with_authors_and_placebo() -> None:
    authors, placebo = cab_and_cas("plain"), cab_and_cas("placebo")
    gaps = {}
    for key, pairs in placebo.items():
        gaps[key] = [own[1] - other[1] for own, other in zip(authors[key], pairs, strict=True)]
    check("placebo-cas", plain_interval(gaps, by_setting=False), 0.4)


def test_distance_from_zero() -> None:
    authors, placebo = cab_and_cas("plain"), cab_and_cas("placebo")
    rows = []
    for key, pairs in placebo.items():
        own = np.mean([cab for cab, _ in authors[key]])
        rows.append((own, np.mean([cab for cab, _ in pairs])))
    table = np.array([*rows, (100, -100), (-100, 100)])

    def excess(drawn: np.ndarray) -> float:
        own, other = np.abs(table[drawn].mean(axis=0))
        return float(own - other)

    rng = np.random.default_rng(7)
    samples = sorted(excess(rng.choice(len(table), len(table))) for _ in range(1000))
    check("placebo-bias", (excess(np.arange(len(rows))), samples[24], samples[974]), 0.4)


def test_confidence_is_pooled_over_citations() -> None:
    sides: dict[bool, list[float]] = {True: [], False: []}
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
                    relevant = citation["document"] in line["relevant"]
                    sides[relevant].append(citation["probability"])
    gap = 100 * (np.mean(sides[True]) - np.mean(sides[False]))
    assert numbers_of("5.6-signal")[0] == pytest.approx(gap)


# --- published numbers ----------------------------------------------------------------------------


def published(*numbers: str) -> list[dict[str, str]]:
    rows = []
    for number in numbers:
        path = project.data("published", "thesis", f"table-{number}.csv")
        rows += list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    return rows


def shares() -> dict[tuple[str, ...], float]:
    """Precision and recall by benchmark, model, the two authors, mode and score."""
    share: dict[tuple[str, ...], float] = {}
    for row in published("5.1", "5.11", "5.14", "5.15", "5.4"):
        mode = row.get("mode") or f"{row['relevant mode']}/{row['non-relevant mode']}"
        key = (row["benchmark"], row["model"], row["relevant"], row["non-relevant"], mode)
        for score in ("Precision", "Recall"):
            share[*key, score] = float(row[score].rstrip("†")) / 100
    return share


@pytest.mark.parametrize(
    ("claim", "modes", "one_author"),
    [("5.3-human", ("Informed", "CF-informed"), False), ("5.5-human", SWAPS, True)],
)
def test_the_least_mean_bias(claim: str, modes: tuple[str, str], one_author: bool) -> None:
    """CAB of each model, with a t interval whose error is the largest that two means allow."""
    share = shares()
    intervals = []
    for model in MODELS:
        for score in ("Precision", "Recall"):
            means, squared_errors = [], []
            for benchmark in ("NQ", "MS MARCO"):
                gaps, errors = [], []
                for author in ("Human", "LLM"):
                    other = author if one_author else {"Human": "LLM", "LLM": "Human"}[author]
                    setting = (benchmark, model, author, other)
                    if (*setting, modes[0], score) not in share:
                        continue  # a row that the text of Table 5.14 has lost
                    told = share[*setting, modes[0], score]
                    swapped = share[*setting, modes[1], score]
                    most = min(told + swapped, 2 - told - swapped)
                    errors.append(((most - (told - swapped) ** 2) / (SAMPLE - 1)) ** 0.5)
                    gaps.append(told - swapped if author == "Human" else swapped - told)
                means.append(sum(gaps) / len(gaps))
                squared_errors.append((sum(errors) / len(errors)) ** 2)
            mean = 100 * sum(means) / 2
            reach = 100 * 1.964729 * sum(squared_errors) ** 0.5 / 2 + 0.1
            intervals.append((mean, mean - reach, mean + reach))
    assert numbers_of(claim) == pytest.approx(tuple(np.min(intervals, axis=0)), abs=1e-3)


@pytest.mark.parametrize(
    ("claim", "number", "benchmarks"),
    [("5.8-names", "5.8", ["NQ", "MS MARCO"]), ("5.9-retrievers", "5.9", ["NQ"])],
)
def test_the_least_mean_bias_of_a_table_without_means(
    claim: str, number: str, benchmarks: list[str]
) -> None:
    """A squared difference of scores is at most 1: no published mean bounds it further."""
    intervals = []
    for model in MODELS:
        for score in ("ΔPrecision", "ΔRecall"):
            means, squared_errors = [], []
            for benchmark in benchmarks:
                cells = []
                for row in published(number):
                    if row["model"] == model and row["benchmark"] == benchmark:
                        if row.get("quantity", "CAB") == "CAB":
                            cells.append(float(row[score].rstrip("†")))
                assert len(cells) == 2
                errors = [100 * ((1 - (cell / 100) ** 2) / (SAMPLE - 1)) ** 0.5 for cell in cells]
                means.append(sum(cells) / 2)
                squared_errors.append((sum(errors) / 2) ** 2)
            mean = sum(means) / len(benchmarks)
            reach = 1.964729 * sum(squared_errors) ** 0.5 / len(benchmarks) + 0.1
            intervals.append((mean, mean - reach, mean + reach))
    assert numbers_of(claim) == pytest.approx(tuple(np.min(intervals, axis=0)), abs=1e-3)
    assert int(reported()[claim]["n"]) == SAMPLE * len(benchmarks)


def test_the_least_setting_and_the_highest_score() -> None:
    share = shares()
    intervals = []
    for *setting, mode, score in share:
        for first, second in (("Informed", "CF-informed"), SWAPS):
            if mode != first:
                continue
            told, swapped = share[*setting, first, score], share[*setting, second, score]
            gap = told - swapped if setting[2] == "Human" else swapped - told
            most = min(told + swapped, 2 - told - swapped)
            reach = 196.4729 * ((most - gap**2) / (SAMPLE - 1)) ** 0.5 + 0.1
            intervals.append((100 * gap, 100 * gap - reach, 100 * gap + reach))
    least = tuple(np.min(intervals, axis=0))
    assert numbers_of("5.4-labelled-human") == pytest.approx(least, abs=1e-3)
    assert str(len(intervals)) in reported()["5.4-labelled-human"]["evidence"]

    highest = max(value for (*_, mode, _), value in share.items() if "/" not in mode)
    reach = 196.4729 * (highest * (1 - highest) / (SAMPLE - 1)) ** 0.5 + 0.1
    again = (100 * highest, 100 * highest - reach, 100 * highest + reach)
    assert numbers_of("5.1-fall-short") == pytest.approx(again, abs=1e-3)


def test_the_shift_of_recall() -> None:
    """What Table 5.2 and the recalls give: the changed questions, and their balance."""
    changed = {}
    for row in published("5.2"):
        changed[row["model"], row["benchmark"], row["relevant"]] = row["ΔRecall"]
    recall = {}
    for row in published("5.1", "5.11"):
        key = (row["model"], row["benchmark"], row["relevant"])
        recall[*key, row["mode"]] = float(row["Recall"].rstrip("†"))
    lows, wrong = [], 0
    for model in MODELS:
        shifts = []
        for key, text in changed.items():
            if key[0] == model:
                shift = abs(recall[*key, "Informed"] - recall[*key, "Vanilla"])
                variance = float(text.rstrip("†")) / 100 - (shift / 100) ** 2
                error = 100 * (variance / (SAMPLE - 1)) ** 0.5
                shifts.append((shift, error))
                wrong += text.endswith("†") != (shift / error > 1.964729)
        shift, error = max(shifts)
        lows.append(shift - 2.507230 * error - 0.1)
    assert numbers_of("5.2-sensitive")[1] == pytest.approx(min(lows), abs=1e-3)
    assert float(reported()["5.2-marks"]["estimate"]) == wrong


def test_the_gap_of_confidence_by_label() -> None:
    gap: dict[tuple[str, ...], float] = {}
    for row in published("5.6", "5.10"):
        key = (row["benchmark"], row["model"], row["relevant"], row["mode"])
        gap[key] = 100 * (float(row["relevant AC"]) - float(row["non-relevant AC"]))
    wider = []
    for benchmark in ("NQ", "MS MARCO"):
        for model in MODELS:
            by_people = gap[benchmark, model, "Human", "Informed"]
            by_people -= gap[benchmark, model, "Human", "CF-informed"]
            by_model = gap[benchmark, model, "LLM", "CF-informed"]
            by_model -= gap[benchmark, model, "LLM", "Informed"]
            wider.append((by_people + by_model) / 2)
    reach = 2.570582 * np.std(wider, ddof=1) / 6**0.5
    again = (np.mean(wider), np.mean(wider) - reach, np.mean(wider) + reach)
    assert numbers_of("5.6-labels-move") == pytest.approx(again, abs=1e-4)


def estimate(claim: str) -> float:
    return float(reported()[claim]["estimate"])


def test_counts_of_published_cells() -> None:
    correct: defaultdict[Any, dict[Any, Any]] = defaultdict(dict)
    for row in published("5.1", "5.4"):
        mode = row.get("mode") or row["relevant mode"]
        if mode != "Vanilla":
            human = (row["relevant"] == "Human") == (mode == "Informed")
            key = (row["model"], row["relevant"], row["non-relevant"])
            correct[key][human] = float(row["EM"])
    higher = sum(scores[True] > scores[False] for scores in correct.values())
    assert estimate("5.1-correctness") == pytest.approx(100 * higher / len(correct))
    assert estimate("5.1-correctness-not-consistent") == len(correct) - higher
    unmarked = 0
    for row in published("5.3", "5.5"):
        for score in ("ΔPrecision", "ΔRecall"):
            unmarked += not (row[score].startswith("+") and row[score].endswith("†"))
    assert estimate("5.3-marks") == unmarked
    by_model, by_mode = defaultdict(list), defaultdict(list)
    for row in published("5.6", "5.10"):
        above = float(row["relevant AC"]) > float(row["non-relevant AC"])
        by_model[row["model"]].append(above)
        by_mode[row["mode"]].append(above)
    for name, groups in {"5.6-confident": by_model, "5.6-labels": by_mode}.items():
        least = min(np.mean(answers) for answers in groups.values())
        assert estimate(name) == pytest.approx(100 * least)
    one_label: defaultdict[Any, dict[Any, Any]] = defaultdict(dict)
    for row in published("5.14", "5.15"):
        if row["relevant mode"] == row["non-relevant mode"] != "Vanilla":
            human = (row["relevant"] == "Human") == (row["relevant mode"] == "Informed")
            key = (row["benchmark"], row["model"], row["relevant"])
            one_label[key][human] = float(row["Recall"].rstrip("†"))
    raised = [scores[True] > scores[False] for scores in one_label.values()]
    assert estimate("5.14-same-label") == pytest.approx(100 * np.mean(raised))


@pytest.mark.parametrize("number", [2, 3, 5, 7])
def test_margins_over_gpt_4(number: int) -> None:
    cells: dict[tuple[str, ...], float] = {}
    for row in published(f"5.{number}"):
        for score in ("ΔPrecision", "ΔRecall"):
            key = (row["model"], row["benchmark"], row["relevant"], score)
            cells[key] = float(row[score].rstrip("†"))
    margins = []
    for (model, *rest), value in cells.items():
        if model != "GPT-4":
            margins.append(value - cells["GPT-4", *rest])
    assert estimate(f"5.{number}-gpt4-lower") == pytest.approx(min(margins))


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
def test_the_effect_of_more_passages(score: str) -> None:
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
    estimate, low, high = numbers_of(f"large-{score}")
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
    assert estimate("large-first") == pytest.approx(mean_over_models(gains))


def test_recall_that_one_form_misses() -> None:
    missed = defaultdict(list)
    for row in lines():
        before, after = row["place"] in row["one form"], row["place"] in row["all"]
        further = len(row["all"] - row["one form"])
        by_chance = 0.0
        if not before and further:
            by_chance = further / (row["passages"] - len(row["one form"]))
        missed[row["model"]].append(100 * (after - before - by_chance))
    assert estimate("large-forms") == pytest.approx(mean_over_models(missed))


def test_judgements_of_experts() -> None:
    path = project.data("facts", "attribution", "support.csv")
    claims = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    citing = [claim for claim in claims if claim["cited"] != "0"]
    assert all(claim["support"] == "Missing" for claim in claims if claim["cited"] == "0")
    full = [claim for claim in citing if claim["support"] == "Complete"]
    others = [claim for claim in citing if claim["support"] != "Complete"]
    assert estimate("support-full") == pytest.approx(100 * len(full) / len(citing))
    assert int(reported()["support-full"]["n"]) == len({claim["question"] for claim in citing})
    right = []
    for side in (full, others):
        right.append(np.mean([claim["truth"] == "Definitely correct" for claim in side]))
    assert estimate("support-right") == pytest.approx(100 * (right[0] - right[1]))
