"""Guards the tables of chapter 5: quality of every mode, modes against each other, scores by position."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from equipoise.answer_modes import MODES
from equipoise.measures.attribution import score_answers
from equipoise.measures.attribution.scores import quality_table
from equipoise_studies.attribution.replica import citations_by_position, compare_modes


def test_two_modes_are_compared_in_both_settings() -> None:
    draws = np.random.default_rng(6).random((4, 15))
    modes = dict(zip((*MODES, "Informed/CF-informed"), draws.tolist(), strict=True))
    rows = [
        (f"q{place}", mode, value)
        for mode, values in modes.items()
        for place, value in enumerate(values)
    ]
    table = pd.DataFrame(rows, columns=["question", "mode", "recall"])
    table = table.assign(relevant_author="LLM", nonrelevant_author="LLM")
    found = compare_modes(table, measures=["recall"])
    order = [*MODES, "Informed/CF-informed"]
    assert found[["mode", "against"]].to_numpy().tolist() == [
        [a, b] for i, a in enumerate(order) for b in order[i + 1 :]
    ]
    for row in found.itertuples():
        theirs = stats.ttest_rel(modes[str(row.mode)], modes[str(row.against)])
        assert row.p_t == pytest.approx(theirs.pvalue)
        assert row.difference == pytest.approx(
            np.mean(modes[str(row.mode)]) - np.mean(modes[str(row.against)])
        )


def test_quality_counts_what_is_wrong() -> None:
    texts = ["[1] Wales", "[2][2] [9]", "[Document 1]", "Wales [5"]
    answers = pd.DataFrame(
        {"question": [*"abab"], "mode": ["Vanilla"] * 2 + ["Informed/CF-informed"] * 2}
    )
    answers = answers.assign(
        answer=texts, documents=5, relevant_author="LLM", nonrelevant_author="LLM"
    )
    answers = answers.assign(relevant=[(1,)] * 4, gold=[("Wales",), (), ("Wales",), ()])
    found = quality_table(score_answers(answers))
    assert found["mode"].tolist() == ["Vanilla", "Informed/CF-informed"]
    expected = {
        "answers": [2, 2],
        "precision": [0.5, 0.0],
        "recall": [0.5, 0.0],
        "exact_match": [1.0, 0.0],
        "with_gold": [1, 1],
        "cited": [1.0, 0.0],
        "cited_relevant": [0.5, 0.0],
        "uncited": [0, 2],
        "out_of_range": [1, 0],
        "repeated": [1, 0],
        "malformed": [0, 2],
    }
    assert found[list(expected)].to_dict("list") == expected


def test_position_takes_each_question_once() -> None:
    table = pd.DataFrame(
        {"question": [*"aabb"], "mode": [*"xyxy"], "relevant": [(1,), (1,), (1,), (2,)]}
    )
    table = table.assign(recall=[1.0, 0.0, 1.0, 0.25])
    found = citations_by_position(table, measures=["recall"], resamples=99, seed=7)
    assert found[["position", "questions", "answers", "value"]].to_numpy().tolist() == [
        [1, 2, 3, 0.75],
        [2, 1, 1, 0.25],
    ]
    assert 0.5 <= found["low"][0] <= 0.75 <= found["high"][0] <= 1
    assert np.isnan(found["low"][1])
    with pytest.raises(ValueError, match="one relevant document"):
        citations_by_position(
            table.assign(relevant=[(1, 2), (), (1,), (1,)]), measures=["recall"], seed=7
        )
    with pytest.raises(ValueError, match="every score must be finite"):
        citations_by_position(table.assign(recall=np.nan), measures=["recall"], seed=7)
