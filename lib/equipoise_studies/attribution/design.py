"""The design of the replica: what is asked, in which mode, with which labels, from which passages in which order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from equipoise.answer_modes import MODES, mode_parts
from equipoise.arrays import Integers
from equipoise.files import read_columns
from equipoise.measures.attribution.bias import AUTHORS
from equipoise.measures.attribution.correctness import exact_match
from equipoise.problems import InputError, Problem, refused
from equipoise_studies.attribution.answering import FIELDS, Task
from equipoise_studies.attribution.authorship import LabelSet, stable_generator
from equipoise_studies.attribution.benchmarks import Benchmark
from equipoise_studies.attribution.prompts import Messages, Passage
from equipoise_studies.recording import read

if TYPE_CHECKING:
    from equipoise_studies.attribution.study import Asked, Sample, Study

INPUTS = ["benchmark", "retriever", "question", "rank", "document"]


# --- settings -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """One setting under which every question is answered.

    ``labels``: a set of labels; "none" where no label is shown. ``relevant_author``,
    ``nonrelevant_author``: who wrote the passages that are shown: "Human" or "LLM". ``k``: passages
    shown.
    """

    labels: str
    mode: str
    relevant_author: str
    nonrelevant_author: str
    k: int
    retriever: str

    @property
    def authors(self) -> tuple[str, str]:
        """Who wrote the relevant passage and the others."""
        return self.relevant_author, self.nonrelevant_author


_SAME = [(author, author) for author in AUTHORS]
_OTHER = [("LLM", "Human"), ("Human", "LLM")]
_SWAPS = ("Informed/CF-informed", "CF-informed/Informed")
_LABELS = {
    "modes": "plain",
    "mixed": "plain",
    "same label": "plain",
    "retrievers": "names",
    "documents": "names",
}

CELLS = ("modes", "mixed", "names", "placebo", "same label", "retrievers", "documents", "vanilla")
"""Experiments: the settings of thesis Tables 5.1 (modes), 5.4 and 5.14 (mixed, same label), 5.7 (names), 5.9
(retrievers), Figure 5.9 (documents), the placebo, which is ours, and Vanilla alone. Any other set of labels (of other
authors, or with a sentence against bias) is an experiment by its name, on passages by people, as the placebo is."""

EXPERIMENTS: Mapping[str, Sequence[str]] = {
    **{name: [name] for name in ("modes", "mixed", "names", "placebo")},
    **{name: ["names", name] for name in ("retrievers", "documents")},
}
"""Tables of CAS and CAB, each with the experiments whose answers it takes."""


def cells_of(
    name: str, found_by: Sequence[str], documents: int, cut_offs: Sequence[int]
) -> list[Cell]:
    """The settings of an experiment; ``found_by``: retrievers, the usual one first; ``cut_offs``: other values of k."""
    pairs = {"modes": _OTHER, "mixed": _SAME, "names": _SAME, "same label": _SAME}.get(
        name, _SAME[:1]
    )
    modes: Sequence[str] = {"modes": MODES[1:], "same label": MODES[1:], "vanilla": ()}.get(
        name, _SWAPS
    )
    told = [
        *([] if name == "same label" else [("none", MODES[0])]),
        *((_LABELS.get(name, name), mode) for mode in modes),
    ]
    usual = product(found_by[:1], [documents])
    settings = {
        "retrievers": product(found_by[1:], [documents]),
        "documents": product(found_by[:1], cut_offs),
    }
    return [
        Cell(*label_and_mode, *pair, k, retriever)
        for retriever, k in settings.get(name, usual)
        for pair, label_and_mode in product(pairs, told)
    ]


def with_experiments(answers: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Answers with a column ``experiments``: those of the study in whose settings one is, a tuple."""
    names = [*CELLS, *(name for name in study.experiments() if name not in CELLS)]
    held = {
        (of, cell): [n for n in names if cell in study.cells(of, n)]
        for of in study.benchmarks
        for cell in study.cells(of, *names)
    }
    keys = ["labels", "mode", "relevant_author", "nonrelevant_author", "k", "retriever"]
    each = zip(answers["benchmark"], answers[keys].itertuples(index=False, name=None), strict=True)
    return answers.assign(experiments=[tuple(held.get((of, Cell(*key)), ())) for of, key in each])


