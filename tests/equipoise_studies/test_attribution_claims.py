"""Claims of chapter 5 by a second, plain implementation, and under labels that mean nothing."""

from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from equipoise.measures.attribution import score_answers
from equipoise_compendium import project
from equipoise_compendium.claims import Evidence, stated, verdict
from equipoise_studies.attribution import derived, findings, from_print
from equipoise_studies.attribution.recorded import recorded_answers
from equipoise_studies.attribution.study import Study

SAMPLE = 500
"""Questions of a benchmark in the thesis (section 5.4)."""


@cache
def scored() -> pd.DataFrame:
    study = Study.read("replica")
    return score_answers(recorded_answers(study, study.answered()))


@cache
def evidence() -> dict[str, Evidence]:
    return findings.evidence(scored())


# --- the same, answer by answer, from the committed files -----------------------------------------

Question = tuple[str, str]  # benchmark and question
SWAPS = ("Informed/CF-informed", "CF-informed/Informed")


@cache
def cited() -> dict[tuple[str, str, str, str, str], dict[str, float]]:
    """Precision and recall by labels, mode, author, benchmark and question; passages by one author.

    Of NQ those of the large record, of NQ-UTD those of the small one, which alone asked it.
    """
    found = {}
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
            found[tuple(line[name] for name in key)] = {
                "precision": hit / len(documents) if documents else 0.0,
                "recall": hit,
            }
    return found


def cab_and_cas(labels: str) -> dict[tuple[str, Question], list[tuple[float, float]]]:
    """By author and question a pair of CAB and CAS in points for each score."""
    found = defaultdict(list)
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
            found[author, (benchmark, question)].append((gap, 50 * moved))
    return found


