"""Questions with one relevant passage each: NQ, and NQ-UTD of Cocktail, or lists of one's own with their passages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from equipoise.loaders.objects import read_items
from equipoise.problems import Problems, shown
from equipoise_compendium import registry
from equipoise_studies.collections import cocktail
from equipoise_studies.collections.natural_questions import read_questions
from equipoise_studies.recording import digest

BUILT_IN = {"NQ": "nqoracle", "NQ-UTD": "NQ-UTD of cocktail"}
"""Benchmarks that are at hand, and where they come from."""


@dataclass(frozen=True, eq=False)
class Benchmark:
    """Questions with one relevant passage each, and the passages that a retriever searches.

    ``questions``: columns question, text, gold (tuple of str), relevant (id of a passage), judged
    (ids of the passages that people judged relevant). ``passages``: text by id, as people wrote it.
    ``rewritten``: the same ids, as a model rewrote them; empty where that is still to be done.
    ``given``: where retrievers have run already, by retriever and question the relevant passage and
    then the others.
    """

    name: str
    questions: pd.DataFrame
    passages: dict[str, str]
    rewritten: dict[str, str]
    given: Mapping[str, Mapping[str, list[str]]] = field(default_factory=dict)


def natural_questions(longest: int) -> Benchmark:
    """Natural Questions; every gold passage of at most so many words, title included, is searched."""
    table = read_questions(registry.fetch("nqoracle", "qa_data/nq-open-oracle.jsonl.gz"))
    table["whole"] = table["title"] + ". " + table["passage"]
    table = table[table["whole"].str.split().str.len() <= longest].reset_index(drop=True)
    table["relevant"] = table.groupby("whole", sort=False)["query"].transform(
        "first"
    )  # one passage, several questions
    questions = table[["query", "text", "answers", "relevant"]].set_axis(
        ["question", "text", "gold", "relevant"], axis=1
    )
    questions["judged"] = [() for _ in range(len(questions))]
    return Benchmark("NQ", questions, dict(zip(table["relevant"], table["whole"], strict=True)), {})


def nq_utd(longest: int) -> Benchmark:
    """NQ-UTD of Cocktail: the shortest passage judged 2 is relevant; others that are longer are not searched."""
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
    keep = {name for name, number in words.items() if number <= longest} | set(
        questions["relevant"]
    )
    return Benchmark(
        "NQ-UTD", questions, {name: texts[name] for name in texts if name in keep}, twins
    )


# --- lists of one's own ---------------------------------------------------------------------------


class Form(NamedTuple):
    """Names in JSON Lines: of the question, its answers, its passages in order, a passage's text, its relevance."""

    question: str
    answers: str
    passages: str
    text: str
    relevant: str


FORMS = {
    "questions": Form("question", "answers", "passages", "text", "relevant"),
    "dpr": Form("question", "answers", "ctxs", "text", "has_answer"),
    "ms-marco-qa": Form("query", "answers", "passages", "passage_text", "is_selected"),
}
"""A form for one's own; that of DPR and Pyserini's retrieval for questions; that of MS MARCO Question Answering."""


def given_lists(name: str, files: Mapping[str, Path], form: str, depth: int) -> Benchmark:
    """Questions with passages that retrievers found, from JSON Lines; ``files``: by the retriever's name.

    Kept are questions of which every retriever has at least ``depth`` passages, just one of these
    relevant.
    """
    texts: dict[str, tuple[str, tuple[str, ...]]] = {}
    passages: dict[str, str] = {}
    given: dict[str, dict[str, list[str]]] = {}
    for retriever, path in files.items():
        given[retriever] = {}
        for question, text, gold, listed in _read_lists(path, FORMS[form]):
            texts.setdefault(question, (text, gold))
            ids = [digest(passage) for passage, _ in listed[:depth]]
            marks = [relevant for _, relevant in listed[:depth]]
            if len(set(ids)) == depth and sum(marks) == 1:
                passages |= dict(zip(ids, (passage for passage, _ in listed), strict=False))
                given[retriever][question] = [ids.pop(marks.index(True)), *ids]
    kept = [question for question in texts if all(question in lists for lists in given.values())]
    columns = {
        "question": kept,
        "text": [texts[question][0] for question in kept],
        "gold": [texts[question][1] for question in kept],
    }
    return Benchmark(name, pd.DataFrame(columns), passages, {}, given)


def _read_lists(
    path: Path, form: Form
) -> list[tuple[str, str, tuple[str, ...], list[tuple[str, bool]]]]:
    """Id, question, answers, and passages with their relevance, of each line."""
    found = list[tuple[str, str, tuple[str, ...], list[tuple[str, bool]]]]()
    wanted = f"{form.question} (a text), {form.answers} (texts), {form.passages} (each with {form.text}, {form.relevant})"
    for item in read_items(path, problems := Problems()):
        entry = item.content
        try:
            passages = [
                (
                    _text(". ".join(filter(None, [one.get("title"), one[form.text]]))),
                    one[form.relevant],
                )
                for one in entry[form.passages]
            ]
            gold = tuple(_text(answer) for answer in entry[form.answers])
            if not gold or any(relevant not in (0, 1) for _, relevant in passages):
                raise ValueError("no answer, or a relevance that is neither yes nor no")
            key = str(entry.get("id", entry.get("query_id", item.line or item.number)))
            found.append(
                (
                    key,
                    _text(entry[form.question]),
                    gold,
                    [(text, bool(mark)) for text, mark in passages],
                )
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            item.wrong(problems, "", shown(f"{type(error).__name__}: {error}"), wanted)
    keys = [key for key, *_ in found]
    if len(set(keys)) < len(keys):
        problems.add(path, None, "id", "two lines of one id", "each question once")
    problems.refuse()
    return found


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise TypeError(f"{value!r} is no text")
    return value
