"""Record what the rankers of thesis chapter 2 say: ``equipoise study query_by_example`` runs the steps of `plan`.

Every system is trained and scored for itself, and kept in the folder of work, so that what was
stopped goes on where it was. A ranker needs PyTorch (``pip install 'equipoise[models]'``), word
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
from equipoise_studies.query_by_example.data import QueryByExample, text_of
from equipoise_studies.query_by_example.scidocs import TASKS
from equipoise_studies.query_by_example.self_supervision import training_papers
from equipoise_studies.query_by_example.study import LEARNED, NOTEBOOK, PAIR, Study, System
from equipoise_studies.query_by_example.systems import BM25, lexical_scores
from equipoise_studies.recording import settings_of, state, wrong_weights
from equipoise_studies.systems import models_package
from equipoise_studies.systems.tokenisation import domain_wordpiece, wordpiece

__all__ = ["NOTEBOOK", "Study", "plan"]

PACKAGES = ("numpy", "scipy", "torch", "transformers", "tokenizers")
LEXICAL = {"BM25": ("bm25", BM25), "LM": ("lm", {})}
"""Lexical models whose word pieces are recorded, by the thesis's names."""


def plan(study: Study, models: Path | None, work: Path) -> list[Step]:
    """The steps that record a study.

    ``models``: folder of checkpoints. ``work``: folder of what the steps keep.
    """
    return _Recorder(study, models or Path("models"), work).steps()