def plain_interval(
    rows: dict[tuple[str, Question], list[float]], *, lowest: float, by_setting: bool
) -> tuple[float, float, float]:
    """A mean over rows, or over settings first, questions drawn with two invented ones a benchmark.

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
        for extreme in (lowest, 100.0):
            totals.append(([extreme * size for size in rows_each], rows_each))

    def mean(drawn: np.ndarray) -> float:
        sums, counts = (np.array([totals[place][part] for place in drawn]) for part in (0, 1))
        sums, counts = sums.sum(axis=0), counts.sum(axis=0)
        return float(np.mean(sums[counts > 0] / counts[counts > 0]))

    rng = np.random.default_rng(7)
    samples = sorted(mean(rng.choice(len(totals), len(totals))) for _ in range(1000))
    return mean(np.arange(real)), samples[24], samples[974]


def alike(found: Evidence, plain: tuple[float, float, float], reach: float) -> None:
    assert found.estimate == pytest.approx(plain[0], abs=1e-6)
    assert (found.low, found.high) == pytest.approx(plain[1:], abs=reach)


def test_cab_of_the_mixed_mode_again_settings_first() -> None:
    pairs = cab_and_cas("plain")
    rows = {key: [cab for cab, _ in values] for key, values in pairs.items()}
    again = plain_interval(rows, lowest=-100, by_setting=True)
    alike(evidence()["5.5-negligible"], again, 1.0)
    assert evidence()["5.5-negligible"].estimate == pytest.approx(-1.97, abs=0.005)


def test_cab_of_the_placebo_again() -> None:
    pairs = cab_and_cas("placebo")
    rows = {key: [cab for cab, _ in values] for key, values in pairs.items()}
    alike(evidence()["placebo-cab"], plain_interval(rows, lowest=-100, by_setting=False), 0.4)


def test_cas_beside_the_placebo_again() -> None:
    authors, placebo = cab_and_cas("plain"), cab_and_cas("placebo")
    gaps = {}
    for key, pairs in placebo.items():
        gaps[key] = [own[1] - other[1] for own, other in zip(authors[key], pairs, strict=True)]
    alike(evidence()["placebo-cas"], plain_interval(gaps, lowest=-100, by_setting=False), 0.4)


def test_distance_from_zero_again() -> None:
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
    again = (excess(np.arange(len(rows))), samples[24], samples[974])
    alike(evidence()["placebo-bias"], again, 0.4)
    # Which of two labels that mean nothing stands for people makes no difference.
    exchanged = excess_of(placebo_sign=-1)
    assert exchanged == pytest.approx(excess_of(placebo_sign=1))


def excess_of(placebo_sign: int) -> float:
    beside = findings.beside_placebo(differences(), "CAB")
    beside["placebo"] *= placebo_sign
    found = findings.farther_from_zero(beside)
    assert found.estimate is not None
    return found.estimate


def printed(*numbers: str) -> list[dict[str, str]]:
    rows = []
    for number in numbers:
        path = project.data("published", "thesis", f"table-{number}.csv")
        rows += list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    return rows


def test_the_least_bias_of_table_5_3_again() -> None:
    """CAB of each model, with a t interval whose error is the largest that two means allow."""
    share = {}
    for row in printed("5.1", "5.11"):
        for score in ("Precision", "Recall"):
            key = (row["model"], score, row["benchmark"], row["relevant"], row["mode"])
            share[key] = float(row[score].rstrip("†")) / 100
    intervals = {}
    for model in ("Mistral", "Llama3", "GPT-4"):
        for score in ("Precision", "Recall"):
            gaps, squared_errors = [], []
            for benchmark in ("NQ", "MS MARCO"):
                errors = []
                for author in ("Human", "LLM"):
                    told = share[model, score, benchmark, author, "Informed"]
                    swapped = share[model, score, benchmark, author, "CF-informed"]
                    gap = told - swapped
                    most = min(told + swapped, 2 - told - swapped)
                    errors.append(((most - gap**2) / (SAMPLE - 1)) ** 0.5)
                    gaps.append(gap if author == "Human" else -gap)
                squared_errors.append((sum(errors) / 2) ** 2)
            gap = 100 * sum(gaps) / 4
            reach = 100 * 1.964729 * sum(squared_errors) ** 0.5 / 2 + 0.1
            intervals[model, score] = (gap, gap - reach, gap + reach)
    found = from_print.evidence(SAMPLE)["5.3-human"]
    again = tuple(min(ends[place] for ends in intervals.values()) for place in range(3))
    assert (found.estimate, found.low, found.high) == pytest.approx(again, abs=1e-4)


@pytest.mark.parametrize(
    ("claim", "number", "benchmarks"),
    [("5.8-names", "5.8", ["NQ", "MS MARCO"]), ("5.9-retrievers", "5.9", ["NQ"])],
)
def test_the_least_bias_of_a_table_without_means_again(
    claim: str, number: str, benchmarks: list[str]
) -> None:
    """A squared difference of scores is at most 1: no mean is printed that could tell more."""
    intervals = []
    for model in ("Mistral", "Llama3", "GPT-4"):
        for score in ("ΔPrecision", "ΔRecall"):
            means, squared_errors = [], []
            for benchmark in benchmarks:
                cells = []
                for row in printed(number):
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
    found = from_print.evidence(SAMPLE)[claim]
    again = np.min(intervals, axis=0)
    assert (found.estimate, found.low, found.high) == pytest.approx(again, abs=1e-3)
    assert found.n == SAMPLE * len(benchmarks)


def test_the_least_setting_and_the_highest_score_again() -> None:
    swaps = {"5.1": ("Informed", "CF-informed"), "mixed": SWAPS}
    share: dict[tuple[str, ...], float] = {}
    for row in printed("5.1", "5.11", "5.14", "5.15", "5.4"):
        mode = row.get("mode") or f"{row['relevant mode']}/{row['non-relevant mode']}"
        key = (row["benchmark"], row["model"], row["relevant"], row["non-relevant"], mode)
        for score in ("Precision", "Recall"):
            share[*key, score] = float(row[score].rstrip("†")) / 100
    lows = []
    for *setting, mode, score in share:
        for first, second in swaps.values():
            if mode != first:
                continue
            told, swapped = share[*setting, first, score], share[*setting, second, score]
            gap = told - swapped if setting[2] == "Human" else swapped - told
            most = min(told + swapped, 2 - told - swapped)
            error = ((most - gap**2) / (SAMPLE - 1)) ** 0.5
            lows.append((100 * (gap - 1.964729 * error) - 0.1, 100 * gap))
    found = from_print.evidence(SAMPLE)["5.4-labelled-human"]
    assert found.low == pytest.approx(min(lows)[0], abs=1e-3)
    assert found.estimate == pytest.approx(min(gap for _, gap in lows))
    assert str(len(lows)) in found.said

    of_three_modes = []
    for (*_, mode, _), value in share.items():
        if "/" not in mode:
            of_three_modes.append(value)
    highest = max(of_three_modes)
    reach = 196.4729 * (highest * (1 - highest) / (SAMPLE - 1)) ** 0.5 + 0.1
    found = from_print.evidence(SAMPLE)["5.1-fall-short"]
    assert (found.estimate, found.low) == pytest.approx(
        (100 * highest, 100 * highest - reach), abs=1e-3
    )


def test_the_shift_of_recall_again() -> None:
    """What Table 5.2 and the recalls give: the flips of questions, and their balance."""
    flips = {}
    for row in printed("5.2"):
        flips[row["model"], row["benchmark"], row["relevant"]] = float(row["ΔRecall"].rstrip("†"))
    recall = {}
    for row in printed("5.1", "5.11"):
        key = (row["model"], row["benchmark"], row["relevant"])
        recall[*key, row["mode"]] = float(row["Recall"].rstrip("†"))
    lows = []
    for model in ("Mistral", "Llama3", "GPT-4"):
        shifts = []
        for key, changed in flips.items():
            if key[0] == model:
                shift = abs(recall[*key, "Informed"] - recall[*key, "Vanilla"])
                variance = changed / 100 - (shift / 100) ** 2
                shifts.append((shift, 100 * (variance / (SAMPLE - 1)) ** 0.5))
        shift, error = max(shifts)
        lows.append(shift - 2.507230 * error - 0.1)
    assert from_print.evidence(SAMPLE)["5.2-sensitive"].low == pytest.approx(min(lows), abs=1e-3)


def test_the_gap_of_confidence_by_label_again() -> None:
    gap = {}
    for row in printed("5.6", "5.10"):
        key = (row["benchmark"], row["model"], row["relevant"], row["mode"])
        gap[key] = 100 * (float(row["relevant AC"]) - float(row["non-relevant AC"]))
    wider = []
    for benchmark in ("NQ", "MS MARCO"):
        for model in ("Mistral", "Llama3", "GPT-4"):
            by_people = gap[benchmark, model, "Human", "Informed"]
            by_people -= gap[benchmark, model, "Human", "CF-informed"]
            by_model = gap[benchmark, model, "LLM", "CF-informed"]
            by_model -= gap[benchmark, model, "LLM", "Informed"]
            wider.append((by_people + by_model) / 2)
    error = np.std(wider, ddof=1) / 6**0.5
    reach = 2.570582 * error
    found = derived.evidence()["5.6-labels-move"]
    again = (np.mean(wider), np.mean(wider) - reach, np.mean(wider) + reach)
    assert (found.estimate, found.low, found.high) == pytest.approx(again, abs=1e-4)


def test_printed_counts_again() -> None:
    correct: defaultdict[Any, dict[Any, Any]] = defaultdict(dict)
    for row in printed("5.1", "5.4"):
        mode = row.get("mode") or row["relevant mode"]
        if mode != "Vanilla":
            human = (row["relevant"] == "Human") == (mode == "Informed")
            key = (row["model"], row["relevant"], row["non-relevant"])
            correct[key][human] = float(row["EM"])
    higher = sum(scores[True] > scores[False] for scores in correct.values())
    found = derived.evidence()
    assert found["5.1-correctness"].estimate == pytest.approx(100 * higher / len(correct))
    assert found["5.1-correctness-not-consistent"].estimate == len(correct) - higher
    unmarked = 0
    for row in printed("5.3", "5.5"):
        for score in ("ΔPrecision", "ΔRecall"):
            unmarked += not (row[score].startswith("+") and row[score].endswith("†"))
    assert found["5.3-marks"].estimate == unmarked
    by_model, by_mode = defaultdict(list), defaultdict(list)
    for row in printed("5.6", "5.10"):
        above = float(row["relevant AC"]) > float(row["non-relevant AC"])
        by_model[row["model"]].append(above)
        by_mode[row["mode"]].append(above)
    for name, groups in {"5.6-confident": by_model, "5.6-labels": by_mode}.items():
        least = min(np.mean(answers) for answers in groups.values())
        assert found[name].estimate == pytest.approx(100 * least)
    one_label: defaultdict[Any, dict[Any, Any]] = defaultdict(dict)
    for row in printed("5.14", "5.15"):
        if row["relevant mode"] == row["non-relevant mode"] != "Vanilla":
            human = (row["relevant"] == "Human") == (row["relevant mode"] == "Informed")
            key = (row["benchmark"], row["model"], row["relevant"])
            one_label[key][human] = float(row["Recall"].rstrip("†"))
    raised = [scores[True] > scores[False] for scores in one_label.values()]
    assert found["5.14-same-label"].estimate == pytest.approx(100 * np.mean(raised))


# --- chance ---------------------------------------------------------------------------------------


@cache
def differences() -> pd.DataFrame:
    pool = scored()[scored()["model"].isin(findings.above_chance(scored()))]
    return findings.changes(findings.by_label(pool))


def relabelled(quantity: str) -> pd.DataFrame:
    """CAB or CAS with the two kinds of labels exchanged at random, question by question."""
    beside = findings.beside_placebo(differences(), quantity)
    names = beside[findings.UNIT].drop_duplicates().reset_index(drop=True)
    names["exchanged"] = np.random.default_rng(1).random(len(names)) < 0.5
    beside = beside.merge(names)
    authors = beside["authors"].where(~beside["exchanged"], beside["placebo"])
    placebo = beside["placebo"].where(~beside["exchanged"], beside["authors"])
    return beside.assign(authors=authors, placebo=placebo)


def at_random() -> Evidence:
    """The least margin over chance of models whose citations are drawn."""
    rng = np.random.default_rng(1)
    answers = scored()
    hit = rng.random(len(answers)) < answers["cited"] / answers["k"]
    margins = findings.chance(answers.assign(recall=hit.astype(float))).values()
    return min(margins, key=lambda margin: margin.estimate or 0)


def noisy_shifts() -> Evidence:
    """Shifts of recall that are no more than their errors."""
    table = from_print.recall_changes(SAMPLE)
    noise = np.random.default_rng(1).normal(0, table["error"])
    return from_print.least_shift(table.assign(gap=noise), SAMPLE)


NULLS: dict[str, Callable[[], Evidence]] = {
    "thesis/5.1-every-model-above-chance": at_random,
    "thesis/5.2-sensitive": noisy_shifts,
    "thesis/placebo-bias": lambda: findings.farther_from_zero(relabelled("CAB")),
    "thesis/placebo-cas": lambda: findings.more_sensitive(relabelled("CAS")),
}
"""Evidence for claims with a null, where labels mean nothing."""


@pytest.mark.parametrize("name", NULLS)
def test_a_claim_does_not_hold_by_chance(name: str) -> None:
    words = stated("thesis").loc[name.removeprefix("thesis/")]
    assert words["null"]
    assert verdict(NULLS[name](), words["contradicted_if"]) != "holds"


def test_biases_that_are_there_are_found_beside_a_placebo() -> None:
    """Else the test above would show nothing: an effect of 20 points is seen, however it goes."""
    beside = findings.beside_placebo(differences(), "CAB")
    for shift in (20, -20):
        moved = beside.assign(authors=beside["authors"] + shift)
        assert verdict(findings.farther_from_zero(moved), "<= 0") == "holds"
    more = findings.beside_placebo(differences(), "CAS")
    more["authors"] += 20
    assert verdict(findings.more_sensitive(more), "<= 0") == "holds"


@pytest.mark.parametrize("column", ["gap", "error"])
def test_printed_biases_hang_on_their_sign_and_their_error(column: str) -> None:
    """With the modes exchanged in half of the settings, or errors as wide again, nothing holds."""
    table = from_print.towards_people(
        from_print.differences("Informed", "CF-informed", SAMPLE)
    ).reset_index(drop=True)
    factor = np.where(table["relevant"] == "Human", 1, -1) if column == "gap" else 2
    assert verdict(from_print.least_bias(table, SAMPLE, "CAB"), "<= 0") == "holds"
    changed = table.assign(**{column: table[column] * factor})
    assert verdict(from_print.least_bias(changed, SAMPLE, "CAB"), "<= 0") == "undecided"
