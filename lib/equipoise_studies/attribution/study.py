"""What chapter 5 is run on, as a config names it.

Questions with passages, models, labels and prompts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import ClassVar, Literal

import pandas as pd

from equipoise.options import Count, NonNegative
from equipoise.problems import InputError
from equipoise_compendium import project
from equipoise_studies.attribution import benchmarks
from equipoise_studies.attribution.answering import FIELDS
from equipoise_studies.attribution.authorship import LabelSet, read_label_sets
from equipoise_studies.attribution.benchmarks import Benchmark
from equipoise_studies.attribution.design import CELLS, Cell, cells_of
from equipoise_studies.attribution.prompts import Prompts, read_prompts
from equipoise_studies.config import (
    ChapterConfig,
    Counts,
    Misfit,
    NamedFile,
    Names,
    Sampled,
    Url,
    Whole,
    settings,
    unknown_names,
)
from equipoise_studies.recording import read, read_settings
from equipoise_studies.systems import Device
from equipoise_studies.systems.endpoint import Endpoint, Sampling

NOTEBOOK = "thesis_ch5_attribution"
MODELS_OF_THESIS = {
    "Mistral": "mistralai/Mistral-7B-Instruct-v0.3",
    "Llama3": "meta-llama/Meta-Llama-3-8B-Instruct",
    "GPT-4": "gpt-4-0314",
}
"""The models of the thesis (section 5.4), by what its tables call them."""

_NAME = re.compile(r"\b([A-Z][a-z]+),?[ ]+([A-Z][a-z]+)\b")


@settings
class Questions:
    """A benchmark that is at hand, with the retrievers that search it, or one of the reader's own.

    ``files``: JSON Lines in a ``form`` of `benchmarks.FORMS`, by the retriever that found the
    passages. ``longest``: words of the longest passage that is searched; of one's own, of a usual
    one, for the estimate of tokens. ``about``: what it is, in words. ``source``: where the
    files are had, and how they are made.
    """

    retrievers: Names = ()
    files: dict[str, NamedFile] = field(default_factory=dict)
    form: Literal["questions", "dpr", "ms-marco-qa"] = "questions"
    longest: Count = 100
    about: str = ""
    source: str = ""

    def misfits(self) -> Iterator[Misfit | str]:
        """What does not go together."""
        if bool(self.retrievers) == bool(self.files):
            yield (
                "retrievers of a benchmark at hand, "
                "or files by the retriever that found their passages"
            )
        if self.files and not self.about:
            yield "questions of one's own have an about"

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
    drawn: dict[str, Count]
    retrievers: Names = ()
    rewritten: Whole = 0
    twins: bool = False
    checked: bool = True


@settings
class Model:
    """What answers: GGUF weights below the folder of models, an endpoint (OpenAI format), or both.

    ``run_by``: with an endpoint its ``url`` and the model's ``name`` there; it needs no weights,
    but where it is known to run some, these are stated. ``seconds``: an answer takes, as far as is
    known. ``prices``: of a million tokens of prompt and of answer, in ``currency``.
    ``key_variable``: the environment variable whose key is sent to this url; without one, none is.
    ``patience``: seconds in all that one answer is waited for while the endpoint limits the rate of
    requests. ``device``: where transformers runs. ``in_place_of``: the model of the thesis that it
    stands in for, which makes it another model. ``source``: where it is had; ``billions``: of its
    weights, for the estimate of time where it runs on a machine of one's own.
    """

    run_by: Literal["llama.cpp", "transformers", "endpoint"]
    weights: str = ""
    url: Url = ""
    name: str = ""
    key_variable: str = ""
    parallel: Count = 1
    patience: NonNegative = 3600.0
    device: Device = "cpu"
    threads: Count = 2
    context: Count = 4096
    seconds: NonNegative | None = None
    prices: tuple[NonNegative, ...] = ()
    currency: str = "USD"
    in_place_of: str = ""
    source: str = ""
    billions: NonNegative = 0.0

    def misfits(self) -> Iterator[Misfit | str]:
        """What does not go together."""
        if (self.run_by == "endpoint") != bool(self.url and self.name):
            yield "an endpoint, and nothing else, has a url and a name"
        if self.run_by != "endpoint" and not self.weights:
            yield f"{self.run_by} wants weights"
        if len(self.prices) not in (0, 2):
            found = ", ".join(map(str, self.prices))
            yield Misfit("prices", found, "two: of a million tokens of prompt, and of answer")
        if self.device != "cpu" and self.run_by != "transformers":
            yield Misfit("device", self.device, "cpu: only what transformers runs has a device")
        if self.in_place_of and self.in_place_of == self.known_as:
            yield Misfit("in_place_of", f"{self.in_place_of}, which it is", "another model")

    @property
    def endpoint(self) -> Endpoint:
        """Where it is asked."""
        return Endpoint(
            self.url,
            self.name,
            key_variable=self.key_variable or None,
            timeout=600,
            patience=self.patience,
        )

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
    experiments: dict[str, Names]
    questions: Count
    rewritten: Count | None = None
    name: str = ""


@settings
class Study(ChapterConfig):
    """A run of chapter 5 (thesis section 5.4).

    ``records``: answers by the name of their file in the folder ``record``; on the thesis's config
    it is the model's name in print. ``repeated``: one of them, that asks some prompts of the first
    one once more. ``writer``: the model that rewrites passages; ``names_by``: the one that makes
    names, if it is another. ``documents``: k, passages shown; ``cut_offs``: other numbers of them.
    ``prompts``: a folder; ``examples``: worked ones that stand before a question. ``one_message``:
    whether instruction and question are one message; otherwise the instruction is the system's.
    ``placed``: where the relevant passage stands among those shown: as often at each place as at
    any other, or as retrieved, which files alone tell; with other numbers of passages than usual it
    stands at random (thesis appendix 5.D). ``tolerance``: how far a cell may lie from the printed
    one, in points; in hundredths where 1 is the most. ``told``: what was asked, in words;
    ``cannot_show``: what nobody should conclude from it.
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
    one_message: bool = False
    documents: Count = 10
    cut_offs: Counts = ()
    placed: Literal["evenly", "as retrieved"] = "evenly"
    temperature: Sampled = 0.0
    answer_tokens: Count = 512
    writing_tokens: Count = 512
    writing_temperature: Sampled = 0.0
    names_temperature: Sampled = 0.7
    seed: int = 20250516
    tolerance: NonNegative = 0.0
    told: str = ""
    cannot_show: str = ""

    def misfits(self) -> Iterator[Misfit | str]:
        """What does not go together."""
        yield from self._unknown_names()
        yield from self._misfits_of_samples()
        yield from self._misfits_of_records()
        if self.placed == "as retrieved":
            to_load = [name for name, questions in self.benchmarks.items() if not questions.files]
            if to_load:
                found = f"as retrieved, with {', '.join(to_load)}, which no file ranks"
                yield Misfit("placed", found, "benchmarks with files, or evenly")
            if self.depth() > self.documents:
                found = f"up to {self.depth()} passages, of which {self.documents} are usual"
                yield Misfit("cut_offs", found, "fewer than documents, where placed as retrieved")
        if self.stands_for == "thesis":
            yield from self._misfits_of_thesis()

    def _unknown_names(self) -> Iterator[Misfit]:
        """Benchmarks, samples, models and records that are named and are not there."""
        to_load = [name for name, questions in self.benchmarks.items() if not questions.files]
        yield from unknown_names("benchmarks", "benchmark at hand", to_load, benchmarks.BUILT_IN)
        for name, record in self.records.items():
            place = f"records.{name}"
            yield from unknown_names(place, "sample", [record.sample], self.samples)
            yield from unknown_names(place, "model", [record.model], self.models)
        yield from unknown_names("writer", "model", [self.writer], self.models)
        names_by = [self.names_by] if self.names_by else []
        yield from unknown_names("names_by", "model", names_by, self.models)
        repeated = [self.repeated] if self.repeated else []
        yield from unknown_names("repeated", "record", repeated, self.records)

    def _misfits_of_samples(self) -> Iterator[Misfit]:
        """Samples of benchmarks or retrievers that are not there."""
        for name, sample in self.samples.items():
            place = f"samples.{name}"
            yield from unknown_names(f"{place}.drawn", "benchmark", sample.drawn, self.benchmarks)
            for drawn in sample.drawn:
                if drawn in self.benchmarks:
                    found_by = self.benchmarks[drawn].found_by
                    retrievers = f"{place}.retrievers"
                    yield from unknown_names(retrievers, "retriever", sample.retrievers, found_by)

    def _misfits_of_records(self) -> Iterator[Misfit]:
        """Records whose questions or labels are not there, or whose name is another's."""
        experiments: list[str] = []
        try:
            # Any set of labels is an experiment by its name; that of the pool, recorded or not.
            experiments = [*CELLS, *read_label_sets(self.labels, ["a name"])]
        except (InputError, OSError) as error:
            yield Misfit("labels", str(error), "a file with sets of labels")
        for name, record in self.records.items():
            sample = self.samples.get(record.sample)
            if sample is not None:
                yield from self._misfits_of_questions(name, record, sample)
            for names in record.experiments.values():
                place = f"records.{name}.experiments"
                if experiments:
                    yield from unknown_names(place, "experiment", names, experiments)
        # Tables tell records apart by what the report calls them.
        models_known = all(record.model in self.models for record in self.records.values())
        if models_known and len(set(map(self.display_name, self.records))) < len(self.records):
            yield Misfit("records", "two records have one name", "a name for each")

    def _misfits_of_questions(self, name: str, record: Asked, sample: Sample) -> Iterator[Misfit]:
        """Questions that a record asks, and its sample does not have."""
        for benchmark in record.experiments:
            drawn = sample.drawn.get(benchmark, 0)
            if not drawn:
                found = f"{name}: the sample {record.sample} has no questions of {benchmark}"
                wanted = f"one of {', '.join(sample.drawn)}"
                yield Misfit(f"records.{name}.experiments", found, wanted)
            elif record.questions > drawn:
                found = f"{record.questions}, of {drawn} drawn of {benchmark}"
                yield Misfit(f"records.{name}.questions", found, f"{drawn} at most")

    def _misfits_of_thesis(self) -> Iterator[Misfit]:
        """Records that are called a model of the thesis, and are another's."""
        yield from unknown_names("records", "model of the thesis", self.records, MODELS_OF_THESIS)
        for name, record in self.records.items():
            of_thesis = MODELS_OF_THESIS.get(name, "")
            model = self.models.get(record.model)
            if of_thesis and model and of_thesis not in (model.name, model.in_place_of):
                found = f"{model.known_as}, which is not {of_thesis}"
                wanted = f"{of_thesis}, or a model that says it is in_place_of it"
                yield Misfit(f"records.{name}.model", found, wanted)

    @property
    def other_data(self) -> str:
        """What tells the questions that were drawn from the thesis's benchmarks, by their sizes."""
        sizes = []
        for sample in self.samples.values():
            path = sample.folder / "inputs.json"
            if not path.is_file():
                continue
            for name, counts in read_settings(path)["benchmarks"].items():
                wanted = benchmarks.QUESTIONS_IN_FILES.get(name, 0)
                for retriever, number in counts.get("in files", {}).items():
                    if wanted and number != wanted:
                        sizes.append(
                            f"{number:,} questions in the file of {name} by {retriever}, where "
                            f"{name} has {wanted:,}"
                        )
        return "; ".join(dict.fromkeys(sizes))

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
        words = f"{'; '.join(descriptions)}; recorded answers of {models}"
        if self.stands_for == "thesis" and self.other_data:
            words += f"; other questions than the thesis's: {self.other_data}"
        for model in self.models.values():
            if model.in_place_of:
                words += f"; {model.known_as} is another model than {model.in_place_of}"
        return words

    def answered(self) -> list[str]:
        """The records but the repeated one."""
        return [name for name in self.records if name != self.repeated]

    def display_name(self, record: str) -> str:
        """What the report calls who answers in a record."""
        asked = self.records[record]
        model = self.models[asked.model]
        if asked.name or not model.in_place_of:
            return asked.name or record
        # Its answers are none of the printed model's, and stand in no row of it.
        return f"{record} ({model.known_as} in its place)"

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
        return read_prompts(self.prompts, self.examples, one_message=self.one_message)

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
        return Sampling(self.names_temperature, 0.95, 1200, self.seed)


def stands_for(benchmark: str) -> str:
    """The benchmark of the thesis that one stands for: NQ, but for MS MARCO's and NQ-UTD."""
    return "MS MARCO" if benchmark in ("MS MARCO", "NQ-UTD") else "NQ"


def standing_for(table: pd.DataFrame, benchmark: str) -> pd.DataFrame:
    """The rows of a table that stand for a benchmark of the thesis."""
    return table[table["benchmark"].map(stands_for) == benchmark]