class _Recorder:
    def __init__(self, study: Study, models: Path, work: Path) -> None:
        self.study, self.models, self.work = study, models, work
        self.held: QueryByExample | None = None
        self.unreachable = ""
        try:
            self.held = study.dataset()
        except (DataUnreachable, InputError, OSError) as error:
            first, *others = str(error).splitlines()
            self.unreachable = f"{first}{f', and {len(others)} more' if others else ''}"
        self.states: dict[bytes, Any] = {}

    @property
    def dataset(self) -> QueryByExample:
        if self.held is None:
            raise DataUnreachable(self.unreachable)
        return self.held

    def steps(self) -> list[Step]:
        """Word pieces, each system, and the record of all."""
        lacks = (self.unreachable,) if self.unreachable else ()
        if self._recorded():
            return [Step("all together", "records", 1, 1, self._assemble)]
        able = self._unable()
        steps = [
            Step(
                self.study.collection.about,
                "collections",
                1,
                int(not lacks),
                lambda: None,
                None,
                lacks,
            )
        ]
        for name, pieces in self.study.word_pieces.items():
            needed = (
                () if not pieces.tokenizer else self._missing(pieces.tokenizer, ("tokenizer.json",))
            )
            done = int(self._pieces(name).is_file())
            steps.append(
                Step(name, "vocabularies", 1, done, partial(self._word_pieces, name), None, needed)
            )
        for name, system in self.study.systems.items():
            if system.kind in LEARNED:
                kept = [self._kept(name, seed).is_file() for seed in self.study.seeds_of(name)]
                needed = self._missing(
                    system.model, ("config.json", "tokenizer.json", "model.safetensors")
                )
                needed += (*self._too_few(system), *able)
                needed = () if all(kept) else needed
                steps.append(
                    Step(
                        name,
                        "models",
                        len(kept),
                        sum(kept),
                        partial(self._learn, name),
                        None,
                        needed,
                    )
                )
            elif system.runs is not None:
                tasks = TASKS if self.held is None else self.held.tasks
                paths = [Path(str(system.runs).replace("{task}", task)) for task in tasks]
                absent = tuple(f"{path}, a TREC run file" for path in paths if not path.is_file())
                steps.append(
                    Step(
                        name,
                        "run files",
                        len(paths),
                        len(paths) - len(absent),
                        lambda: None,
                        None,
                        absent,
                    )
                )
        return [*steps, Step("all together", "records", 1, 0, self._assemble)]

    def _missing(self, folder: str, names: tuple[str, ...]) -> tuple[str, ...]:
        paths = [self.models / folder / name for name in names]
        absent = [path.name for path in paths if not path.is_file()]
        if absent:
            return (f"{' and '.join(absent)} of the checkpoint {folder} in --models FOLDER",)
        weights = [path for path in paths if path.suffix == ".safetensors"]
        return tuple(
            f"weights in {path}: {wrong}" for path in weights if (wrong := wrong_weights(path))
        )

    def _too_few(self, system: System) -> tuple[str, ...]:
        """Papers that training without judgements asks for and the collection does not hold."""
        wanted = max(
            (stage.papers for stage in system.training if stage.pairs != "judgements"), default=0
        )
        if not wanted or self.held is None:
            return ()
        there = len(training_papers(self.held, seed=0)[0])
        return (
            ()
            if there >= wanted
            else (f"{wanted} papers to train on; the collection has {there} (`papers`)",)
        )

    def _unable(self) -> tuple[str, ...]:
        """What this machine lacks to run a model."""
        if not find_spec("torch") or not find_spec("transformers"):
            return ("PyTorch and transformers: pip install 'equipoise[models]'",)
        if self.study.device == "cuda" and not models_package("torch").cuda.is_available():
            return ("a GPU: the config asks for cuda, and PyTorch finds none",)
        return ()

    # --- what is kept on the way

    def _digest(self, *what: Any) -> str:
        study = asdict(self.study)
        shared = {
            "collection": study["collection"],
            "cut": study["seeds"][0],
            "each_task": study["each_task"],
        }
        shared["papers"] = hashlib.sha256(self.dataset.papers.to_csv().encode()).hexdigest()
        text = json.dumps([shared, *what], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def _pieces(self, name: str) -> Path:
        if self.held is None:
            return self.work / "none"
        pieces = self.study.word_pieces[name]
        path = self.models / pieces.tokenizer / "tokenizer.json"
        made_by = project.sha256(path) if pieces.tokenizer and path.is_file() else ""
        return self.work / f"pieces-{name}-{self._digest(made_by)}.parquet"

    def _kept(self, name: str, seed: int) -> Path:
        system = self.study.systems[name]
        weights = self.models / system.model / "model.safetensors"
        if self.held is None or not weights.is_file():
            return self.work / "none"
        what = asdict(system) | {"label": "", "printed": "", "seeds": 0}
        by = asdict(self.study.systems[system.expanded_by]) if system.expanded_by else None
        return (
            self.work
            / f"scores-{name}-{seed}-{self._digest(what, by, seed, project.sha256(weights))}.parquet"
        )

    def _word_pieces(self, name: str) -> None:
        pieces, ranked = self.study.word_pieces[name], self.study.scored(self.dataset)
        if pieces.tokenizer:
            tokenise = wordpiece(self.models / pieces.tokenizer / "tokenizer.json")
        else:
            tokenise = domain_wordpiece(
                text_of(ranked.papers)[sorted(set(ranked.judgements["document"]))]
            )
        found = ranked.pairs
        for model, (kind, settings) in LEXICAL.items():
            found[f"{model} {name}"] = lexical_scores(ranked, tokenise, model=kind, **settings)[
                "score"
            ]
        self.work.mkdir(parents=True, exist_ok=True)
        write_files({self._pieces(name): found})

    def _learn(self, name: str) -> None:
        from equipoise_studies.query_by_example.trainer import Trainer

        for seed in self.study.seeds_of(name):
            path = self._kept(name, seed)
            if path.is_file():
                continue
            began = time.perf_counter()
            trainer = Trainer(
                self.study,
                self.dataset,
                name,
                seed,
                self.models,
                self.work / "weights",
                self.states,
            )
            scores, measured, example = trainer.run()
            measured |= {"seconds": round(time.perf_counter() - began)}
            measured |= {"versions": {package: version(package) for package in PACKAGES}}
            self.work.mkdir(parents=True, exist_ok=True)
            note = {"measured": measured, "example": example.to_dict("records")}
            write_files({path.with_suffix(".json"): json.dumps(note), path: scores})

    # --- the record

    def _asked(self) -> dict[str, Any]:
        """What a record states of a study."""
        study = asdict(self.study)
        learned = {
            name: system for name, system in study["systems"].items() if system["kind"] in LEARNED
        }
        for system in learned.values():
            del system["label"], system["printed"], system["runs"]
        names = ("stands_for", "seeds", "each_task", "device", "threads", "word_pieces")
        asked = {name: study[name] for name in names} | {"systems": learned}
        asked["collection"] = {
            key: value for key, value in study["collection"].items() if key != "folder"
        }
        return json.loads(json.dumps(asked))

    def _recorded(self) -> bool:
        """Whether the record that is there states just what the study asks."""
        if not all(
            (self.study.record / name).is_file()
            for name in ("record.json", "scores.csv.gz", "example.csv")
        ):
            return False
        return self._asked().items() <= self.study.settings().items()

    def _extended(self) -> bool:
        """Whether the study asks for what the record that is there states, and for more systems or seeds."""
        if not (self.study.record / "record.json").is_file():
            return False
        held, asked = self.study.settings(), self._asked()
        same = [name for name in asked if name not in ("systems", "seeds")]
        seeds = len(held["seeds"])
        kept = {name: system | {"seeds": 0} for name, system in held["systems"].items()}
        wanted = {name: system | {"seeds": 0} for name, system in asked["systems"].items()}
        alike = (
            all(held[name] == asked[name] for name in same)
            and held["seeds"] == asked["seeds"][:seeds]
        )
        return alike and kept.items() <= wanted.items()

    def _assemble(self) -> None:
        ranked = self.study.scored(self.dataset)
        scores = ranked.judgements[PAIR].sort_values(PAIR, ignore_index=True)
        for name in self.study.word_pieces:
            scores = scores.merge(pd.read_parquet(self._pieces(name)), on=PAIR[1:], how="left")
        measured: dict[str, Any] = {}
        versions: dict[str, str] = {}
        examples: list[dict[str, Any]] = []
        for name, system in self.study.systems.items():
            for seed in self.study.seeds_of(name) if system.kind in LEARNED else ():
                path = self._kept(name, seed)
                one = pd.read_parquet(path).rename(columns={"score": f"{name}.{seed}"})
                scores = scores.merge(one, on=PAIR, how="left")
                note = json.loads(path.with_suffix(".json").read_text())
                versions |= note["measured"].pop("versions")
                measured[f"{name}.{seed}"] = note["measured"]
                if seed == self.study.seeds[0]:
                    examples += [{"system": name, **row} for row in note["example"]]
        folders = {one.model for one in self.study.systems.values() if one.model}
        weights = {name: self.models / name / "model.safetensors" for name in sorted(folders)}
        settings = settings_of(models=weights, **self._asked()) | {"versions": versions}
        settings["inputs"] = {
            name: sha for name, sha in settings["inputs"].items() if name.startswith("registry:")
        }
        self.study.record.mkdir(parents=True, exist_ok=True)
        if self._extended():
            (self.study.record / "record.json").unlink()
        state(self.study.record / "record.json", settings, measured)
        lines = scores.to_csv(index=False, float_format="%.6g", lineterminator="\n")
        example = pd.DataFrame(examples, columns=["system", "place", "token", "weight"])
        shown = example.to_csv(index=False, float_format="%.5g", lineterminator="\n")
        files: dict[str, Any] = {
            "scores.csv.gz": gzip.compress(lines.encode(), mtime=0),
            "example.csv": shown,
        }
        write_files({self.study.record / name: content for name, content in files.items()})
