"""Record what the rankers of thesis chapter 2 say, as ``equipoise study query_by_example`` does.

Every system is trained and scored for itself, and kept in the folder of work, so that what was
stopped goes on where it was. A ranker needs PyTorch (``pip install '.[models]'``), word
pieces need tokenizers alone. Notebooks read only what is written here at the end:
``scores.csv.gz``, ``example.csv`` and ``record.json``.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import time
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise.problems import InputError
from equipoise_compendium import project
from equipoise_compendium.registry import DataUnreachable
from equipoise_compendium.writing import write_files
from equipoise_studies.config import Step
from equipoise_studies.query_by_example.data import PAIR, QueryByExample, text_of
from equipoise_studies.query_by_example.scidocs import TASKS
from equipoise_studies.query_by_example.self_supervision import training_papers
from equipoise_studies.query_by_example.study import LEARNED, NOTEBOOK, Study, System
from equipoise_studies.query_by_example.systems import BM25, lexical_scores
from equipoise_studies.query_by_example.work import work_of
from equipoise_studies.recording import settings_of, wrong_weights
from equipoise_studies.records import refuse_others
from equipoise_studies.systems import lacking_device
from equipoise_studies.systems.tokenisation import domain_wordpiece, wordpiece

__all__ = ["NOTEBOOK", "Study", "plan"]

PACKAGES = ("numpy", "scipy", "torch", "transformers", "tokenizers")
"""Distributions whose versions a record states."""

LEXICAL = {"BM25": ("bm25", BM25), "LM": ("lm", {})}
"""Lexical models whose word pieces are recorded, by the thesis's names."""

CHECKPOINT_FILES = ("config.json", "tokenizer.json", "model.safetensors")


def plan(study: Study, models: Path | None, work: Path) -> list[Step]:
    """The steps that record a study.

    ``models``: folder of checkpoints. ``work``: folder of what the steps keep. Where the record is
    there, no data is asked for.
    """
    return _Recorder(study, models or Path("models"), work).steps()


