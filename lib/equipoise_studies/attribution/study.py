"""What chapter 5 is run on, as a config names it.

Questions with passages, models, labels and prompts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field
from pathlib import Path
from typing import ClassVar, Literal

import pandas as pd

from equipoise_compendium import project
from equipoise_studies.attribution import benchmarks
from equipoise_studies.attribution.answering import FIELDS
from equipoise_studies.attribution.authorship import LabelSet, read_label_sets
from equipoise_studies.attribution.benchmarks import Benchmark
from equipoise_studies.attribution.design import CELLS, Cell, cells_of
from equipoise_studies.attribution.prompts import Prompts, read_prompts
from equipoise_studies.config import ChapterConfig, NamedFile, settings
from equipoise_studies.recording import read
from equipoise_studies.systems.endpoint import Endpoint, Sampling, refuse_secrets

NOTEBOOK = "thesis_ch5_attribution"
_NAME = re.compile(r"\b([A-Z][a-z]+),?[ ]+([A-Z][a-z]+)\b")


@settings
class Questions:
    """A benchmark that is at hand, with the retrievers that search it, or one of the reader's own.

    ``files``: JSON Lines in a ``form`` of `benchmarks.FORMS`, by the retriever that found the
    passages. ``longest``: words of the longest passage that is searched; of one's own, of a usual
    one, for the estimate of tokens. ``about``: what it is, in words.
    """

    retrievers: tuple[str, ...] = ()
    files: dict[str, NamedFile] = field(default_factory=dict)
    form: Literal["questions", "dpr", "ms-marco-qa"] = "questions"
    longest: int = 100
    about: str = ""

    def __post_init__(self) -> None:
        if bool(self.retrievers) == bool(self.files):
            raise ValueError(
                "retrievers of a benchmark at hand, "
                "or files by the retriever that found their passages"
            )
        if self.files and not self.about:
            raise ValueError("questions of one's own have an about")

    @property
    def found_by(self) -> tuple[str, ...]:
        """Its retrievers; every experiment but that of retrievers has the first one's passages."""
        return self.retrievers or tuple(self.files)


@settings
class Sample:
    """Questions drawn once, with what is recorded of them in a folder.

    ``drawn``: how many, by benchmark. ``retrievers``: those of its benchmarks that are asked;
    without it, all. ``rewritten``: of how many questions a model rewrites the passages. ``twins``:
    every question needs passages that keep their part when they are rewritten; otherwise only those
    that are asked with rewritten ones do. ``checked``: whether a rule tells which do; otherwise all
    are taken to.
    """

    folder: NamedFile
    drawn: dict[str, int]
    retrievers: tuple[str, ...] = ()
    rewritten: int = 0
    twins: bool = False
    checked: bool = True


@settings
class Model:
    """What answers: GGUF weights below the folder of models, an endpoint (OpenAI format), or both.

    ``run_by``: with an endpoint its ``url`` and the model's ``name`` there; it needs no weights,
    but where it is known to run some, these are stated. ``seconds``: an answer takes, as far as is
    known. ``prices``: of a million tokens of prompt and of answer, in ``currency``.
    """

    run_by: Literal["llama.cpp", "transformers", "endpoint"]
    weights: str = ""
    url: str = ""
    name: str = ""
    key_variable: str = Endpoint.key_variable
    parallel: int = 1
    threads: int = 2
    context: int = 4096
    seconds: float | None = None
    prices: tuple[float, ...] = ()
    currency: str = "USD"

    def __post_init__(self) -> None:
        if (self.run_by == "endpoint") != bool(self.url and self.name):
            raise ValueError("an endpoint, and nothing else, has a url and a name")
        if self.run_by != "endpoint" and not self.weights:
            raise ValueError(f"{self.run_by} wants weights")
        if len(self.prices) not in (0, 2):
            raise ValueError("prices are two: of a million tokens of prompt, and of answer")
        if self.url:
            # What is wrong with it is said at once; who reads reports needs no httpx.
            refuse_secrets(self.url)

    @property
    def endpoint(self) -> Endpoint:
        """Where it is asked."""
        return Endpoint(self.url, self.name, key_variable=self.key_variable, timeout=600)

    @property
    def known_as(self) -> str:
        """What tells its records from another model's."""
        return Path(self.weights).name or self.name


