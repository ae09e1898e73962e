"""Scores and bias of a table of answers against plain loops, written as Eqs. 5.1 to 5.3 read.

Each pair runs in one session on one machine; what counts is the ratio.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from itertools import product
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import precision_score, recall_score

from equipoise.answer_modes import MODES
from equipoise.measures.attribution import bias_table, score_answers

pytestmark = pytest.mark.benchmark(timer=process_time)
QUESTIONS, SHOWN, RESAMPLES = 500, 10, 999
AUTHORS = [("Human", "LLM"), ("LLM", "Human")]


def best_of(work: Callable[[], Any], rounds: int = 3) -> float:
    """Shortest processor time of a few calls, in seconds."""
    took = []
    for _ in range(rounds):
        begun = process_time()
        work()
        took.append(process_time() - begun)
    return min(took)


def recording(models: int) -> pd.DataFrame:
    """As many answers as the thesis has for a benchmark: 500 questions, 3 modes, 2 settings."""
    rng = np.random.default_rng(1)
    keys = list(product(range(models), AUTHORS, MODES, range(QUESTIONS)))
    cited = rng.integers(1, SHOWN + 1, (len(keys), 3))
    prose = "The new film was made in the Bay of Plenty, on the North Island, in early 2015"
    rows = [
        (
            f"m{model}",
            *authors,
            mode,
            f"q{question}",
            f"{prose} [{a}][{b}]. It opened a year later [{c}].",
        )
        for (model, authors, mode, question), (a, b, c) in zip(keys, cited.tolist(), strict=True)
    ]
    names = ["model", "relevant_author", "nonrelevant_author", "mode", "question", "answer"]
    table = pd.DataFrame(rows, columns=names).assign(documents=SHOWN)
    return table.assign(
        relevant=[(number,) for number in rng.integers(1, SHOWN + 1, len(rows)).tolist()]
    )


def plain_scores(answers: pd.DataFrame) -> list[tuple[float, float]]:
    """Precision and recall by scikit-learn, one answer after another."""
    found = []
    for row in answers.itertuples():
        cited = {int(number) for number in re.findall(r"\[(\d+)\]", str(row.answer))}
        truth = [document in row.relevant for document in range(1, SHOWN + 1)]
        said = [document in cited for document in range(1, SHOWN + 1)]
        found.append(
            (
                precision_score(truth, said, zero_division=0),
                recall_score(truth, said, zero_division=0),
            )
        )
    return found


def bare_scores(answers: pd.DataFrame) -> list[tuple[float, float]]:
    """Precision and recall by sets: no ranges, none out of range, repeated or odd; unchecked."""
    found = []
    for answer, relevant in zip(answers["answer"], answers["relevant"], strict=True):
        cited = set(map(int, re.findall(r"\[(\d+)\]", answer)))
        hits = len(cited.intersection(relevant))
        found.append((hits / len(cited) if cited else 0.0, hits / len(relevant)))
    return found


def plain_bias(
    table: pd.DataFrame, resamples: int
) -> dict[tuple[str, ...], tuple[float, float, float]]:
    """CAS and CAB, each question in turn, with a bootstrap interval and a randomisation test."""
    draw = random.Random(1)  # noqa: S311 - a benchmark
    found: dict[tuple[str, ...], tuple[float, float, float]] = {}
    for measure in ("precision", "recall"):
        held = {
            (row.model, row.relevant_author, row.mode, row.question): getattr(row, measure)
            for row in table.itertuples()
        }
        for model, author in sorted({key[:2] for key in held}):
            for quantity, other in (("CAS", "Vanilla"), ("CAB", "CF-informed")):
                gaps = [
                    held[model, author, "Informed", f"q{place}"]
                    - held[model, author, other, f"q{place}"]
                    for place in range(QUESTIONS)
                ]
                omega = 1 if author == "Human" else -1
                values = [abs(gap) if quantity == "CAS" else omega * gap for gap in gaps]
                means = sorted(
                    sum(draw.choices(values, k=QUESTIONS)) / QUESTIONS for _ in range(resamples)
                )
                total = abs(sum(gaps))
                beyond = 0
                for _ in range(resamples):
                    beyond += (
                        abs(sum(gap if draw.random() < 0.5 else -gap for gap in gaps)) >= total
                    )
                low = means[int(0.025 * resamples)]
                found[model, author, measure, quantity] = (
                    sum(values) / QUESTIONS,
                    low,
                    (beyond + 1) / (resamples + 1),
                )
    return found


def test_scores_of_answers_against_scikit_learn_one_by_one(benchmark: Any) -> None:
    answers = recording(4)
    scored = benchmark.pedantic(lambda: score_answers(answers), rounds=5, warmup_rounds=1)
    few = answers[:200]
    assert scored[["precision", "recall"]][:200].to_numpy() == pytest.approx(
        np.array(plain_scores(few))
    )
    bare = best_of(lambda: bare_scores(answers))
    assert scored[["precision", "recall"]].to_numpy() == pytest.approx(
        np.array(bare_scores(answers))
    )
    print(
        "\na bare loop over sets of numbers, without any check: "
        f"{benchmark.stats.stats.min / bare:.1f} times as fast"
    )
    ratio = best_of(lambda: plain_scores(few)) * len(answers) / len(few) / benchmark.stats.stats.min
    benchmark.extra_info["times as fast as scikit-learn, answer by answer"] = round(ratio, 1)
    print(
        f"\nscores of {len(answers)} answers: {ratio:.0f} times as fast as scikit-learn, "
        "answer by answer"
    )
    assert ratio > 5


def test_bias_of_a_table_against_a_loop_over_questions(benchmark: Any) -> None:
    table = score_answers(recording(1))

    def ours() -> pd.DataFrame:
        return bias_table(table, ["model"], resamples=RESAMPLES, seed=1)

    found = benchmark.pedantic(ours, rounds=5, warmup_rounds=1)
    plain = plain_bias(table, RESAMPLES)
    for row in found.itertuples():
        value, low, p = plain[
            str(row.model), str(row.relevant_author), str(row.measure), str(row.quantity)
        ]
        assert row.value == pytest.approx(value)
        assert row.low == pytest.approx(low, abs=0.02)
        assert row.p_permutation == pytest.approx(p, abs=0.15)
    ratio = best_of(lambda: plain_bias(table, RESAMPLES // 10), 2) * 10 / benchmark.stats.stats.min
    benchmark.extra_info["times as fast as a loop over questions"] = round(ratio, 1)
    print(f"\nbias of {len(table)} answers: {ratio:.1f} times as fast as a loop over questions")
    assert ratio > 10
