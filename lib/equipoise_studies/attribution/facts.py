"""Facts of the benchmarks at hand: which passage answers a question, and how long passages are.

Ids, judgements and lengths alone. The texts of questions and passages stay upstream.
"""

from __future__ import annotations

import pandas as pd

from equipoise_compendium import facts
from equipoise_studies.attribution import benchmarks
from equipoise_studies.attribution.public_answers import make_large_models, make_support

QUESTIONS = "questions.csv"
PASSAGES = "passages.csv"
LARGE_MODELS = "large_models.parquet"
SUPPORT = "support.csv"


def make_questions() -> pd.DataFrame:
    """Each question, its relevant passage, and how many passages people judged relevant to it.

    Natural Questions have no judgements beside the gold passage: their number is 0.
    """
    tables = []
    for name, load in benchmarks.LOADERS.items():
        questions = load(None).questions
        table = questions[["question", "relevant"]].copy()
        table["judged"] = questions["judged"].map(len)
        table.insert(0, "benchmark", name)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def make_passages() -> pd.DataFrame:
    """Each passage and its number of words, as a person wrote it, its title included."""
    rows = []
    for name, load in benchmarks.LOADERS.items():
        for document, text in load(None).passages.items():
            rows.append({"benchmark": name, "document": document, "words": len(text.split())})
    return pd.DataFrame(rows)


TABLES: dict[str, facts.MakeTable] = {
    QUESTIONS: make_questions,
    PASSAGES: make_passages,
    LARGE_MODELS: make_large_models,
    SUPPORT: make_support,
}
"""The fact tables, and what makes each of them from the upstream files."""


def questions_at_hand(benchmark: str, longest: int) -> int:
    """How many questions a benchmark has whose relevant passage may be drawn.

    ``longest``: words of the longest passage of Natural Questions that is searched. The relevant
    passages of NQ-UTD are searched however long they are.
    """
    questions = facts.read("attribution", QUESTIONS)
    questions = questions[questions["benchmark"] == benchmark]
    if benchmark == "NQ-UTD":
        return len(questions)
    words = questions["relevant"].map(passage_words(benchmark))
    return int((words <= longest).sum())


def passage_words(benchmark: str) -> dict[str, int]:
    """Number of words of each passage of a benchmark by id; none of a benchmark of one's own."""
    passages = facts.read("attribution", PASSAGES, {"words": int})
    passages = passages[passages["benchmark"] == benchmark]
    return dict(zip(passages["document"], passages["words"], strict=True))
