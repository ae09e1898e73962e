"""Guards the tables of chapter 5: quality of every mode, and how they stand beside the print."""

import pandas as pd

from equipoise.measures.attribution import quality_table, score_answers


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
