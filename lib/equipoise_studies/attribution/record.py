"""Record what language models answer when they are told who wrote their sources, for thesis chapter 5.

``equipoise study attribution`` runs the steps of `plan`: questions are drawn and their passages
retrieved, a model rewrites passages and makes names where a config needs them, and models answer.
Each goes on where it stopped, and refuses a record that another model, other prompts, inputs or
another seed made. The notebook reads only what it has written: no model runs there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from tqdm import tqdm

from equipoise.measures.attribution import exact_match
from equipoise.problems import InputError
from equipoise_compendium import project
from equipoise_compendium.registry import DataUnreachable
from equipoise_compendium.writing import write_files
from equipoise_studies.attribution import answering, design, facts
from equipoise_studies.attribution.answering import FIELDS, Task
from equipoise_studies.attribution.authorship import stable_generator
from equipoise_studies.attribution.benchmarks import Benchmark
from equipoise_studies.attribution.prompts import FILES
from equipoise_studies.attribution.study import NOTEBOOK, Model, Sample, Study
from equipoise_studies.attribution.together import batch_model
from equipoise_studies.config import Step
from equipoise_studies.recording import lacking_weights, read, read_settings, settings_of, state
from equipoise_studies.systems.endpoint import EndpointError, Sampling

__all__ = ["NOTEBOOK", "Study", "plan"]

ENCODERS = {"all-MiniLM": "all-minilm-l6-v2", "SPLADE-tiny": "splade-tiny-msmarco"}
"""Retrievers that are run here besides BM25, and the folders of their checkpoints."""

TOKENS_A_WORD = 1.4
"""Of English in a language model's vocabulary, about: for estimates alone."""

_WRITES: dict[str, Literal["names", "writing", "answer"]] = {
    "lists of names": "names",
    "passages": "writing",
    "answers": "answer",
}
TWINS = {"NQ-UTD"}
"""Benchmarks that come with every passage rewritten."""


def plan(study: Study, models: Path | None, work: Path) -> list[Step]:  # noqa: ARG001 - nothing is kept but the record
    """The steps that record a study; ``models``: folder of checkpoints and GGUF files."""
    recorder = _Recorder(study, models)
    return [step for step in recorder.steps() if step is not None]


