"""The design of the replica: what is asked, in which mode, with which labels and passages."""

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
from equipoise.measures.attribution import AUTHORS, exact_match
from equipoise.problems import InputError, Problem, refused
from equipoise_studies.attribution.answering import FIELDS, Task
from equipoise_studies.attribution.authorship import LabelSet, stable_generator
from equipoise_studies.attribution.benchmarks import Benchmark
from equipoise_studies.attribution.prompts import Messages, Passage
from equipoise_studies.recording import read

if TYPE_CHECKING:
    from equipoise_studies.attribution.study import Asked, Sample, Study

INPUTS = ["benchmark", "retriever", "question", "rank", "document"]
PLACES = "places.csv"
"""File beside the inputs with the place of each relevant passage, where a retriever put it."""


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

    @property
    def by_people(self) -> bool:
        """Whether people wrote all passages, so that none has to be rewritten."""
        return set(self.authors) == {AUTHORS[0]}


_ONE_AUTHOR = [(author, author) for author in AUTHORS]
_TWO_AUTHORS = [("LLM", "Human"), ("Human", "LLM")]
_SWAPS = ("Informed/CF-informed", "CF-informed/Informed")
_LABELS = {
    "modes": "plain",
    "mixed": "plain",
    "same label": "plain",
    "retrievers": "names",
    "documents": "names",
}

CELLS = ("modes", "mixed", "names", "placebo", "same label", "retrievers", "documents", "vanilla")
"""Experiments: the settings of thesis Tables 5.1 (modes), 5.4 and 5.14 (mixed, same label), 5.7
(names), 5.9 (retrievers), Figure 5.9 (documents), the placebo, which is ours, and Vanilla alone.
Any other set of labels (of other authors, or with a sentence against bias) is an experiment by its
name, on passages by people, as the placebo is."""

EXPERIMENTS: Mapping[str, Sequence[str]] = {
    "modes": ["modes"],
    "mixed": ["mixed"],
    "names": ["names"],
    "placebo": ["placebo"],
    "retrievers": ["names", "retrievers"],
    "documents": ["names", "documents"],
}
"""Tables of CAS and CAB, each with the experiments whose answers it takes."""


def cells_of(
    experiment: str, retrievers: Sequence[str], documents: int, cut_offs: Sequence[int]
) -> list[Cell]:
    """The settings of an experiment.

    ``retrievers``: the usual one first. ``cut_offs``: other numbers of passages than ``documents``.
    """
    author_pairs = _ONE_AUTHOR[:1]
    if experiment == "modes":
        author_pairs = _TWO_AUTHORS
    elif experiment in ("mixed", "names", "same label"):
        author_pairs = _ONE_AUTHOR

    # With passages of one author only the mixed modes tell the labels apart.
    modes: Sequence[str] = _SWAPS
    if experiment in ("modes", "same label"):
        modes = MODES[1:]
    elif experiment == "vanilla":
        modes = ()
    label_set = _LABELS.get(experiment, experiment)
    labelled = [(label_set, mode) for mode in modes]
    if experiment != "same label":
        labelled.insert(0, ("none", "Vanilla"))

    # Retriever and number of passages: the usual ones, but where an experiment varies them.
    passages = [(retrievers[0], documents)]
    if experiment == "retrievers":
        passages = [(retriever, documents) for retriever in retrievers[1:]]
    elif experiment == "documents":
        passages = [(retrievers[0], k) for k in cut_offs]

    cells = []
    for (retriever, k), authors, (labels, mode) in product(passages, author_pairs, labelled):
        cells.append(Cell(labels, mode, *authors, k, retriever))
    return cells


# --- experiments of answers -----------------------------------------------------------------------