class _Recorder:
    """Plans and carries out what is recorded of a study.

    ``collection``: the data set with its texts, None where it cannot be had here; ``unreachable``
    then says why.
    """

    def __init__(self, study: Study, models: Path, work: Path) -> None:
        self.study, self.models, self.work = study, models, work
        self.collection: QueryByExample | None = None
        self.unreachable = ""
        # States of frozen encoders, which trainers share.
        self.states: dict[bytes, Any] = {}

    def steps(self) -> list[Step]:
        """The collection, word pieces, each system, and the record of all."""
        if self._is_recorded():
            return [Step("all together", "records", 1, 1, self._assemble)]
        self._load()
        pieces = [self._word_pieces_step(name) for name in self.study.word_pieces]
        rankers = []
        run_files = []
        for name, system in self.study.systems.items():
            if system.kind in LEARNED:
                rankers.append(self._system_step(name))
            elif system.runs is not None:
                run_files.append(self._run_files_step(name, system))
        # What has to be had stands first, as the list that it is.
        to_have = [self._collection_step(), *self._checkpoint_steps(), *run_files]
        if not all(step.finished for step in rankers):
            to_have.append(self._machine_step())
        return [*to_have, *pieces, *rankers, Step("all together", "records", 1, 0, self._assemble)]

    def _load(self) -> None:
        """Read the collection, or keep the reason why it cannot be read."""
        try:
            self.collection = self.study.dataset()
        except (DataUnreachable, InputError, OSError) as error:
            lines = str(error).splitlines()
            self.unreachable = lines[0]
            if len(lines) > 1:
                self.unreachable += f", and {len(lines) - 1} more"

    @property
    def dataset(self) -> QueryByExample:
        """The collection, which steps need."""
        if self.collection is None:
            self._load()
        if self.collection is None:
            raise DataUnreachable(self.unreachable)
        return self.collection

    # --- steps and what they lack

    def _collection_step(self) -> Step:
        lacks = (self.unreachable,) if self.unreachable else ()
        source = self.study.collection.source
        if lacks and source:
            lacks = (f"{self.unreachable}; {source}",)
        about = self.study.collection.about
        if self.study.stands_for == "thesis" and not lacks and self.study.other_data:
            about += f", of which this is none, and so a replica ({self.study.other_data})"
        return _to_have(about, "collections", lacks)

    def _checkpoint_steps(self) -> list[Step]:
        """The checkpoints of what is not kept yet, and where they are had."""
        wanted: dict[str, tuple[str, ...]] = {}
        for name, pieces in self.study.word_pieces.items():
            if pieces.tokenizer and not self._pieces_path(name).is_file():
                wanted[pieces.tokenizer] = CHECKPOINT_FILES[1:2]
        for name, system in self.study.systems.items():
            seeds = self.study.seeds_of(name)
            kept = all(self._scores_path(name, seed).is_file() for seed in seeds)
            if system.kind in LEARNED and not kept:
                wanted[system.model] = CHECKPOINT_FILES
        steps = []
        for folder, files in wanted.items():
            lacks = self._missing(folder, files)
            source = self.study.checkpoints.get(folder, "")
            if lacks and source:
                lacks = (f"{lacks[0]}; {source}", *lacks[1:])
            steps.append(_to_have(folder, "checkpoints", lacks))
        return steps

    def _machine_step(self) -> Step:
        """What runs a model."""
        return _to_have(f"PyTorch on {self.study.device}", "machines", self._missing_machinery())

    def _word_pieces_step(self, name: str) -> Step:
        done = int(self._pieces_path(name).is_file())
        return Step(name, "vocabularies", 1, done, partial(self._word_pieces, name))

    def _system_step(self, name: str) -> Step:
        system, seeds = self.study.systems[name], self.study.seeds_of(name)
        done = sum(self._scores_path(name, seed).is_file() for seed in seeds)
        lacks = self._too_few_papers(system) if done < len(seeds) else ()
        work = work_of(self.study, system, self.collection)
        return Step(
            name,
            "models",
            len(seeds),
            done,
            partial(self._learn, name),
            lacks=lacks,
            notes=() if system.printed else ("held against no printed cell",),
            work=work * (len(seeds) - done),
        )

    def _run_files_step(self, name: str, system: System) -> Step:
        tasks = TASKS if self.collection is None else self.collection.tasks
        paths = [Path(str(system.runs).replace("{task}", task)) for task in tasks]
        lacks = tuple(f"{path}, a TREC run file" for path in paths if not path.is_file())
        done = len(paths) - len(lacks)
        if lacks and system.source:
            lacks = (f"{lacks[0]}; {system.source}", *lacks[1:])
        return Step(name, "run files", len(paths), done, lambda: None, lacks=lacks, state="at hand")

    def _missing(self, folder: str, names: tuple[str, ...]) -> tuple[str, ...]:
        """Which files of a checkpoint are not there, or else what is wrong with its weights."""
        paths = [self.models / folder / name for name in names]
        absent = [path.name for path in paths if not path.is_file()]
        if absent:
            return (f"{' and '.join(absent)} of the checkpoint {folder} in --models FOLDER",)
        faults = []
        for path in paths:
            fault = wrong_weights(path) if path.suffix == ".safetensors" else ""
            if fault:
                faults.append(f"weights in {path}: {fault}")
        return tuple(faults)

    def _too_few_papers(self, system: System) -> tuple[str, ...]:
        """Papers that training without judgements asks for and the collection does not hold."""
        needs = [stage.papers for stage in system.training if stage.pairs != "judgements"]
        if not needs or self.collection is None:
            return ()
        available = len(training_papers(self.collection, seed=0)[0])
        if available >= max(needs):
            return ()
        return (f"{max(needs)} papers to train on; the collection has {available} (`papers`)",)

    def _missing_machinery(self) -> tuple[str, ...]:
        """What this machine lacks to run a model."""
        if not find_spec("torch") or not find_spec("transformers"):
            return ("PyTorch and transformers: pip install '.[models]'",)
        without_device = lacking_device(self.study.device)
        if without_device:
            return without_device
        return ()

    # --- what is kept on the way

    def _digest(self, *specific: Any) -> str:
        """Names a kept file by what its content follows from."""
        study = asdict(self.study)
        # The whole collection's texts: what a ranker learns from is not its pairs alone.
        del study["collection"]["source"]
        shared = {
            "collection": study["collection"],
            "cut": study["seeds"][0],
            "each_task": study["each_task"],
            "papers": hashlib.sha256(self.dataset.papers.to_csv().encode()).hexdigest(),
        }
        text = json.dumps([shared, *specific], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def _pieces_path(self, name: str) -> Path:
        """Where the scores over word pieces are kept."""
        if self.collection is None:
            return self.work / "none"
        folder = self.study.word_pieces[name].tokenizer
        tokenizer = self.models / folder / "tokenizer.json"
        made_by = ""
        if folder and tokenizer.is_file():
            made_by = project.sha256(tokenizer)
        return self.work / f"pieces-{name}-{self._digest(made_by)}.parquet"

    def _scores_path(self, name: str, seed: int) -> Path:
        """Where the scores of a system with a seed are kept."""
        system = self.study.systems[name]
        weights = self.models / system.model / "model.safetensors"
        if self.collection is None or not weights.is_file():
            return self.work / "none"
        # What it is called, and how many seeds there are beside this one, changes no score.
        settings = _stated(asdict(system)) | {"label": "", "printed": "", "seeds": 0}
        expanding = None
        if system.expanded_by:
            expanding = _stated(asdict(self.study.systems[system.expanded_by]))
        digest = self._digest(settings, expanding, seed, project.sha256(weights))
        return self.work / f"scores-{name}-{seed}-{digest}.parquet"

    def _word_pieces(self, name: str) -> None:
        """Keep the lexical models' scores over a vocabulary of word pieces."""
        folder = self.study.word_pieces[name].tokenizer
        ranked = self.study.scored(self.dataset)
        if folder:
            tokenise = wordpiece(self.models / folder / "tokenizer.json")
        else:
            candidates = sorted(set(ranked.judgements["document"]))
            tokenise = domain_wordpiece(text_of(ranked.papers)[candidates])
        scores = ranked.pairs
        for model, (kind, settings) in LEXICAL.items():
            table = lexical_scores(ranked, tokenise, model=kind, **settings)
            scores[f"{model} {name}"] = table["score"]
        self.work.mkdir(parents=True, exist_ok=True)
        write_files({self._pieces_path(name): scores})

    def _learn(self, name: str) -> None:
        """Train a system and keep its scores, seed by seed."""
        # Not above: a plan is made where PyTorch is not installed, too.
        from equipoise_studies.query_by_example.trainer import Trainer

        for seed in self.study.seeds_of(name):
            path = self._scores_path(name, seed)
            if path.is_file():  # of a run that was stopped
                continue
            began = time.perf_counter()
            weights = self.work / "weights"
            trainer = Trainer(
                self.study, self.dataset, name, seed, self.models, weights, self.states
            )
            scores, measured, example = trainer.run()
            measured["seconds"] = round(time.perf_counter() - began)
            measured["versions"] = {package: version(package) for package in PACKAGES}
            self.work.mkdir(parents=True, exist_ok=True)
            note = {"measured": measured, "example": example.to_dict("records")}
            write_files({path.with_suffix(".json"): json.dumps(note), path: scores})

    # --- the record

    def _requested(self) -> dict[str, Any]:
        """What a record states of a study."""
        study = asdict(self.study)
        names = ("stands_for", "seeds", "each_task", "device", "threads", "word_pieces")
        requested = {name: study[name] for name in names}
        # A record does not depend on where files lie, nor on what tables call a system.
        del study["collection"]["folder"], study["collection"]["source"]
        requested["collection"] = study["collection"]
        requested["systems"] = {}
        for name, system in study["systems"].items():
            if system["kind"] in LEARNED:
                del system["label"], system["printed"], system["runs"]
                requested["systems"][name] = _stated(system)
        return json.loads(json.dumps(requested))

    def _is_recorded(self) -> bool:
        """Whether the record that is there states just what the study asks."""
        for name in ("record.json", "scores.csv.gz", "example.csv"):
            if not (self.study.record / name).is_file():
                return False
        return self._requested().items() <= self.study.settings().items()

    def _is_extended(self) -> bool:
        """Whether the study asks for what the record states, and for more systems or seeds."""
        if not (self.study.record / "record.json").is_file():
            return False
        stated, requested = self.study.settings(), self._requested()
        for name in requested:
            if name not in ("systems", "seeds") and stated[name] != requested[name]:
                return False
        if stated["seeds"] != requested["seeds"][: len(stated["seeds"])]:
            return False
        for name, system in stated["systems"].items():
            if name not in requested["systems"]:
                return False
            if system | {"seeds": 0} != requested["systems"][name] | {"seeds": 0}:
                return False
        return True

    def _assemble(self) -> None:
        """Write the record from what the steps have kept."""
        ranked = self.study.scored(self.dataset)
        scores = ranked.judgements[PAIR].sort_values(PAIR, ignore_index=True)
        for name in self.study.word_pieces:
            of_pieces = pd.read_parquet(self._pieces_path(name))
            scores = scores.merge(of_pieces, on=["query", "document"], how="left")

        measured: dict[str, Any] = {}
        versions: dict[str, str] = {}
        examples: list[dict[str, Any]] = []
        for name, system in self.study.systems.items():
            if system.kind not in LEARNED:
                continue
            for seed in self.study.seeds_of(name):
                path, column = self._scores_path(name, seed), f"{name}.{seed}"
                of_system = pd.read_parquet(path).rename(columns={"score": column})
                scores = scores.merge(of_system, on=PAIR, how="left")
                note = json.loads(path.with_suffix(".json").read_text())
                versions |= note["measured"].pop("versions")
                measured[column] = note["measured"]
                if seed == self.study.seeds[0]:
                    examples += [{"system": name, **row} for row in note["example"]]
        self._write_record(scores, measured, versions, examples)

    def _write_record(
        self,
        scores: pd.DataFrame,
        measured: dict[str, Any],
        versions: dict[str, str],
        examples: list[dict[str, Any]],
    ) -> None:
        folders = sorted({system.model for system in self.study.systems.values() if system.model})
        weights = {name: self.models / name / "model.safetensors" for name in folders}
        settings = settings_of(models=weights, **self._requested()) | {"versions": versions}
        # Only upstream files: that notebooks or configs lie in the repository is no input.
        inputs = settings["inputs"].items()
        settings["inputs"] = {name: sha for name, sha in inputs if name.startswith("registry:")}

        record = self.study.record
        record.mkdir(parents=True, exist_ok=True)
        stated = json.loads(json.dumps(settings))
        # A record of fewer systems or seeds gives way; another one is refused.
        if (record / "record.json").is_file() and not self._is_extended():
            settings_so_far = self.study.settings()
            settings_so_far.pop("measured", None)
            refuse_others(record / "record.json", settings_so_far, stated)
        lines = scores.to_csv(index=False, float_format="%.6g", lineterminator="\n")
        example = pd.DataFrame(examples, columns=["system", "place", "token", "weight"])
        # gzip's own time is left out, so that the same scores make the same bytes.
        files: dict[Path, Any] = {
            record / "scores.csv.gz": gzip.compress(lines.encode(), mtime=0),
            record / "example.csv": example.to_csv(
                index=False, float_format="%.5g", lineterminator="\n"
            ),
        }
        stated["measured"] = measured
        # Last: what is stated is taken for recorded.
        files[record / "record.json"] = json.dumps(stated, indent=1, sort_keys=True) + "\n"
        write_files(files)


def _to_have(name: str, unit: str, lacks: tuple[str, ...]) -> Step:
    """A step that says whether something is at hand; nothing is recorded of it."""
    return Step(name, unit, 1, int(not lacks), lambda: None, lacks=lacks, state="at hand")


def _stated(system: dict[str, Any]) -> dict[str, Any]:
    """The settings of a system, without those that came later and change no record."""
    del system["source"]
    if system["input"] == "plain":
        del system["input"]
    for stage in system["training"]:
        if stage["query_length"] == 0:
            del stage["query_length"]
    return system
