"""Record what language models answer when they are told who wrote their sources, for thesis ch. 5.

``equipoise study attribution`` runs the steps of `plan`: questions are drawn and their passages
retrieved, a model rewrites passages and makes names where a config needs them, and models answer.
Each goes on where it stopped, and refuses a record that another model, other prompts, inputs or
another seed made. The notebook reads only what it has written: no model runs there.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tqdm import tqdm

from equipoise.problems import InputError
from equipoise_compendium import project
from equipoise_compendium.registry import DataUnreachable
from equipoise_studies.attribution import answering, design, draw
from equipoise_studies.attribution.answering import FIELDS, Task
from equipoise_studies.attribution.design import CELLS
from equipoise_studies.attribution.prompts import FILES, LABELLED
from equipoise_studies.attribution.study import NOTEBOOK, Asked, Model, Sample, Study
from equipoise_studies.attribution.together import batch_model
from equipoise_studies.config import Step
from equipoise_studies.costs import Calls
from equipoise_studies.recording import (
    lacking_weights,
    read,
    read_settings,
    settings_of,
    weights_of,
)
from equipoise_studies.systems import lacking_device
from equipoise_studies.systems.endpoint import EndpointError, Sampling

__all__ = ["NOTEBOOK", "Study", "plan"]

TWINS = {"NQ-UTD"}
"""Benchmarks that come with every passage rewritten."""


def plan(study: Study, models: Path | None, work: Path) -> list[Step]:  # noqa: ARG001 - nothing is kept but the record
    """The steps that record a study; ``models``: folder of checkpoints and GGUF files."""
    return _Recorder(study, models).steps()


@dataclass(frozen=True)
class _Writing:
    """A record that a model writes.

    ``unit``: what it writes. ``number``: how many, at most. ``words``: of a
    prompt, about. ``files``: what prompts are made of. ``tasks``: what is asked. ``ready``: whether
    all that prompts need is recorded. ``beyond``: how many of them no paper asks.
    """

    path: Path
    name: str
    unit: str
    model: str
    sampling: Sampling
    number: int
    words: int
    files: Callable[[], list[Path]]
    tasks: Callable[[], list[Task]]
    ready: bool = False
    beyond: int = 0


class _Recorder:
    """Records a study."""

    def __init__(self, study: Study, models: Path | None) -> None:
        self.study = study
        self.models = models
        self.wording = study.wording()

    def steps(self) -> list[Step]:
        """Inputs, names, paraphrases and answers."""
        study = self.study
        inputs = {name: self._inputs(name, sample) for name, sample in study.samples.items()}
        names = self._names_if_shown()
        rewritten = {}
        for name, sample in study.samples.items():
            rewritten[name] = self._paraphrases(name, sample)

        answers = []
        for name, record in study.records.items():
            before = [inputs[record.sample], *names, *rewritten[record.sample]]
            ready = all(step.finished for step in before)
            answers.append(self._answers(name, record, ready))
        steps = [*inputs.values(), *names]
        for sample_steps in rewritten.values():
            steps += sample_steps
        return steps + answers

    def _cells(self, record: Asked) -> list[design.Cell]:
        """The settings of a record, on all its benchmarks."""
        cells = []
        for benchmark, experiments in record.experiments.items():
            cells += self.study.cells(benchmark, *experiments)
        return cells

    # --- questions and passages

    def _inputs(self, name: str, sample: Sample) -> Step:
        """Draw questions and retrieve their passages."""
        study = self.study
        models = self.models or Path()
        path = sample.folder / "inputs.json"
        questions = sum(sample.drawn.values())
        other_draw = path.is_file() and not self._is_this_draw(sample, read_settings(path))
        drawn = path.is_file() and not other_draw and path.with_suffix(".csv").is_file()

        lacking = []
        if other_draw:
            lacking.append(f"a folder of its own: {path} is of other questions or files")
        if not drawn:
            lacking += draw.lacking(study, sample, models)
        title = f"{name}, questions with their passages"
        if drawn and study.stands_for == "thesis" and study.other_data:
            title += f", not the thesis's, and so a replica ({study.other_data})"
        return Step(
            title,
            "questions",
            questions,
            questions if drawn else 0,
            partial(draw.draw, study, sample, models),
            None,
            tuple(lacking),
        )

    def _is_this_draw(self, sample: Sample, settings: Mapping[str, Any]) -> bool:
        """Whether recorded questions are a sample's: so many, by this seed, of these files."""
        drawn = {name: counts["drawn"] for name, counts in settings["benchmarks"].items()}
        if drawn != sample.drawn or settings["seed"] != self.study.seed:
            return False
        if settings.get("placed", "evenly") != self.study.placed:
            return False
        return draw.own_files(self.study, sample).items() <= settings["inputs"].items()

    # --- what a model writes

    def _names_if_shown(self) -> list[Step]:
        """Have a model make a pool of names, if any record shows names."""
        study = self.study
        # Only records that show names need them.
        label_sets: set[str] = set()
        for record in study.records.values():
            label_sets.update(cell.labels for cell in self._cells(record))
        if "names" not in label_sets:
            return []
        pool = [Task({"pool": 1}, (), (), self.wording.pool_of_names)]
        writing = _Writing(
            path=study.names(),
            name="names",
            unit="lists of names",
            model=study.names_by or study.writer,
            sampling=study.sampling("names"),
            number=1,
            words=len(self.wording.names.split()),
            files=lambda: [study.prompts / "names.txt"],
            tasks=lambda: pool,
        )
        return [self._written(writing)]

    def _paraphrases(self, name: str, sample: Sample) -> list[Step]:
        """Have a model rewrite the passages that have no rewritten twin, if any are wanted."""
        study = self.study
        benchmarks = [benchmark for benchmark in sample.drawn if benchmark not in TWINS]
        if not sample.rewritten or not benchmarks:
            return []

        # Before the draw it is known only how many passages there are at most.
        drawn = (sample.folder / "inputs.csv").is_file()
        number = 0
        for benchmark in benchmarks:
            if drawn:
                number += len(self._to_rewrite(benchmark, sample))
            else:
                number += min(sample.rewritten, sample.drawn[benchmark]) * study.documents
        longest = max(study.benchmarks[benchmark].longest for benchmark in benchmarks)
        writing = _Writing(
            path=sample.folder / "paraphrases.jsonl",
            name=f"{name}, paraphrases",
            unit="passages",
            model=study.writer,
            sampling=study.sampling("writing"),
            number=number,
            words=len(self.wording.paraphrase.split()) + longest,
            files=lambda: [study.prompts / "paraphrase.txt"],
            tasks=partial(self._rewriting_tasks, benchmarks, sample),
        )
        return [self._written(writing)]

    def _to_rewrite(self, benchmark: str, sample: Sample) -> list[str]:
        """Ids of the passages of a benchmark that a model rewrites."""
        table = design.inputs(benchmark, sample.folder)
        passages = design.first_passages(table, self.study.documents)
        questions = passages["question"].unique()[: sample.rewritten]
        documents = passages.loc[passages["question"].isin(questions), "document"]
        return documents.unique().tolist()

    def _rewriting_tasks(self, benchmarks: Sequence[str], sample: Sample) -> list[Task]:
        tasks = []
        for benchmark in benchmarks:
            passages = self.study.load(benchmark).passages
            for document in self._to_rewrite(benchmark, sample):
                key = {"benchmark": benchmark, "document": document}
                messages = partial(self.wording.rewriting, passages[document])
                tasks.append(Task(key, (document,), (), messages))
        return tasks

    def _answers(self, name: str, record: Asked, ready: bool) -> Step:
        """Have a model answer."""
        study = self.study
        sample = study.samples[record.sample]
        answers = 0
        passages = 0
        for cell in self._cells(record):
            questions = design.questions_of(record, cell)
            answers += questions
            passages += cell.k * questions
        longest = max(study.benchmarks[benchmark].longest for benchmark in record.experiments)
        writing = _Writing(
            path=study.answers(name),
            name=name,
            unit="answers",
            model=record.model,
            sampling=study.sampling("answer"),
            number=answers,
            words=self._words_of_every_prompt() + passages * longest // answers,
            files=partial(self._files_of_answers, sample),
            tasks=partial(design.tasks, study, name),
            ready=ready,
            beyond=self._answers_beyond(record),
        )
        return self._written(writing)

    def _answers_beyond(self, record: Asked) -> int:
        """Answers of a record that the thesis does not ask, such as those of the placebo."""
        answers = 0
        for benchmark, experiments in record.experiments.items():
            in_thesis = [name for name in experiments if name in CELLS and name != "placebo"]
            of_thesis = self.study.cells(benchmark, *in_thesis)
            for cell in self.study.cells(benchmark, *experiments):
                if cell not in of_thesis:
                    answers += design.questions_of(record, cell)
        return answers

    def _words_of_every_prompt(self) -> int:
        """Words of the instruction and the worked examples, which stand in each prompt."""
        texts = [self.wording.instruction, self.wording.question]
        for example in self.wording.examples:
            texts += [text for text, _ in example.passages]
        return sum(len(text.split()) for text in texts)

    def _files_of_answers(self, sample: Sample) -> list[Path]:
        """The files that prompts for answers are made of."""
        study = self.study
        files = [study.prompts / f"{name}.txt" for name in FILES[:2]]
        labelled = study.prompts / f"{LABELLED}.txt"
        if labelled.is_file():
            files.append(labelled)
        if study.examples:
            files.append(study.examples)
        files.append(study.labels)
        recorded = [
            sample.folder / "inputs.csv",
            study.names(),
            sample.folder / "paraphrases.jsonl",
            sample.folder / design.PLACES,
        ]
        return files + [path for path in recorded if path.is_file()]

    # --- writing

    def _written(self, writing: _Writing) -> Step:
        """The step that writes a record, or what is left of it."""
        model = self.study.models[writing.model]
        recorded = 0
        lacking: list[str] = []
        seconds: list[float] = []
        if writing.path.is_file() and writing.path.stat().st_size:
            settings, lines = read(writing.path, "answer", FIELDS, ())
            recorded = len(lines)
            seconds = [line["seconds"] for line in lines]
            differing = self._differing_settings(writing, model, settings)
            # It is not written over: the reader names another folder, or goes back.
            if differing:
                recorded = 0
                lacking.append(
                    f"a record of its own: {writing.path} was made with other "
                    f"{', '.join(differing)}"
                )
        number = writing.number
        if recorded >= number and not lacking:
            return Step(writing.name, writing.unit, number, number, lambda: None)

        if model.key_variable and not os.environ.get(model.key_variable):
            lacking.append(f"a key in the environment variable {model.key_variable}")
        if model.weights:
            lacking += lacking_weights(self.models, model.weights)
            lacking += lacking_device(model.device)
        if writing.ready and not lacking:
            try:
                writing.tasks()  # refused where the data lack what the config asks
            except (DataUnreachable, InputError) as error:
                lacking.append(str(error))
        seconds_a_call = sum(seconds) / len(seconds) if seconds else model.seconds
        calls = _calls(model, number - recorded, writing)
        # A model whose pace was measured takes what it took; of another its size tells.
        is_computed = model.billions and seconds_a_call is None
        return Step(
            f"{writing.name}, by {writing.model} ({calls})",
            writing.unit,
            number,
            recorded,
            partial(self._ask, model, writing),
            seconds_a_call,
            tuple(lacking),
            notes=_notes(model, writing, recorded),
            work=calls.work(model.billions * 1e9) if is_computed else None,
            calls=calls,
        )

    def _differing_settings(
        self, writing: _Writing, model: Model, settings: Mapping[str, Any]
    ) -> list[str]:
        """Names of the settings in which a record differs from what would be written now."""
        now = {
            "seed": self.study.seed,
            "inputs": _digests(writing.files()),
            "sampling": asdict(writing.sampling),
        }
        differing = [name for name, value in now.items() if settings.get(name) != value]
        if list(settings["models"]) != [model.known_as]:
            differing.append("models")
        return differing

    def _ask(self, model: Model, writing: _Writing) -> None:
        """Have a model write what a record does not hold yet."""
        tasks = writing.tasks()
        weights = (self.models or Path()) / model.weights
        writing.path.parent.mkdir(parents=True, exist_ok=True)
        with _opened(model, weights, self.study.seed) as (ask, program):
            settings = settings_of(
                seed=self.study.seed,
                models={model.known_as: _digest_of_weights(self.models, model)},
                inputs=(),
                program=program,
            )
            settings["inputs"] = _digests(writing.files())
            answering.record_answers(
                tasks,
                ask,
                writing.path,
                settings,
                writing.sampling,
                parallel=model.parallel,
                progress=partial(tqdm, desc=writing.name, mininterval=10),
            )


