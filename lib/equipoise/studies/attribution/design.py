"""The design of the replica: what is asked, in which mode, with which labels, from which passages in which order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product, zip_longest
from pathlib import Path
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
from equipoise.studies.attribution.benchmarks import BENCHMARKS, Benchmark, benchmark
from equipoise.studies.attribution.prompts import Messages, Passage, read_prompts
from equipoise.studies.recording import read

SEED = 20250516
FOLDER = ("outputs", "attribution")
REWRITTEN = 4
"""Non-relevant passages of a question that have a rewritten twin."""

RETRIEVERS = ("BM25", "all-MiniLM", "SPLADE-tiny")
INPUTS = ["benchmark", "retriever", "question", "rank", "document"]
_NAME = re.compile(r"\b([A-Z][a-z]+),?[ ]+([A-Z][a-z]+)\b")


# --- settings -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """Questions drawn once, with what is recorded of them in a folder below data/.

    ``questions``: most that are drawn of each benchmark. ``twins``: every question needs passages that keep their part
    when they are rewritten; otherwise only those that are asked with rewritten ones do.
    """

    folder: tuple[str, ...]
    benchmarks: tuple[str, ...]
    retrievers: tuple[str, ...]
    questions: int
    twins: bool

    def file(self, name: str) -> Path:
        """One of its recorded files."""
        return project.data(*self.folder, name)

    def answer_files(self) -> list[Path]:
        """What a prompt for an answer is made of."""
        prompts = [project.data("prompts", name) for name in ("instruction.txt", "question.txt", "examples.yaml")]
        names = project.data(*FOLDER, "names.jsonl")
        recorded = [self.file("inputs.csv"), names, self.file("paraphrases.jsonl")]
        return [*prompts, project.data("attributes", "author_labels.yaml"), *recorded]


SAMPLES = {
    "small": Sample(FOLDER, tuple(BENCHMARKS), RETRIEVERS, 120, True),
    "large": Sample((*FOLDER, "large"), ("NQ",), RETRIEVERS[:1], 1000, False),
}
"""Small: many settings, few questions. Large: few settings, so that a difference as large as a printed one shows."""


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


def inputs(name: str, sample: Sample) -> pd.DataFrame:
    """Recorded inputs of a benchmark: columns benchmark, retriever, question, rank, document.

    Questions in the order in which they were drawn; rank 0 is the relevant passage, from rank 1 on the retrieved ones
    that are neither judged relevant nor hold a gold answer.
    """
    table = read_columns(sample.file("inputs.csv"), INPUTS)
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


def paraphrases(name: str, sample: Sample) -> dict[str, str]:
    """Recorded paraphrases of the passages of a benchmark by id, without those that ran into the limit of tokens."""
    key = ("benchmark", "document")
    _, lines = read(sample.file("paraphrases.jsonl"), "answer", FIELDS, key)
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


def tasks(name: str, cells: Sequence[Cell], most: int, first: int, sample: Sample) -> list[Task]:
    """Answers that are wanted of a benchmark, from question ``first`` of each cell up to ``most``.

    They go question after question, so that a record that is cut off has its cells of one size. A question has its
    passages in the same order in every cell with as many documents; the relevant passage stands at each place equally
    often.
    """
    held, table, prompts, sets = benchmark(name), inputs(name, sample), read_prompts(), label_sets()
    rewritten = held.rewritten or paraphrases(name, sample)
    kept = usable(held, rewritten, table)
    drawn = kept if sample.twins else table["question"].unique().tolist()
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

    def asked_in(cell: Cell) -> list[Task]:
        rng, wanted = stable_generator(SEED, name, str(cell.documents)), []
        places = dict(zip(drawn, balanced_places(len(drawn), cell.documents, rng).tolist(), strict=True))
        for question in (drawn if (cell.relevant_author, cell.nonrelevant_author) == _SAME[0] else kept)[first:most]:
            relevant, *others = ranked[cell.retriever, question][: cell.documents]
            shown = tuple(placed(relevant, others, places[question]))
            setting = asdict(cell) | {"benchmark": name, "question": question}
            setting["k"] = setting.pop("documents")
            ask = partial(messages, cell, question, shown, relevant)
            wanted.append(Task(setting, shown, (places[question] + 1,), ask, about[question]))
        return wanted

    return [task for tasks in zip_longest(*map(asked_in, cells)) for task in tasks if task]