@settings
class Asked:
    """A record of answers: which model is asked what.

    ``experiments``: by benchmark. ``questions``: of each; ``rewritten``: of them, with passages
    that a model rewrote, without it as many. ``name``: what the report calls who answers, the
    record's own name by default.
    """

    sample: str
    model: str
    experiments: dict[str, tuple[str, ...]]
    questions: int
    rewritten: int | None = None
    name: str = ""


@settings
class Study(ChapterConfig):
    """A run of chapter 5 (thesis section 5.4).

    ``records``: answers by the name of their file in the folder ``record``; on the thesis's config
    it is the model's name in print. ``repeated``: one of them, that asks some prompts of the first
    one once more. ``writer``: the model that rewrites passages; ``names_by``: the one that makes
    names, if it is another. ``documents``: k, passages shown; ``cut_offs``: other numbers of them.
    ``prompts``: a folder; ``examples``: worked ones that stand before a question. ``tolerance``:
    how far a cell may lie from the printed one, in points; in hundredths where 1 is the most.
    ``told``: what was asked, in words; ``cannot_show``: what nobody should conclude from it.
    """

    chapter: ClassVar[str] = "attribution"
    benchmarks: dict[str, Questions]
    samples: dict[str, Sample]
    models: dict[str, Model]
    records: dict[str, Asked]
    writer: str
    record: NamedFile
    prompts: NamedFile
    labels: NamedFile
    examples: NamedFile | None = None
    names_by: str = ""
    repeated: str = ""
    documents: int = 10
    cut_offs: tuple[int, ...] = ()
    temperature: float = 0.0
    answer_tokens: int = 512
    writing_tokens: int = 512
    writing_temperature: float = 0.0
    seed: int = 20250516
    tolerance: float = 0.0
    told: str = ""
    cannot_show: str = ""

    def __post_init__(self) -> None:
        self._check_names()
        self._check_records()
        numbers = [self.documents, *self.cut_offs]
        numbers += [record.questions for record in self.records.values()]
        if min(numbers) < 1:
            raise ValueError("numbers of passages and of questions are at least 1")

    def _check_names(self) -> None:
        """Refuse a benchmark, sample, model or record that is named and is not there."""
        to_load = [name for name, questions in self.benchmarks.items() if not questions.files]
        drawn = [name for sample in self.samples.values() for name in sample.drawn]
        samples = [record.sample for record in self.records.values()]
        models = [record.model for record in self.records.values()]
        models += [self.writer, self.names_by or self.writer]
        repeated = [self.repeated] if self.repeated else []
        _refuse_unknown("benchmark at hand", to_load, benchmarks.BUILT_IN)
        _refuse_unknown("benchmark", drawn, self.benchmarks)
        _refuse_unknown("sample", samples, self.samples)
        _refuse_unknown("model", models, self.models)
        _refuse_unknown("record", repeated, self.records)

    def _check_records(self) -> None:
        """Refuse a record whose questions or labels are not there, or whose name is another's."""
        # Any set of labels is an experiment by its name; that of the pool too, recorded or not.
        experiments = [*CELLS, *read_label_sets(self.labels, ["a name"])]
        for name, record in self.records.items():
            not_drawn = sorted(set(record.experiments) - set(self.samples[record.sample].drawn))
            if not_drawn:
                raise ValueError(
                    f"{name}: the sample {record.sample} has no questions of {', '.join(not_drawn)}"
                )
            for names in record.experiments.values():
                _refuse_unknown("experiment", names, experiments, f"{name}: ")
        # Tables tell records apart by what the report calls them.
        if len(set(map(self.display_name, self.records))) < len(self.records):
            raise ValueError("two records have one name")

    # --- what is asked

    def cells(self, benchmark: str, *experiments: str) -> list[Cell]:
        """The settings of some experiments on a benchmark, each once."""
        retrievers = self.benchmarks[benchmark].found_by
        cells: list[Cell] = []
        for name in experiments:
            cells += cells_of(name, retrievers, self.documents, self.cut_offs)
        return list(dict.fromkeys(cells))

    def experiments(self) -> list[str]:
        """All that some record asks, those of the thesis first."""
        names: list[str] = []
        for record in self.records.values():
            for experiments in record.experiments.values():
                names += [name for name in experiments if name not in names]
        of_thesis = [name for name in CELLS if name in names]
        return of_thesis + [name for name in names if name not in CELLS]

    def depth(self) -> int:
        """The most passages shown of a question."""
        return max(self.documents, *self.cut_offs, 0)

    def load(self, name: str) -> Benchmark:
        """A benchmark with its texts, from the upstream files or the reader's own."""
        questions = self.benchmarks[name]
        if questions.files:
            return benchmarks.given_lists(name, questions.files, questions.form, self.depth())
        return benchmarks.LOADERS[name](questions.longest)

    def about(self, printed_benchmark: str = "") -> str:
        """What stands for a benchmark of the thesis, or for all of them, in words."""
        descriptions = []
        for name, questions in self.benchmarks.items():
            if printed_benchmark not in ("", stands_for(name)):
                continue
            place = f" in place of {stands_for(name)}" if name == "NQ-UTD" else ""
            descriptions.append(f"{questions.about or benchmarks.BUILT_IN[name]}{place}")
        models = ", ".join(self.display_names())
        return f"{'; '.join(descriptions)}; recorded answers of {models}"

    def answered(self) -> list[str]:
        """The records but the repeated one."""
        return [name for name in self.records if name != self.repeated]

    def display_name(self, record: str) -> str:
        """What the report calls who answers in a record."""
        return self.records[record].name or record

    def display_names(self) -> list[str]:
        """What the report calls `answered`."""
        return [self.display_name(record) for record in self.answered()]

    # --- where it lies

    def answers(self, record: str) -> Path:
        """A record of answers."""
        return self.record / f"{record}.jsonl"

    def names(self) -> Path:
        """The record of names."""
        return self.record / "names.jsonl"

    def wording(self) -> Prompts:
        """The words of prompts."""
        return read_prompts(self.prompts, self.examples)

    def label_sets(self) -> dict[str, LabelSet]:
        """Sets of labels, with the recorded pool of names, if there is one.

        A name is two capitalised words, and stands in the pool once.
        """
        pool: list[str] = []
        if self.names().is_file():
            _, lines = read(project.noted(self.names()), "answer", FIELDS, ())
            for first_name, last_name in _NAME.findall(lines[0]["answer"]):
                name = f"{first_name} {last_name}"
                if name not in pool:
                    pool.append(name)
        return read_label_sets(project.noted(self.labels), pool)

    def sampling(self, written: Literal["answer", "writing", "names"]) -> Sampling:
        """How a model takes the next word of an answer, a paraphrase or a list of names."""
        if written == "answer":
            return Sampling(self.temperature, 1.0, self.answer_tokens, self.seed)
        if written == "writing":
            return Sampling(self.writing_temperature, 1.0, self.writing_tokens, self.seed)
        # A pool of names is to vary, so this one draws with some warmth.
        return Sampling(0.7, 0.95, 1200, self.seed)


def _refuse_unknown(
    kind: str, names: Iterable[str], available: Iterable[str], place: str = ""
) -> None:
    """Refuse names that are not available; ``place``: what the message begins with."""
    available = sorted(set(available))
    unknown = sorted(set(names) - set(available))
    if unknown:
        raise ValueError(f"{place}no {kind} {', '.join(unknown)}; there are {', '.join(available)}")


def stands_for(benchmark: str) -> str:
    """The benchmark of the thesis that one stands for: NQ, but for MS MARCO's and NQ-UTD."""
    return "MS MARCO" if benchmark in ("MS MARCO", "NQ-UTD") else "NQ"


def standing_for(table: pd.DataFrame, benchmark: str) -> pd.DataFrame:
    """The rows of a table that stand for a benchmark of the thesis."""
    return table[table["benchmark"].map(stands_for) == benchmark]
