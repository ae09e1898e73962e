"""Questions with one relevant passage each, and the passages that a retriever searches: NQ, and NQ-UTD of Cocktail.

References
----------
Kwiatkowski, T. et al. (2019): Natural Questions: A Benchmark for Question Answering Research. TACL 7.
Liu, N. F. et al. (2024): Lost in the Middle: How Language Models Use Long Contexts. TACL 12.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise.files import read_text
from equipoise.loaders import cocktail, registry
from equipoise.problems import Problems

LONGEST = {"NQ": 60, "NQ-UTD": 100}
"""Words of the longest passage that is retrieved, title included: what two processor cores can read."""


@dataclass(frozen=True, eq=False)
class Benchmark:
    """Questions with one relevant passage each, and the passages that a retriever searches.

    ``questions``: columns question, text, gold (tuple of str), relevant (id of a passage), judged (ids of the passages
    that people judged relevant). ``passages``: text by id, as people wrote it. ``rewritten``: the same ids, as a model
    rewrote them; empty where that is still to be done.
    """

    name: str
    questions: pd.DataFrame
    passages: dict[str, str]
    rewritten: dict[str, str]


def _row(content: Any) -> tuple[str, tuple[str, ...], str, str] | None:
    """Question, answers, title and text of a line; None where it is something else."""
    match content:
        case {
            "question": str(text),
            "answers": [_, *_] as answers,
            "ctxs": [{"title": str(title), "text": str(passage)}],
        }:
            sound = text.strip() and all(isinstance(answer, str) for answer in answers)
            return (text, tuple(answers), title, passage) if sound else None
    return None


def read_questions(path: str | Path) -> pd.DataFrame:
    """Read Natural Questions with their gold passages: a gzip archive with one JSON object a line.

    Columns query, text, answers, title, passage, in file order; ``query`` is the number of the line, from ``nq-0001``,
    ``answers`` a tuple of str.
    """
    problems, rows = Problems(), []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            found = _row(json.loads(line))
        except (ValueError, RecursionError):
            found = None
        if found is None:
            wanted = "an object with question, answers (texts, at least one) and ctxs, one passage with title and text"
            problems.add(path, number, None, "another line", wanted)
        else:
            rows.append((f"nq-{number:04d}", *found))
    if not rows and not problems:
        problems.add(path, None, None, "an empty file", "one JSON object a line")
    problems.refuse()
    table = pd.DataFrame(rows, columns=["query", "text", "answers", "title", "passage"])
    return table.astype(dict.fromkeys(["query", "text", "title", "passage"], "str"))


def _natural_questions() -> Benchmark:
    table = read_questions(registry.fetch("nqoracle", "qa_data/nq-open-oracle.jsonl.gz"))
    table["whole"] = table["title"] + ". " + table["passage"]
    table = table[table["whole"].str.split().str.len() <= LONGEST["NQ"]].reset_index(drop=True)
    table["relevant"] = table.groupby("whole", sort=False)["query"].transform("first")  # one passage, several questions
    questions = table[["query", "text", "answers", "relevant"]].set_axis(
        ["question", "text", "gold", "relevant"], axis=1
    )
    questions["judged"] = [() for _ in range(len(questions))]
    return Benchmark("NQ", questions, dict(zip(table["relevant"], table["whole"], strict=True)), {})


def _nq_utd() -> Benchmark:
    archive = registry.fetch("cocktail", "dataset/nq-utd.zip")
    queries, qrels = cocktail.read_queries(archive), cocktail.read_qrels(archive)
    texts, twins = (
        dict(zip(table["document"], table["text"], strict=True))
        for table in (cocktail.read_documents(archive), cocktail.read_documents(archive, "model"))
    )
    words = {name: len(text.split()) for name, text in texts.items()}
    best = qrels[qrels["level"] == 2].assign(words=lambda rows: rows["document"].map(words))
    shortest = best.sort_values(["words", "document"]).groupby("topic")["document"].first()
    judged = qrels[qrels["level"] > 0].groupby("topic")["document"].agg(tuple)
    asked = queries[queries["query"].isin(shortest.index)]
    questions = pd.DataFrame(
        {
            "question": asked["query"],
            "text": asked["text"],
            "gold": [(answer,) for answer in asked["answer"]],
            "relevant": asked["query"].map(shortest),
            "judged": asked["query"].map(judged),
        }
    ).reset_index(drop=True)
    keep = {name for name, number in words.items() if number <= LONGEST["NQ-UTD"]} | set(questions["relevant"])
    return Benchmark("NQ-UTD", questions, {name: texts[name] for name in texts if name in keep}, twins)


BENCHMARKS: dict[str, Callable[[], Benchmark]] = {"NQ": _natural_questions, "NQ-UTD": _nq_utd}
"""Natural Questions, with every gold passage of at most 60 words as collection; NQ-UTD of Cocktail, to 100 words."""


def benchmark(name: str) -> Benchmark:
    """Read one of `BENCHMARKS`, its questions in file order.

    NQ: the gold passage is relevant. NQ-UTD: the shortest passage judged 2 is relevant.
    """
    return BENCHMARKS[name]()
