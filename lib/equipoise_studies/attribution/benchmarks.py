"""Questions with one relevant passage each: NQ, and NQ-UTD of Cocktail, or one's own lists.

Lists of one's own come with the passages that a retriever found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from equipoise.loaders.objects import Item, fields_of, read_items
from equipoise.problems import Problems, shown
from equipoise_compendium import registry
from equipoise_studies.collections import cocktail
from equipoise_studies.collections.natural_questions import read_questions
from equipoise_studies.recording import digest

BUILT_IN = {"NQ": "nqoracle", "NQ-UTD": "NQ-UTD of cocktail"}
"""Benchmarks that are at hand, and where they come from."""

QUESTIONS_IN_FILES = {"NQ": 3610, "MS MARCO": 101_093}
"""Questions of DPR's test part of Natural Questions, and of the dev part of MS MARCO QA 2.1."""


@dataclass(frozen=True, eq=False)
class Benchmark:
    """Questions with one relevant passage each, and the passages that a retriever searches.

    ``questions``: columns question, text, gold (tuple of str), relevant (id of a passage), judged
    (ids of the passages that people judged relevant). ``passages``: text by id, as people wrote it.
    ``rewritten``: the same ids, as a model rewrote them; empty where that is still to be done.
    ``retrieved``: where retrievers have run already, by retriever and question the relevant
    passage and then the others; ``places``: likewise, from 0, where the relevant one stood.
    ``listed``: how many questions the file of each retriever holds, usable or not.
    """

    name: str
    questions: pd.DataFrame
    passages: dict[str, str]
    rewritten: dict[str, str]
    retrieved: Mapping[str, Mapping[str, list[str]]] = field(default_factory=dict)
    places: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    listed: Mapping[str, int] = field(default_factory=dict)

    def questions_of(self, retriever: str) -> pd.DataFrame:
        """The questions that can be asked with what a retriever found."""
        if not self.retrieved:
            return self.questions
        return self.questions[self.questions["question"].isin(self.retrieved[retriever])]


# --- at hand --------------------------------------------------------------------------------------


def natural_questions(longest: int | None) -> Benchmark:
    """Natural Questions; gold passages of at most so many words, title included, are searched.

    ``longest``: None for passages of any length.
    """
    table = read_questions(registry.fetch("nqoracle", "qa_data/nq-open-oracle.jsonl.gz"))
    table["titled"] = table["title"] + ". " + table["passage"]
    if longest is not None:
        words = table["titled"].str.split().str.len()
        table = table[words <= longest].reset_index(drop=True)

    # Several questions may share a passage, which has the id of the first of them.
    table["relevant"] = table.groupby("titled", sort=False)["query"].transform("first")
    passages = dict(zip(table["relevant"], table["titled"], strict=True))

    questions = table[["query", "text", "answers", "relevant"]]
    questions = questions.rename(columns={"query": "question", "answers": "gold"})
    questions["judged"] = [()] * len(questions)
    return Benchmark("NQ", questions, passages, {})


def nq_utd(longest: int | None) -> Benchmark:
    """NQ-UTD of Cocktail: the shortest passage judged 2 is the relevant one of a question.

    Other passages of more than ``longest`` words are not searched; None for passages of any length.
    """
    archive = registry.fetch("cocktail", "dataset/nq-utd.zip")
    qrels = cocktail.read_qrels(archive)
    documents = cocktail.read_documents(archive)
    twins = cocktail.read_documents(archive, "model")
    texts = dict(zip(documents["document"], documents["text"], strict=True))
    rewritten = dict(zip(twins["document"], twins["text"], strict=True))
    words = {document: len(text.split()) for document, text in texts.items()}

    # Several passages may answer fully; the shortest is the quickest to read for a small model.
    best = qrels[qrels["level"] == 2].copy()
    best["words"] = best["document"].map(words)
    shortest = best.sort_values(["words", "document"]).groupby("topic")["document"].first()
    judged = qrels[qrels["level"] > 0].groupby("topic")["document"].agg(tuple)

    queries = cocktail.read_queries(archive)
    queries = queries[queries["query"].isin(shortest.index)].reset_index(drop=True)
    questions = pd.DataFrame({"question": queries["query"], "text": queries["text"]})
    questions["gold"] = [(answer,) for answer in queries["answer"]]
    questions["relevant"] = queries["query"].map(shortest)
    questions["judged"] = queries["query"].map(judged)

    passages = texts
    if longest is not None:
        relevant = set(questions["relevant"])
        passages = {}
        for document, text in texts.items():
            if words[document] <= longest or document in relevant:
                passages[document] = text
    return Benchmark("NQ-UTD", questions, passages, rewritten)


LOADERS: Mapping[str, Callable[[int | None], Benchmark]] = {
    "NQ": natural_questions,
    "NQ-UTD": nq_utd,
}
"""How each of `BUILT_IN` is loaded from the upstream files, with passages of at most some words."""


# --- lists of one's own ---------------------------------------------------------------------------


class Form(NamedTuple):
    """Names in JSON Lines of a question, its answers, its passages, and a passage's parts."""

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
"""A form for one's own; that of DPR's retrieval, and Pyserini's; that of MS MARCO QA."""

KEYED = {"ctxs": "contexts", "passages": "passages"}
"""What passages are called where a file is one object keyed by question: Pyserini's own name."""