def of_experiment(answers: pd.DataFrame, *experiments: str) -> pd.DataFrame:
    """Answers in one of the settings of some experiments, in their order."""
    within = (
        answers["experiments"].map(lambda held: not set(held).isdisjoint(experiments)).astype(bool)
    )
    return answers[within].reset_index(drop=True)


def recorded_experiments(answers: pd.DataFrame) -> list[str]:
    """Names of the experiments that answers are of, those of the thesis first."""
    recorded = set()
    for experiments in answers["experiments"]:
        recorded.update(experiments)
    further = []
    for experiments in answers["experiments"].drop_duplicates():
        further += [name for name in experiments if name not in (*CELLS, *further)]
    return [name for name in CELLS if name in recorded] + further


def need_experiments(answers: pd.DataFrame, *names: str) -> None:
    """Refuse answers among which an experiment was recorded without any label, or not at all."""
    labelled = answers[answers["labels"] != "none"]
    lacking = sorted(set(names) - set(recorded_experiments(labelled)), key=names.index)
    if lacking:
        raise refused(
            "the study's records",
            f"no answers of {', '.join(lacking)}",
            "every experiment of the thesis (equipoise score attribution takes any answers)",
        )


def tables_of(answers: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Answers of every table of CAS and CAB, those of `EXPERIMENTS` first."""
    held = dict.fromkeys(
        name for names in answers["experiments"] for name in names if name not in CELLS
    )
    parts = {**EXPERIMENTS, **{name: [name] for name in held}}
    return {name: of_experiment(answers, *several) for name, several in parts.items()}


# --- passages and labels --------------------------------------------------------------------------


def inputs(name: str, folder: Path) -> pd.DataFrame:
    """Recorded inputs of a benchmark: columns benchmark, retriever, question, rank, document.

    Questions in the order in which they were drawn; rank 0 is the relevant passage, from rank 1 on
    the retrieved ones that are neither judged relevant nor hold a gold answer.
    """
    table = read_columns(folder / "inputs.csv", INPUTS)
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


def paraphrases(name: str, folder: Path) -> dict[str, str]:
    """Recorded paraphrases of the passages of a benchmark by id, without those that ran into the limit of tokens."""
    key = ("benchmark", "document")
    path = folder / "paraphrases.jsonl"
    lines = read(path, "answer", FIELDS, key)[1] if path.is_file() else []
    whole = [line for line in lines if line["benchmark"] == name and line["finish"] == "stop"]
    return {line["document"]: line["answer"].strip() for line in whole}


def first_passages(table: pd.DataFrame, documents: int) -> pd.DataFrame:
    """The relevant passage and the others that are usually shown, found by the usual retriever, for every question."""
    return table[(table["retriever"] == table["retriever"].iloc[0]) & (table["rank"] < documents)]


def usable(
    held: Benchmark, rewritten: dict[str, str], first: pd.DataFrame, checked: bool
) -> list[str]:
    """Questions whose passages keep their part when they are rewritten, in the order in which they were drawn.

    All of the ``first`` passages have a twin in ``rewritten``, a text by id; where this is to be
    ``checked``, the relevant one still holds the answer if it did, and no other has come to hold
    it.

    The thesis had two people check this (appendix 5.A).
    """
    gold = dict(zip(held.questions["question"], held.questions["gold"], strict=True))
    kept = []
    for question, rows in first.groupby("question", sort=False):
        relevant, *others = rows.sort_values("rank")["document"]
        if not {relevant, *others} <= rewritten.keys():
            continue
        before, after, *gained = (
            exact_match(text, gold[str(question)])
            for text in (
                held.passages[relevant],
                *(rewritten[document] for document in (relevant, *others)),
            )
        )
        if not checked or (after >= before and not any(gained)):
            kept.append(str(question))
    return kept


class _Asking:
    """What is asked of one benchmark."""

    def __init__(self, study: Study, sample: Sample, name: str) -> None:
        self.study, self.name, self.held, table = (
            study,
            name,
            study.load(name),
            inputs(name, sample.folder),
        )
        self.rewritten = self.held.rewritten or paraphrases(name, sample.folder)
        first = first_passages(table, study.documents)
        self.kept = usable(self.held, self.rewritten, first, sample.checked)
        self.drawn = self.kept if sample.twins else table["question"].unique().tolist()
        self.ranked = {
            key: rows.sort_values("rank")["document"].tolist()
            for key, rows in table.groupby(["retriever", "question"])
        }
        self.about = self.held.questions.set_index("question")[["text", "gold"]].to_dict("index")
        self.prompts, self.sets = study.wording(), study.label_sets()

    def messages(self, cell: Cell, question: str, shown: Sequence[str], relevant: str) -> Messages:
        """The prompt of a question in a cell."""
        labels, passages, seed = self.sets.get(cell.labels), [], self.study.seed
        parts = [*zip(cell.authors, mode_parts(cell.mode), strict=True)]
        for document in shown:
            author, mode = parts[0 if document == relevant else 1]
            text = (
                self.held.passages[document] if author == AUTHORS[0] else self.rewritten[document]
            )
            label = (
                labels.label(mode, self._group(labels, author), seed, question, document)
                if labels
                else None
            )
            passages.append(Passage(text, label))
        asked = str(self.about[question]["text"])
        if labels is None:
            return self.prompts.answer(asked, passages)
        told, groups = partial(labels.label, "Informed"), list(labels.groups)
        return self.prompts.answer(
            asked, passages, labels.notice, lambda group, text: told(groups[group], seed, text)
        )

    @staticmethod
    def _group(labels: LabelSet, author: str) -> str:
        return list(labels.groups)[
            AUTHORS.index(author)
        ]  # of women and men, say: the first stands for people

    def tasks(self, cell: Cell, questions: Sequence[str]) -> Iterator[Task]:
        """Answers that are wanted in a cell."""
        rng = stable_generator(self.study.seed, self.name, str(cell.k))
        places = dict(
            zip(self.drawn, balanced_places(len(self.drawn), cell.k, rng).tolist(), strict=True)
        )
        for question in questions:
            relevant, *others = self.ranked[cell.retriever, question][: cell.k]
            shown = tuple(placed(relevant, others, places[question]))
            setting = asdict(cell) | {"benchmark": self.name, "question": question}
            ask = partial(self.messages, cell, question, shown, relevant)
            yield Task(setting, shown, (places[question] + 1,), ask, self.about[question])


def tasks(study: Study, record: str) -> list[Task]:
    """Answers that are wanted in a record; refused if there are fewer questions than it asks.

    They go question after question, so that a record that is cut off has its cells of one size. A
    question has its passages in the same order in every cell with as many documents; the relevant
    passage stands at each place equally often.
    """
    asked, found, problems = study.records[record], list[Task](), []
    for name, experiments in asked.experiments.items():
        here = _Asking(study, study.samples[asked.sample], name)
        if unknown := sorted(
            {cell.labels for cell in study.cells(name, *experiments)} - {"none", *here.sets}
        ):
            problems.append(
                Problem(
                    record,
                    None,
                    name,
                    f"no pool for the labels {', '.join(unknown)}",
                    "a record of names",
                )
            )
        cells = []
        for cell in sorted(
            study.cells(name, *experiments), key=lambda cell: cell.labels
        ):  # alike prompts together
            people = set(cell.authors) == {AUTHORS[0]}
            most, there = questions_of(asked, cell), here.drawn if people else here.kept
            if len(there) < most:
                told = f"{len(there)} questions{'' if people else ' whose rewritten passages keep their part'}"
                problems.append(Problem(record, None, name, told, f"{most}, as the config asks"))
            cells.append(here.tasks(cell, there[:most]))
        found += [task for tasks in zip_longest(*cells) for task in tasks if task]
    if problems:
        raise InputError(dict.fromkeys(problems))
    return found


def questions_of(asked: Asked, cell: Cell) -> int:
    """How many questions a record asks in a cell."""
    return (
        asked.questions
        if set(cell.authors) == {AUTHORS[0]} or asked.rewritten is None
        else asked.rewritten
    )