def with_experiments(answers: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Answers with a column ``experiments``: a tuple of those in whose settings one is."""
    names = list(CELLS)
    names += [name for name in study.experiments() if name not in CELLS]
    experiments_of_cells: dict[tuple[str, Cell], list[str]] = {}
    for benchmark, name in product(study.benchmarks, names):
        for cell in study.cells(benchmark, name):
            experiments_of_cells.setdefault((benchmark, cell), []).append(name)

    columns = ["labels", "mode", "relevant_author", "nonrelevant_author", "k", "retriever"]
    settings = answers[columns].itertuples(index=False, name=None)
    experiments = []
    for benchmark, setting in zip(answers["benchmark"], settings, strict=True):
        experiments.append(tuple(experiments_of_cells.get((benchmark, Cell(*setting)), ())))
    return answers.assign(experiments=experiments)


def of_experiment(answers: pd.DataFrame, *experiments: str) -> pd.DataFrame:
    """Answers in one of the settings of some experiments, in their order."""
    chosen = set(experiments)
    within = [not chosen.isdisjoint(names) for names in answers["experiments"]]
    return answers[np.array(within, dtype=bool)].reset_index(drop=True)


def recorded_experiments(answers: pd.DataFrame) -> list[str]:
    """Names of the experiments that answers are of, those of the thesis first."""
    recorded: list[str] = []
    for names in answers["experiments"].drop_duplicates():
        recorded += [name for name in names if name not in recorded]
    of_thesis = [name for name in CELLS if name in recorded]
    return of_thesis + [name for name in recorded if name not in CELLS]


def need_experiments(answers: pd.DataFrame, *names: str) -> None:
    """Refuse answers that lack an experiment, or have it without any label."""
    recorded = recorded_experiments(answers[answers["labels"] != "none"])
    lacking = [name for name in names if name not in recorded]
    if lacking:
        raise refused(
            "the study's records",
            f"no answers of {', '.join(lacking)}",
            "every experiment of the thesis (equipoise score attribution takes any answers)",
        )


def tables_of(answers: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Answers of every table of CAS and CAB, those of `EXPERIMENTS` first."""
    tables = {name: of_experiment(answers, *names) for name, names in EXPERIMENTS.items()}
    for name in recorded_experiments(answers):
        if name not in CELLS:
            tables[name] = of_experiment(answers, name)
    return tables


SHOWN = {
    "modes": ("Human and LLM, true or exchanged", "5.1 to 5.3, 5.6, 5.10 to 5.13"),
    "mixed": ("Human and LLM, on texts of one author", "5.4, 5.5, 5.15"),
    "same label": ("Human or LLM on all passages", "5.14, 5.15"),
    "names": ("names and AI, on texts of one author", "5.7, 5.8"),
    "retrievers": ("names and AI, other retrievers", "5.9"),
    "documents": ("names and AI, other numbers of passages", "Figure 5.9"),
    "placebo": ("Birch and Maple, archives that say nothing of authors", "none: ours"),
}
"""What passages are labelled in each experiment, and the tables of the thesis that are of it."""


def design_table(answers: pd.DataFrame, benchmarks: Sequence[str]) -> pd.DataFrame:
    """What was asked: each experiment's labels, its tables, and of how many questions it is.

    ``answers``: as of `with_experiments`. Questions of a benchmark are those of the model that was
    asked most.
    """
    rows = []
    labelled = answers[answers["labels"] != "none"]
    for name in recorded_experiments(labelled):
        labels, tables = SHOWN.get(name, (f"{name}, of a set of labels", "none: ours"))
        row: dict[str, object] = {"experiment": name, "labels": labels, "tables": tables}
        asked = of_experiment(labelled, name)
        counts = asked.groupby(["benchmark", "model"])["question"].nunique()
        most = counts.groupby("benchmark").max()
        for benchmark in benchmarks:
            row[f"questions of {benchmark}"] = most.get(benchmark, 0)
        rows.append(row)
    return pd.DataFrame(rows)


# --- passages -------------------------------------------------------------------------------------


def inputs(name: str, folder: Path) -> pd.DataFrame:
    """Recorded inputs of a benchmark: columns benchmark, retriever, question, rank, document.

    Questions in the order in which they were drawn; rank 0 is the relevant passage, from rank 1 on
    the retrieved ones that are neither judged relevant nor hold a gold answer.
    """
    table = read_columns(folder / "inputs.csv", INPUTS)
    table["rank"] = table["rank"].astype("int64")
    return table[table["benchmark"] == name].reset_index(drop=True)


def recorded_places(name: str, folder: Path) -> dict[str, dict[str, int]]:
    """Where retrievers put the relevant passages of a benchmark, from 0, by retriever and question.

    Empty where a study does not ask.
    """
    path = folder / PLACES
    if not path.is_file():
        return {}
    table = read_columns(path, ["benchmark", "retriever", "question", "place"])
    places: dict[str, dict[str, int]] = {}
    for row in table[table["benchmark"] == name].itertuples():
        places.setdefault(row.retriever, {})[row.question] = int(row.place)
    return places


def balanced_places(questions: int, documents: int, rng: np.random.Generator) -> Integers:
    """Places of the relevant passages, from 0, shaped (questions,), each as often as any other.

    At random; in any run of `documents` questions from a multiple of it on, each place comes once.
    """
    rounds = -(-questions // documents)  # rounded up
    places = [rng.permutation(documents) for _ in range(rounds)]
    return np.concatenate(places)[:questions]


def placed(relevant: str, nonrelevant: Sequence[str], place: int) -> list[str]:
    """The relevant passage at its place, from 0, among the others, which keep their order."""
    return [*nonrelevant[:place], relevant, *nonrelevant[place:]]


def paraphrases(name: str, folder: Path) -> dict[str, str]:
    """Recorded paraphrases of the passages of a benchmark by id.

    Without those that ran into the limit of tokens.
    """
    path = folder / "paraphrases.jsonl"
    if not path.is_file():
        return {}
    _, lines = read(path, "answer", FIELDS, ("benchmark", "document"))
    texts = {}
    for line in lines:
        if line["benchmark"] == name and line["finish"] == "stop":
            texts[line["document"]] = line["answer"].strip()
    return texts


def first_passages(table: pd.DataFrame, documents: int) -> pd.DataFrame:
    """The passages that are usually shown of every question, found by the usual retriever."""
    usual_retriever = table["retriever"].iloc[0]
    return table[(table["retriever"] == usual_retriever) & (table["rank"] < documents)]


def usable(
    benchmark: Benchmark, rewritten: Mapping[str, str], usual_passages: pd.DataFrame, checked: bool
) -> list[str]:
    """Questions whose passages keep their part when they are rewritten, in the order drawn.

    All of the ``usual_passages``, as of `first_passages`, have a twin in ``rewritten``, a text by
    id; where this is to be ``checked``, the relevant one still holds the answer if it did, and no
    other has come to hold it.

    The thesis had two people check this (appendix 5.A).
    """
    columns = benchmark.questions
    gold = dict(zip(columns["question"], columns["gold"], strict=True))
    questions = []
    for question, rows in usual_passages.groupby("question", sort=False):
        documents = rows.sort_values("rank")["document"].tolist()
        has_twins = all(document in rewritten for document in documents)
        if not has_twins:
            continue
        if not checked or _keep_their_part(benchmark, rewritten, documents, gold[str(question)]):
            questions.append(str(question))
    return questions


def _keep_their_part(
    benchmark: Benchmark,
    rewritten: Mapping[str, str],
    documents: Sequence[str],
    gold: Sequence[str],
) -> bool:
    """Whether the relevant passage, the first, keeps its gold answer, and no other gains one."""
    relevant, *nonrelevant = documents
    before = exact_match(benchmark.passages[relevant], gold)
    after = exact_match(rewritten[relevant], gold)
    gained = [exact_match(rewritten[document], gold) for document in nonrelevant]
    return after >= before and not any(gained)


# --- tasks ----------------------------------------------------------------------------------------


class _Asking:
    """What is asked of one benchmark."""

    def __init__(self, study: Study, sample: Sample, name: str) -> None:
        self.study = study
        self.name = name
        self.benchmark = study.load(name)
        self.prompts = study.wording()
        self.label_sets = study.label_sets()

        table = inputs(name, sample.folder)
        self.rewritten = self.benchmark.rewritten or paraphrases(name, sample.folder)
        passages = first_passages(table, study.documents)
        self.usable = usable(self.benchmark, self.rewritten, passages, sample.checked)
        self.drawn = {}
        for retriever, rows in table.groupby("retriever", sort=False):
            self.drawn[retriever] = rows["question"].unique().tolist()
            if sample.twins:
                self.drawn[retriever] = self.usable
        self.places = recorded_places(name, sample.folder)

        self.ranked = {}
        for key, rows in table.groupby(["retriever", "question"]):
            self.ranked[key] = rows.sort_values("rank")["document"].tolist()
        questions = self.benchmark.questions.set_index("question")
        self.question_texts = questions["text"].astype(str).to_dict()
        # A record keeps the gold answers, but no text of others: the id stands for the question.
        self.recorded_beside = questions[["gold"]].to_dict("index")

    def questions(self, cell: Cell) -> list[str]:
        """Questions that a cell may ask: of rewritten passages only those that keep their part."""
        return self.drawn[cell.retriever] if cell.by_people else self.usable

    def messages(
        self, cell: Cell, question: str, documents: Sequence[str], relevant: str
    ) -> Messages:
        """The prompt of a question in a cell."""
        relevant_mode, nonrelevant_mode = mode_parts(cell.mode)
        labels = self.label_sets.get(cell.labels)
        passages = []
        for document in documents:
            author, mode = cell.nonrelevant_author, nonrelevant_mode
            if document == relevant:
                author, mode = cell.relevant_author, relevant_mode
            texts = self.benchmark.passages if author == AUTHORS[0] else self.rewritten
            label = None
            if labels:
                group = _group(labels, author)
                label = labels.label(mode, group, self.study.seed, question, document)
            passages.append(Passage(texts[document], label))

        text = self.question_texts[question]
        if labels is None:
            return self.prompts.answer(text, passages)

        groups = list(labels.groups)

        def example_label(group: int, passage: str) -> str | None:
            return labels.label("Informed", groups[group], self.study.seed, passage)

        return self.prompts.answer(text, passages, labels.notice, example_label)

    def tasks(self, cell: Cell, questions: Sequence[str]) -> Iterator[Task]:
        """Answers that are wanted in a cell."""
        # The place hangs on question and k alone, so that it is the same in every mode.
        rng = stable_generator(self.study.seed, self.name, str(cell.k))
        drawn = self.drawn[cell.retriever]
        places = balanced_places(len(drawn), cell.k, rng).tolist()
        places_of_questions = dict(zip(drawn, places, strict=True))
        # thesis, appendix 5.D: with other numbers of passages it is put there at random
        if self.places and cell.k == self.study.documents:
            places_of_questions = self.places[cell.retriever]
        for question in questions:
            relevant, *nonrelevant = self.ranked[cell.retriever, question][: cell.k]
            place = places_of_questions[question]
            documents = tuple(placed(relevant, nonrelevant, place))
            setting = asdict(cell) | {"benchmark": self.name, "question": question}
            messages = partial(self.messages, cell, question, documents, relevant)
            yield Task(setting, documents, (place + 1,), messages, self.recorded_beside[question])


def _group(labels: LabelSet, author: str) -> str:
    """The group of a set of labels that stands for an author.

    Of women and men, say: the first stands for people.
    """
    return list(labels.groups)[AUTHORS.index(author)]


def tasks(study: Study, record: str) -> list[Task]:
    """Answers that are wanted in a record; refused if there are fewer questions than it asks.

    They go question after question, so that a record that is cut off has its cells of one size. A
    question has its passages in the same order in every cell with as many documents; the relevant
    passage stands at each place equally often.
    """
    record_settings = study.records[record]
    wanted_tasks: list[Task] = []
    problems = []
    for name, experiments in record_settings.experiments.items():
        asking = _Asking(study, study.samples[record_settings.sample], name)
        # Alike prompts together, of which a model reads the beginning once.
        cells = sorted(study.cells(name, *experiments), key=lambda cell: cell.labels)
        lacking = {cell.labels for cell in cells} - {"none", *asking.label_sets}
        if lacking:
            missing = f"no pool for the labels {', '.join(sorted(lacking))}"
            problems.append(Problem(record, None, name, missing, "a record of names"))

        tasks_of_cells = []
        for cell in cells:
            questions = asking.questions(cell)
            n_wanted = questions_of(record_settings, cell)
            if len(questions) < n_wanted:
                available = f"{len(questions)} questions"
                if not cell.by_people:
                    available += " whose rewritten passages keep their part"
                problem = Problem(record, None, name, available, f"{n_wanted}, as the config asks")
                problems.append(problem)
            tasks_of_cells.append(asking.tasks(cell, questions[:n_wanted]))
        # Question after question: the cells of a record that is cut off are of one size.
        for tasks_of_question in zip_longest(*tasks_of_cells):
            wanted_tasks += [task for task in tasks_of_question if task]
    if problems:
        raise InputError(dict.fromkeys(problems))
    return wanted_tasks


def questions_of(record_settings: Asked, cell: Cell) -> int:
    """How many questions a record asks in a cell."""
    if cell.by_people or record_settings.rewritten is None:
        return record_settings.questions
    return record_settings.rewritten