class _Recorder:
    """Records a study."""

    def __init__(self, study: Study, models: Path | None) -> None:
        self.study, self.models = study, models

    def steps(self) -> list[Step | None]:
        """Inputs, names, paraphrases and answers."""
        samples, records = self.study.samples, self.study.records
        asked = {cell.labels for one in records.values() for cell in self._cells(one.experiments)}
        inputs = {name: self._inputs(name, sample) for name, sample in samples.items()}
        names = self._names() if "names" in asked else None
        written = {name: self._paraphrases(name, sample) for name, sample in samples.items()}
        before = {
            name: [step for step in (inputs[name], names, written[name]) if step]
            for name in samples
        }
        ready = {name: all(step.finished for step in steps) for name, steps in before.items()}
        answers = [self._answers(name, ready[one.sample]) for name, one in records.items()]
        return [*inputs.values(), names, *written.values(), *answers]

    def _cells(self, experiments: dict[str, tuple[str, ...]]) -> list[design.Cell]:
        return [
            cell
            for name, several in experiments.items()
            for cell in self.study.cells(name, *several)
        ]

    # --- questions and passages

    def _inputs(self, name: str, sample: Sample) -> Step:
        """Draw questions and retrieve their passages."""
        path, wanted = sample.folder / "inputs.json", sum(sample.drawn.values())
        held = read_settings(path) if path.is_file() else {}
        drawn = {of: part["drawn"] for of, part in held.get("benchmarks", {}).items()}
        same = drawn == sample.drawn and held["seed"] == self.study.seed
        same = same and self._own(sample).items() <= held["inputs"].items()
        there = same and path.with_suffix(".csv").is_file()
        lacks = () if there else self._wanted_first(sample)
        if held and not same:
            lacks = (f"a folder of its own: {path} is of other questions or files", *lacks)
        told, run = f"{name}, questions with their passages", partial(self._draw, sample)
        return Step(told, "questions", wanted, wanted * there, run, None, lacks)

    def _wanted_first(self, sample: Sample) -> tuple[str, ...]:
        """What is wanted before questions can be drawn."""
        of_each = {name: self.study.benchmarks[name] for name in sample.drawn}
        lacks = [
            str(path) for of in of_each.values() for path in of.files.values() if not path.is_file()
        ]
        searched = {
            one
            for name, of in of_each.items()
            if not of.files
            for one in self._retrievers(name, sample)
        }
        for retriever in sorted(searched - {"BM25"}):
            folder = ENCODERS.get(retriever)
            if folder is None:
                lacks.append(
                    f"one of the retrievers BM25, {', '.join(ENCODERS)} in place of {retriever}"
                )
            elif not ((self.models or Path()) / folder / "config.json").is_file():
                lacks.append(f"the checkpoint {folder} in --models FOLDER")
        if not lacks:
            for name, wanted in sample.drawn.items():
                lacks += self._questions_lacking(name, wanted)
        return tuple(lacks)

    def _questions_lacking(self, name: str, wanted: int) -> list[str]:
        """What is lacking of a benchmark: questions, or its texts on this machine."""
        benchmark = self.study.benchmarks[name]
        lacking = []
        try:
            # The facts say how many questions there are even where the texts are not at hand.
            if benchmark.files:
                available = len(self.study.load(name).questions)
            else:
                available = facts.questions_at_hand(name, benchmark.longest)
                self.study.load(name)
        except (DataUnreachable, InputError) as error:
            lacking.append(str(error))
            if benchmark.files:
                return lacking
        if available < wanted:
            lacking.append(f"{wanted} questions of {name}; there are {available}")
        return lacking

    def _own(self, sample: Sample) -> dict[str, str]:
        """The reader's own files, by sha256."""
        files = [path for of in sample.drawn for path in self.study.benchmarks[of].files.values()]
        return {path.name: project.sha256(path) for path in files if path.is_file()}

    def _retrievers(self, benchmark: str, sample: Sample) -> tuple[str, ...]:
        return sample.retrievers or self.study.benchmarks[benchmark].found_by

    def _draw(self, sample: Sample) -> None:
        from equipoise_studies.systems import rankers
        from equipoise_studies.systems.encoders import load_model
        from equipoise_studies.systems.lexical import Collection, bm25

        def lexical(texts: list[str], passages: dict[str, str]) -> Any:
            collection = Collection.from_texts(passages)
            return bm25(collection, collection.queries(texts))

        ranks: dict[str, Callable[[list[str], dict[str, str]], Any]] = {"BM25": lexical}
        weights: dict[str, str] = {}
        if {one for name in sample.drawn for one in self._retrievers(name, sample)} & set(ENCODERS):
            folders = {name: (self.models or Path()) / folder for name, folder in ENCODERS.items()}
            dense, splade = (
                load_model(folders["all-MiniLM"]),
                load_model(folders["SPLADE-tiny"], "masked-lm"),
            )
            weights = {ENCODERS["all-MiniLM"]: dense.sha256, ENCODERS["SPLADE-tiny"]: splade.sha256}
            ranks["all-MiniLM"] = lambda texts, passages: rankers.dense_scores(
                *(rankers.token_vectors(dense, some) for some in (texts, [*passages.values()]))
            )
            ranks["SPLADE-tiny"] = lambda texts, passages: rankers.splade_scores(
                texts, [*passages.values()], splade
            )
        rows, counts = [], {}
        for name, most in sample.drawn.items():
            held = self.study.load(name)
            order = stable_generator(self.study.seed, name).permutation(len(held.questions))[:most]
            drawn, passages = held.questions.iloc[order], dict(sorted(held.passages.items()))
            for retriever in self._retrievers(name, sample):
                if held.given:
                    chosen = [held.given[retriever][question] for question in drawn["question"]]
                else:
                    found = ranks[retriever](drawn["text"].tolist(), passages)
                    depth, each = (
                        max(10, self.study.depth()),
                        zip(drawn.itertuples(), found, strict=True),
                    )
                    chosen = [
                        _retrieved(held, row, score, [*passages], depth) for row, score in each
                    ]
                for question, documents in zip(drawn["question"], chosen, strict=True):
                    rows += [
                        (name, retriever, question, rank, document)
                        for rank, document in enumerate(documents)
                    ]
            counts[name] = {
                "questions": len(held.questions),
                "drawn": len(drawn),
                "passages": len(passages),
            }
        packages = ("numpy", "scikit-learn", *(("torch", "transformers") if weights else ()))
        settings = settings_of(
            seed=self.study.seed, models=weights, packages=packages, benchmarks=counts
        )
        settings["inputs"] |= self._own(sample)
        longest = {name: of.longest for name, of in self.study.benchmarks.items()}
        state(sample.folder / "inputs.json", settings | {"longest passage, words": longest})
        write_files({sample.folder / "inputs.csv": pd.DataFrame(rows, columns=design.INPUTS)})

    # --- what a model writes

    def _names(self) -> Step:
        """Have a model make a pool of names."""
        study, wording = self.study, self.study.wording()
        pool = [Task({"pool": 1}, (), (), wording.pool_of_names)]
        what = study.names(), "names", "lists of names", study.names_by or study.writer
        return self._written(
            *what,
            1,
            len(wording.names.split()),
            lambda: [study.prompts / "names.txt"],
            lambda: pool,
        )

    def _paraphrases(self, name: str, sample: Sample) -> Step | None:
        """Have a model rewrite the passages that have no rewritten twin."""
        benchmarks = [of for of in sample.drawn if of not in TWINS]
        if not sample.rewritten or not benchmarks:
            return None
        study, wording = self.study, self.study.wording()

        def chosen(of: str) -> list[str]:
            first = design.first_passages(design.inputs(of, sample.folder), study.documents)
            asked = first["question"].unique()[: sample.rewritten]
            return first.loc[first["question"].isin(asked), "document"].unique().tolist()

        def tasks() -> list[Task]:
            texts = {of: study.load(of).passages for of in benchmarks}
            return [
                Task(
                    {"benchmark": of, "document": one},
                    (one,),
                    (),
                    partial(wording.rewriting, texts[of][one]),
                )
                for of in benchmarks
                for one in chosen(of)
            ]

        drawn = (sample.folder / "inputs.csv").is_file()
        wanted = sum(len(chosen(of)) for of in benchmarks) if drawn else None
        most = (
            None
            if drawn
            else sum(min(sample.rewritten, sample.drawn[of]) for of in benchmarks) * study.documents
        )
        words = len(wording.paraphrase.split()) + max(
            study.benchmarks[of].longest for of in benchmarks
        )
        what = sample.folder / "paraphrases.jsonl", f"{name}, paraphrases", "passages", study.writer
        return self._written(
            *what, wanted or most, words, lambda: [study.prompts / "paraphrase.txt"], tasks
        )

    def _answers(self, name: str, ready: bool) -> Step:
        """Have a model answer."""
        study, asked, wording = self.study, self.study.records[name], self.study.wording()
        sample, cells = study.samples[asked.sample], self._cells(asked.experiments)
        longest = max(study.benchmarks[of].longest for of in asked.experiments)
        shown = sum(cell.k * design.questions_of(asked, cell) for cell in cells) * longest
        wanted = sum(design.questions_of(asked, cell) for cell in cells)
        fixed = [
            wording.instruction,
            wording.question,
            *(text for one in wording.examples for text, _ in one.passages),
        ]
        words = sum(len(text.split()) for text in fixed) + shown // wanted

        def files() -> list[Path]:
            prompts = [study.prompts / f"{one}.txt" for one in FILES[:2]] + (
                [study.examples] if study.examples else []
            )
            made = [
                sample.folder / "inputs.csv",
                study.names(),
                sample.folder / "paraphrases.jsonl",
            ]
            return [*prompts, study.labels, *(path for path in made if path.is_file())]

        what = study.answers(name), name, "answers", asked.model
        return self._written(*what, wanted, words, files, partial(design.tasks, study, name), ready)

    def _written(
        self,
        into: Path,
        name: str,
        unit: str,
        model: str,
        wanted: int | None,
        words: int,
        files: Callable[[], list[Path]],
        tasks: Callable[[], list[Task]],
        ready: bool = False,
    ) -> Step:
        """A record that a model writes; ``words``: of a prompt, about; ``ready``: whether all before it is recorded."""
        of = self.study.models[model]
        sampling = self.study.sampling(_WRITES[unit])
        held, lacks, taken = 0, [], list[float]()
        if into.is_file() and into.stat().st_size:
            stated, lines = read(into, "answer", FIELDS, ())
            held, taken = len(lines), [line["seconds"] for line in lines]
            asked = {
                "seed": self.study.seed,
                "inputs": _digests(files()),
                "sampling": asdict(sampling),
            }
            others = [key for key, value in asked.items() if stated.get(key) != value]
            others += [] if [*stated["models"]] == [of.known_as] else ["models"]
            if others:
                held, lacks = (
                    0,
                    [f"a record of its own: {into} was made with other {', '.join(others)}"],
                )
        if wanted is not None and held >= wanted and not lacks:
            return Step(name, unit, wanted, wanted, lambda: None)
        lacks += lacking_weights(self.models, of.weights) if of.weights else []
        if ready and not lacks:
            try:
                tasks()  # refused where the data lack what the config asks
            except (DataUnreachable, InputError) as error:
                lacks.append(str(error))
        left = None if wanted is None else wanted - held
        run = partial(self._ask, of, into, name, sampling, files, tasks)
        seconds = sum(taken) / len(taken) if taken else of.seconds
        return Step(
            f"{name}, by {model}{_cost(of, left, words, sampling)}",
            unit,
            wanted,
            held,
            run,
            seconds,
            tuple(lacks),
        )

    def _ask(
        self,
        of: Model,
        into: Path,
        name: str,
        sampling: Sampling,
        files: Callable[[], list[Path]],
        tasks: Callable[[], list[Task]],
    ) -> None:
        """Have a model write what a record does not hold yet."""
        wanted, path = tasks(), (self.models or Path()) / of.weights
        into.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            if of.run_by == "transformers":
                model, program = stack.enter_context(batch_model(path, threads=of.threads))
            elif of.run_by == "llama.cpp":
                model = answering.gguf_model(path, threads=of.threads, context=of.context)
                program = f"xllamacpp {version('xllamacpp')}"
            else:
                model = stack.enter_context(answering.endpoint_model(of.endpoint))
                try:
                    told = model(
                        [{"role": "user", "content": "Say yes."}],
                        Sampling(0, max_tokens=4, seed=self.study.seed),
                    )
                except EndpointError as error:
                    raise ValueError(f"{of.url}, {of.name}: {error}") from None
                # the name that one of our own gives itself is its build; one elsewhere changes it
                # at any time
                program = f"endpoint {told.fingerprint if of.weights else told.answered_by or 'without a name'}"
            weights: dict[str, str | Path] = {of.known_as: path if of.weights else ""}
            settings = settings_of(seed=self.study.seed, models=weights, inputs=(), program=program)
            settings["inputs"] = _digests(files())
            bar = partial(tqdm, desc=name, mininterval=10)
            answering.record_answers(
                wanted, model, into, settings, sampling, parallel=of.parallel, progress=bar
            )


