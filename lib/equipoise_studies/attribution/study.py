"""What chapter 5 is run on: questions with passages, models, labels and prompts, as a config names them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar, Literal

import pandas as pd

from equipoise_compendium import project
from equipoise_compendium.printed import printed_table
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
    """A benchmark that is at hand, with the retrievers that search its passages, or one of the reader's own.

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
                "retrievers of a benchmark at hand, or files by the retriever that found their passages"
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
    """What answers: GGUF weights below the folder of models, or an endpoint in the OpenAI format, or both.

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
            refuse_secrets(
                self.url
            )  # what is wrong with it is said at once; who reads reports needs no httpx

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
        at_hand, own = (
            set(benchmarks.BUILT_IN),
            {name for name, one in self.benchmarks.items() if one.files},
        )
        for wanted, there, what in (
            (set(self.benchmarks) - own, at_hand, "benchmark at hand"),
            (
                {one for sample in self.samples.values() for one in sample.drawn},
                set(self.benchmarks),
                "benchmark",
            ),
            ({asked.sample for asked in self.records.values()}, set(self.samples), "sample"),
            (
                {
                    self.writer,
                    self.names_by or self.writer,
                    *(asked.model for asked in self.records.values()),
                },
                set(self.models),
                "model",
            ),
            ({self.repeated} - {""}, set(self.records), "record"),
        ):
            if unknown := sorted(wanted - there):
                raise ValueError(
                    f"no {what} {', '.join(unknown)}; there are {', '.join(sorted(there))}"
                )
        for name, asked in self.records.items():
            if unknown := sorted(set(asked.experiments) - set(self.samples[asked.sample].drawn)):
                raise ValueError(
                    f"{name}: the sample {asked.sample} has no questions of {', '.join(unknown)}"
                )
            known = {*CELLS, *read_label_sets(self.labels, ["a name"])}
            if unknown := sorted(
                {one for several in asked.experiments.values() for one in several} - known
            ):
                raise ValueError(
                    f"{name}: no experiment {', '.join(unknown)}; there are {', '.join(sorted(known))}"
                )
        if len({*map(self.called, self.records)}) < len(self.records):
            raise ValueError("two records have one name")
        if (
            min(
                self.documents,
                *self.cut_offs,
                *(asked.questions for asked in self.records.values()),
            )
            < 1
        ):
            raise ValueError("numbers of passages and of questions are at least 1")

    # --- what is asked

    def cells(self, benchmark: str, *experiments: str) -> list[Cell]:
        """The settings of some experiments on a benchmark."""
        found = self.benchmarks[benchmark].found_by
        return list(
            dict.fromkeys(
                cell
                for name in experiments
                for cell in cells_of(name, found, self.documents, self.cut_offs)
            )
        )

    def experiments(self) -> list[str]:
        """All that are asked in some record, those of the thesis first."""
        asked = [
            one
            for record in self.records.values()
            for several in record.experiments.values()
            for one in several
        ]
        return sorted(dict.fromkeys(asked), key=lambda name: [*CELLS, name].index(name))

    def depth(self) -> int:
        """The most passages shown of a question."""
        return max(self.documents, *self.cut_offs, 0)

    def load(self, name: str) -> Benchmark:
        """A benchmark."""
        of = self.benchmarks[name]
        if of.files:
            return benchmarks.given_lists(name, of.files, of.form, self.depth())
        return {"NQ": benchmarks.natural_questions, "NQ-UTD": benchmarks.nq_utd}[name](of.longest)

    def about(self, *names: str) -> str:
        """What stands for benchmarks of the thesis, all of them by default, in words."""
        told = []
        for one, of in self.benchmarks.items():
            if (name := stands_for(one)) in (names or (name,)):
                place = f" in place of {name}" if one == "NQ-UTD" else ""
                told.append(f"{of.about or benchmarks.BUILT_IN[one]}{place}")
        return f"{'; '.join(told)}; recorded answers of {', '.join(self.who())}"

    def answered(self) -> list[str]:
        """The records but the repeated one."""
        return [name for name in self.records if name != self.repeated]

    def called(self, record: str) -> str:
        """What the report calls who answers in a record."""
        return self.records[record].name or record

    def who(self) -> list[str]:
        """What the report calls `answered`."""
        return [*map(self.called, self.answered())]

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
        """Sets of labels, with the recorded pool of names, if there is one: two capitalised words each, each once."""
        pool: list[str] = []
        if self.names().is_file():
            _, lines = read(project.noted(self.names()), "answer", FIELDS, ())
            pool = list(dict.fromkeys(" ".join(name) for name in _NAME.findall(lines[0]["answer"])))
        return read_label_sets(project.noted(self.labels), pool)

    def sampling(self, what: Literal["answer", "writing", "names"]) -> Sampling:
        """How a model takes the next word."""
        warmth = {"answer": self.temperature, "writing": self.writing_temperature, "names": 0.7}[
            what
        ]
        most = {"answer": self.answer_tokens, "writing": self.writing_tokens, "names": 1200}[what]
        return Sampling(warmth, 0.95 if what == "names" else 1.0, most, self.seed)

    # --- beside the print

    def compared(
        self,
        artefact: str,
        table: pd.DataFrame,
        keys: Sequence[str],
        columns: Sequence[str],
        about: str,
    ) -> dict[str, Any]:
        """What `Report.table` takes: a replica's columns; of the thesis's own data, the rows and columns of the print.

        ``about``: the benchmark of the print that the table is of; empty for both.
        """
        told = self.about(about) if about else self.about()
        if self.stands_for != "thesis":
            return {"ours": table[[*keys, *columns]], "basis": self.basis, "data": told}
        printed = printed_table(artefact)
        if "score" in table:
            wide = table.assign(score="Δ" + table["score"]).pivot_table("Δ", list(keys), "score")
            table = wide.reset_index()
        ours = (
            printed[list(keys)].merge(table, "left", on=list(keys)).reindex(columns=printed.columns)
        )
        of_100 = [name for name in printed if "recision" in name or "ecall" in name]
        near = {name: self.tolerance / (1 if name in of_100 else 100) for name in printed}
        return {
            "ours": ours,
            "keys": list(keys),
            "basis": self.basis,
            "data": told,
            "tolerance": near,
        }


def stands_for(benchmark: str) -> str:
    """The benchmark of the thesis that one stands for; every other one but MS MARCO's stands in NQ's place."""
    return "MS MARCO" if benchmark in ("MS MARCO", "NQ-UTD") else "NQ"


def standing_for(table: pd.DataFrame, benchmark: str) -> pd.DataFrame:
    """The rows of a table that stand for a benchmark of the thesis."""
    return table[table["benchmark"].map(stands_for) == benchmark]
