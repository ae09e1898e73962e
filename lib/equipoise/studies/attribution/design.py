"""The design of the replica: what is asked, in which mode, with which labels, from which passages in which order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from equipoise import project
from equipoise.answer_modes import MODES, mode_parts
from equipoise.arrays import Integers
from equipoise.files import read_columns
from equipoise.measures.attribution.bias import AUTHORS
from equipoise.measures.attribution.correctness import exact_match
from equipoise.studies.attribution.answering import FIELDS, Task
from equipoise.studies.attribution.authorship import LabelSet, read_label_sets, stable_generator
from equipoise.studies.attribution.benchmarks import Benchmark, benchmark
from equipoise.studies.attribution.prompts import Messages, Passage, read_prompts
from equipoise.studies.recording import read

SEED = 20250516
FOLDER = ("outputs", "attribution")
REWRITTEN = 4
"""Non-relevant passages of a question that have a rewritten twin."""

RETRIEVERS = ("BM25", "all-MiniLM", "SPLADE-tiny")
ANSWER_FILES = (
    *(("prompts", name) for name in ("instruction.txt", "question.txt", "examples.yaml")),
    ("attributes", "author_labels.yaml"),
    *((*FOLDER, name) for name in ("inputs.csv", "names.jsonl", "paraphrases.jsonl")),
)
"""Files below data/ that a prompt for an answer is made of."""

INPUTS = ["benchmark", "retriever", "question", "rank", "document"]
_NAME = re.compile(r"\b([A-Z][a-z]+),?[ ]+([A-Z][a-z]+)\b")


# --- settings -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """One setting under which every question is answered.

    ``labels``: a set of labels; "none" where no label is shown. ``relevant_author``, ``nonrelevant_author``: who wrote
    the passages that are shown: "Human" or "LLM".
    """

    labels: str
    mode: str
    relevant_author: str
    nonrelevant_author: str
    documents: int = 5
    retriever: str = "BM25"


_SAME = [(author, author) for author in AUTHORS]
_OTHER = [("LLM", "Human"), ("Human", "LLM")]
_SWAPS = ("Informed/CF-informed", "CF-informed/Informed")


def _cells(labels: str, modes: Sequence[str], pairs: Sequence[tuple[str, str]], **setting: Any) -> list[Cell]:
    return [Cell(labels, mode, *pair, **setting) for pair, mode in product(pairs, modes)]


def _blended(labels: str, pairs: Sequence[tuple[str, str]], **setting: Any) -> list[Cell]:
    return [*_cells("none", MODES[:1], pairs, **setting), *_cells(labels, _SWAPS, pairs, **setting)]


CELLS: dict[str, list[Cell]] = {
    "modes": [*_cells("none", MODES[:1], _OTHER), *_cells("plain", MODES[1:], _OTHER)],
    "mixed": _blended("plain", _SAME),
    "names": _blended("names", _SAME),
    "placebo": _blended("placebo", _SAME[:1]),
    "same label": _cells("plain", MODES[1:], _SAME),
    "retrievers": [cell for name in RETRIEVERS[1:] for cell in _blended("names", _SAME[:1], retriever=name)],
    "documents": [cell for number in (2, 8, 10) for cell in _blended("names", _SAME[:1], documents=number)],
}
"""Experiments: the settings of thesis Tables 5.1 (modes), 5.4 and 5.14 (mixed, same label), 5.7 (names), 5.9
(retrievers), Figure 5.9 (documents), and the placebo, which is ours."""

EXPERIMENTS: Mapping[str, Sequence[str]] = {
    **{name: [name] for name in ("modes", "mixed", "names", "placebo")},
    **{name: ["names", name] for name in ("retrievers", "documents")},
}
"""Tables of CAS and CAB, each with the experiments whose answers it takes."""


def of_experiment(answers: pd.DataFrame, *experiments: str) -> pd.DataFrame:
    """Answers in one of the settings of some experiments, keys of `CELLS`, in their order."""
    wanted = pd.DataFrame({cell for name in experiments for cell in CELLS[name]}).rename(columns={"documents": "k"})
    return answers.merge(wanted, "inner")


# --- passages and labels ------------------------------------------------------------------------------------------


def inputs(name: str) -> pd.DataFrame:
    """Recorded inputs of a benchmark: columns benchmark, retriever, question, rank, document.

    Questions in the order in which they were drawn; rank 0 is the relevant passage, from rank 1 on the retrieved ones
    that are neither judged relevant nor hold a gold answer.
    """
    table = read_columns(project.data(*FOLDER, "inputs.csv"), INPUTS)
    table["rank"] = table["rank"].astype("int64")
    return table[table["benchmark"] == name].reset_index(drop=True)


def balanced_places(questions: int, documents: int, rng: np.random.Generator) -> Integers:
    """Places of the relevant passages, from 0, shaped (questions,): at random, each place as often as any other.

    In any run of `documents` questions from a multiple of it on, each place comes once.
    """
    rounds = -(-questions // documents)
    return np.concatenate([rng.permutation(documents) for _ in range(rounds)])[:questions]


def placed(relevant: str, others: Sequence[str], place: int) -> list[str]:
    """The relevant passage at its place, from 0, among the others, which keep their order."""
    return [*others[:place], relevant, *others[place:]]


def label_sets() -> dict[str, LabelSet]:
    """Sets of labels, with the recorded pool of names: two capitalised words each, every name once."""
    _, lines = read(project.data(*FOLDER, "names.jsonl"), "answer", FIELDS, ())
    pool = list(dict.fromkeys(" ".join(name) for name in _NAME.findall(lines[0]["answer"])))
    return read_label_sets(project.data("attributes", "author_labels.yaml"), pool)


def paraphrases(name: str) -> dict[str, str]:
    """Recorded paraphrases of the passages of a benchmark by id, without those that ran into the limit of tokens."""
    key = ("benchmark", "document")
    _, lines = read(project.data(*FOLDER, "paraphrases.jsonl"), "answer", FIELDS, key)
    whole = [line for line in lines if line["benchmark"] == name and line["finish"] == "stop"]
    return {line["document"]: line["answer"].strip() for line in whole}


def first_passages(table: pd.DataFrame) -> pd.DataFrame:
    """The relevant passage and the first `REWRITTEN` others of BM25, for every question."""
    return table[(table["retriever"] == RETRIEVERS[0]) & (table["rank"] <= REWRITTEN)]


def usable(held: Benchmark, rewritten: dict[str, str], table: pd.DataFrame) -> list[str]:
    """Questions whose passages keep their part when they are rewritten, in the order in which they were drawn.

    Of the first `REWRITTEN` + 1 passages of BM25 all have a twin in ``rewritten``, a text by id, the relevant one still
    holds the answer if it did, and no other has come to hold it.

    The thesis had two people check this (appendix 5.A).
    """
    gold = dict(zip(held.questions["question"], held.questions["gold"], strict=True))
    kept = []
    for question, rows in first_passages(table).groupby("question", sort=False):
        relevant, *others = rows.sort_values("rank")["document"]
        if not {relevant, *others} <= rewritten.keys():
            continue
        before, after, *gained = (
            exact_match(text, gold[str(question)])
            for text in (held.passages[relevant], *(rewritten[document] for document in (relevant, *others)))
        )
        if after >= before and not any(gained):
            kept.append(str(question))
    return kept


def tasks(name: str, cells: Sequence[Cell], most: int, first: int = 0) -> list[Task]:
    """Answers that are wanted of a benchmark, cell after cell, from question ``first`` up to ``most``.

    A question has its passages in the same order in every cell with as many documents; the relevant passage stands at
    each place equally often.
    """
    held, table, prompts, sets = benchmark(name), inputs(name), read_prompts(), label_sets()
    rewritten = held.rewritten or paraphrases(name)
    questions = usable(held, rewritten, table)
    about = held.questions.set_index("question")[["text", "gold"]].to_dict("index")
    ranked = {
        key: rows.sort_values("rank")["document"].tolist() for key, rows in table.groupby(["retriever", "question"])
    }

    def messages(cell: Cell, question: str, shown: Sequence[str], relevant: str) -> Messages:
        labels, passages = sets.get(cell.labels), []
        parts = [*zip((cell.relevant_author, cell.nonrelevant_author), mode_parts(cell.mode), strict=True)]
        for document in shown:
            author, mode = parts[0 if document == relevant else 1]
            text = held.passages[document] if author == "Human" else rewritten[document]
            label = labels.label(mode, author, SEED, question, document) if labels else None
            passages.append(Passage(text, label))
        asked = str(about[question]["text"])
        if labels is None:
            return prompts.answer(asked, passages)
        told, groups = partial(labels.label, "Informed"), list(labels.groups)
        return prompts.answer(asked, passages, labels.notice, lambda group, text: told(groups[group], SEED, text))

    wanted = []
    for cell in cells:
        places = balanced_places(len(questions), cell.documents, stable_generator(SEED, name, str(cell.documents)))
        for question, place in list(zip(questions, places.tolist(), strict=True))[first:most]:
            relevant, *others = ranked[cell.retriever, question][: cell.documents]
            shown = tuple(placed(relevant, others, place))
            setting = asdict(cell) | {"benchmark": name, "question": question}
            setting["k"] = setting.pop("documents")
            ask = partial(messages, cell, question, shown, relevant)
            wanted.append(Task(setting, shown, (place + 1,), ask, about[question]))
    return wanted