# --- models ---------------------------------------------------------------------------------------


def _digest_of_weights(models: Path | None, model: Model) -> str:
    """The sha256 of a model's weights, of those of all its files; empty for an endpoint's."""
    digests = [project.sha256(path) for path in weights_of(models, model.weights)]
    if not model.weights or len(digests) == 1:
        return "".join(digests)
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()


@contextmanager
def _opened(model: Model, weights: Path, seed: int) -> Iterator[tuple[answering.Model, str]]:
    """A model that can be asked, and the program that runs it."""
    if model.run_by == "transformers":
        with batch_model(weights, threads=model.threads, device=model.device) as (ask, program):
            yield ask, program
    elif model.run_by == "llama.cpp":
        ask = answering.gguf_model(weights, threads=model.threads, context=model.context)
        yield ask, f"xllamacpp {version('xllamacpp')}"
    else:
        with answering.endpoint_model(model.endpoint) as ask:
            yield ask, _program_of_endpoint(model, ask, seed)


def _program_of_endpoint(model: Model, ask: answering.Model, seed: int) -> str:
    """What an endpoint says that it is; refused where it does not answer."""
    messages = [{"role": "user", "content": "Say yes."}]
    try:
        answer = ask(messages, Sampling(0, max_tokens=4, seed=seed))
    except EndpointError as error:
        raise ValueError(f"{model.url}, {model.name}: {error}") from None
    # The name that one of our own gives itself is its build; one elsewhere changes it at any time.
    if model.weights:
        return f"endpoint {answer.fingerprint}"
    return f"endpoint {answer.answered_by or 'without a name'}"