class ListedQuestion(NamedTuple):
    """A line of a list: a question with its passages, in order, and whether each is relevant."""

    question: str
    text: str
    gold: tuple[str, ...]
    passages: list[tuple[str, bool]]


def given_lists(name: str, files: Mapping[str, Path], form: str, depth: int) -> Benchmark:
    """Questions with passages that retrievers found; ``files``: by retriever.

    Of each retriever those are kept of which it has at least ``depth`` passages, just one of these
    relevant: another retriever may have others. thesis section 5.3.3: "queries that have only one
    relevant document containing the ground-truth answer in their top-k retrieved list".
    """
    texts: dict[str, str] = {}
    gold: dict[str, tuple[str, ...]] = {}
    passages: dict[str, str] = {}
    retrieved: dict[str, dict[str, list[str]]] = {}
    places: dict[str, dict[str, int]] = {}
    listed: dict[str, int] = {}
    for retriever, path in files.items():
        retrieved[retriever] = {}
        places[retriever] = {}
        lines = _read_lists(path, FORMS[form])
        listed[retriever] = len(lines)
        for line in lines:
            texts.setdefault(line.question, line.text)
            gold.setdefault(line.question, line.gold)
            first_passages = line.passages[:depth]
            # Passages have no ids in these files, so a text is named by its digest.
            ids = [digest(text) for text, _ in first_passages]
            relevant = [id_ for id_, (_, mark) in zip(ids, first_passages, strict=True) if mark]
            if len(set(ids)) < depth or len(relevant) != 1:
                continue
            for id_, (text, _) in zip(ids, first_passages, strict=True):
                passages[id_] = text
            places[retriever][line.question] = ids.index(relevant[0])
            ids.remove(relevant[0])
            retrieved[retriever][line.question] = [relevant[0], *ids]

    usable = []
    for question in texts:
        if any(question in lists for lists in retrieved.values()):
            usable.append(question)
    questions = pd.DataFrame({"question": usable})
    questions["text"] = [texts[question] for question in usable]
    questions["gold"] = [gold[question] for question in usable]
    return Benchmark(name, questions, passages, {}, retrieved, places, listed)


def _read_lists(path: Path, form: Form) -> list[ListedQuestion]:
    """The questions of a file, a line each or in one object; refused with every bad one."""
    lines = []
    problems = Problems()
    line_wanted = (
        f"{form.question} (a text), {form.answers} (texts), "
        f"{form.passages} (each with {form.text}, {form.relevant})"
    )
    if form == FORMS["dpr"]:
        line_wanted += "; Pyserini writes texts with --store-raw"
    for item in _items_by_question(read_items(path, problems), form):
        try:
            number = item.line or item.number
            lines.append(_listed_question(item.content, form, number))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            item.wrong(problems, "", shown(f"{type(error).__name__}: {error}"), line_wanted)
    ids = {line.question for line in lines}
    if len(ids) < len(lines):
        problems.add(path, None, "id", "two lines of one id", "each question once")
    problems.refuse()
    return lines


def _items_by_question(items: list[Item], form: Form) -> list[Item]:
    """An item for each question, where a file is one object that holds all of them.

    As Pyserini writes it, an object for each id of a question; or as MS MARCO QA is published, an
    object for each field, of values by the id.
    """
    if len(items) != 1:
        return items
    content = items[0].content
    fields = content.get(form.question)
    if isinstance(fields, dict):
        by_id: dict[str, dict[str, Any]] = {key: {} for key in fields}
        for name, values in content.items():
            for key, value in fields_of(values).items():
                by_id.setdefault(key, {})[name] = value
    elif form.question not in content and all(isinstance(v, dict) for v in content.values()):
        by_id = content
    else:
        return items
    questions = []
    for number, (key, entry) in enumerate(by_id.items(), start=1):
        renamed = {"id": key, **entry}
        pyserini_name = KEYED.get(form.passages, form.passages)
        if pyserini_name in renamed:
            renamed[form.passages] = renamed[pyserini_name]
        questions.append(Item(renamed, items[0].path, None, number))
    return questions


def _listed_question(entry: Any, form: Form, number: int) -> ListedQuestion:
    """One line of a list; ``number`` is its id where it states none."""
    passages = []
    for passage in entry[form.passages]:
        titled = list(filter(None, [passage.get("title"), *_title_and_text(passage[form.text])]))
        relevant = passage[form.relevant]
        if relevant not in (0, 1):
            raise ValueError("a relevance that is neither yes nor no")
        passages.append((_text(". ".join(titled)), bool(relevant)))
    gold = tuple(_text(answer) for answer in entry[form.answers])
    if not gold:
        raise ValueError("no answer")
    question = str(entry.get("id", entry.get("query_id", number)))
    return ListedQuestion(question, _text(entry[form.question]), gold, passages)


def _title_and_text(text: object) -> list[str]:
    """A passage as Pyserini stores it: the title between quotes, an end of line, and the text."""
    words = _text(text)
    title, line_end, rest = words.partition("\n")
    quoted = len(title) > 2 and title[0] == title[-1] == '"'
    if line_end and quoted and rest.strip():
        return [title[1:-1], rest]
    return [words]


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise TypeError(f"{value!r} is no text")
    return value