def _retrieved(
    held: Benchmark, row: Any, scores: Any, names: Sequence[str], depth: int
) -> list[str]:
    """The relevant passage of a question, and the first ones retrieved that are not judged and hold no gold answer."""
    ranked = [
        names[place] for place in sorted(range(len(names)), key=lambda i: (-scores[i], names[i]))
    ]
    others = (
        document
        for document in ranked
        if document not in (row.relevant, *row.judged)
        and not exact_match(held.passages[document], row.gold)
        and not exact_match(held.rewritten.get(document, ""), row.gold)
    )
    return [row.relevant, *islice(others, depth - 1)]


def _digests(files: Sequence[Path]) -> dict[str, str]:
    """Files by sha256; one that is not the repository's by its name alone."""
    root = project.root()
    short = {
        path: path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
        for path in files
    }
    return {name: project.sha256(path) for path, name in short.items() if path.is_file()}


def _cost(model: Model, calls: int | None, words: int, sampling: Sampling) -> str:
    """What so many calls take, in words."""
    if calls is None:
        return ""
    prompt, answer = calls * words * TOKENS_A_WORD, calls * sampling.max_tokens
    told = f" (calls: {calls:,}, tokens of prompts about {_round(prompt)}, of answers at most {_round(answer)}"
    if model.prices:
        most = (prompt * model.prices[0] + answer * model.prices[1]) / 1e6
        told += f", about {_round(most)} {model.currency} at most"
    return f"{told})"


def _round(number: float) -> str:
    return f"{number / 1e6:,.1f} million" if number >= 1e6 else f"{number:,.0f}"