def _digests(files: Sequence[Path]) -> dict[str, str]:
    """Files by sha256; one that is not the repository's by its name alone."""
    root = project.root()
    digests = {}
    # No path of this machine stands in a record.
    for path in files:
        if path.is_file():
            in_root = path.is_relative_to(root)
            name = path.relative_to(root).as_posix() if in_root else path.name
            digests[name] = project.sha256(path)
    return digests


# --- costs ----------------------------------------------------------------------------------------


def _calls(model: Model, number: int, writing: _Writing) -> Calls:
    """So many calls of a model."""
    most_tokens = writing.sampling.max_tokens
    return Calls(number, number * writing.words, most_tokens, model.prices, model.currency)


def _notes(model: Model, writing: _Writing, recorded: int) -> tuple[str, ...]:
    """What a reader should know before a model is asked: which it is, and what is ours."""
    notes = []
    if model.in_place_of:
        notes.append(f"{model.known_as} is in place of {model.in_place_of}, and another model")
    if model.source:
        notes.append(f"{model.known_as}: {model.source}")
    if model.url:
        key = f"with the key in {model.key_variable}" if model.key_variable else "without a key"
        notes.append(f"asked at {model.url}, {key}")
    if writing.beyond and not recorded:
        beyond = _calls(model, writing.beyond, writing)
        notes.append(f"of which no paper asks, and is ours ({beyond})")
    return tuple(notes)
