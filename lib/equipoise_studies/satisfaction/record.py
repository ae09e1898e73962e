"""Record what estimators of user satisfaction say about dialogues, with own and other responses.

``equipoise study satisfaction`` runs the steps of `plan`; models on this machine need the packages
of the extra ``models``. Each step keeps what it has done, and goes on from there. Notebooks read
only what it has written.

A plan is made of facts where there are any; to carry out a step that is not finished takes the
texts of its collection.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from equipoise.files import read_columns
from equipoise.problems import InputError, Problems
from equipoise_compendium import project
from equipoise_compendium.registry import DataUnreachable
from equipoise_studies.config import Step
from equipoise_studies.costs import Calls, Work
from equipoise_studies.recording import (
    digest,
    lacking_weights,
    read_settings,
    replace_rows,
    settings_of,
    state,
    weights_of,
)
from equipoise_studies.satisfaction import data
from equipoise_studies.satisfaction.asking import open_model
from equipoise_studies.satisfaction.data import PREDICTION_COLUMNS, SEED, Collection
from equipoise_studies.satisfaction.dialogues import dialogue_text
from equipoise_studies.satisfaction.prompts import (
    EXAMPLES,
    INPUT,
    filled,
    label_probability,
    read_prompt,
    response_in,
)
from equipoise_studies.satisfaction.rating_encoder import fine_tune_rating_encoder
from equipoise_studies.satisfaction.study import NOTEBOOK, Estimator, Study, Training, Writer
from equipoise_studies.satisfaction.systems import (
    Hawkes,
    fine_tune_encoder,
    fit_hawkes,
    state_features,
    under_sampled,
)
from equipoise_studies.satisfaction.work import work_of
from equipoise_studies.systems import lacking_device

__all__ = ["NOTEBOOK", "Study", "plan"]

PACKAGES = {
    "few-shot": ("torch", "transformers"),
    "encoder": ("torch", "transformers"),
    "hawkes": ("torch",),
}
SAMPLE_KEYS = ["collection", "world", "sample"]

# The rows of a record tell these, or they decide nothing about what an estimator says.
MAY_CHANGE = (
    *("about", "printed", "dialogues", "up_sampling", "under_sampling", "device"),
    *("key_variable", "patience", "prices", "currency", "source", "billions"),
)

Keep = Callable[[pd.DataFrame, Any], None]
"""Keeps probabilities of dissatisfaction of some samples."""


def plan(study: Study, models: Path | None, work: Path) -> list[Step]:
    """The steps that record a study.

    ``models``: folder of checkpoints. ``work``: folder of what a training keeps on the way. Where a
    collection is not to be had, its steps say so, and the others are planned.
    """
    return _Recorder(study, models, work).steps()


class _Recorder:
    def __init__(self, study: Study, models: Path | None, work: Path) -> None:
        self.study, self.models, self.work = study, models, work

    def steps(self) -> list[Step]:
        """What is written and labelled by people, and then what each estimator says."""
        turn_level = []
        for name, source in self.study.collections.items():
            if source.level == "turn" and not self._unreadable(name):
                turn_level.append(name)

        steps = []
        # Estimators label what was written, so writing and reading come first.
        if self.study.writer is not None:
            for name in turn_level:
                steps.append(self._writing(name, self.study.writer))
            if self.study.has_annotators:
                steps.append(self._annotating(turn_level))
        asked: list[Writer | Estimator] = []
        if self.study.writer is not None and not all(step.finished for step in steps):
            asked.append(self.study.writer)
        for system, estimator in self.study.estimators.items():
            labelling = []
            for name in self.study.collections:
                for setup in estimator.setups:
                    labelling.append(self._labelling(system, estimator, name, setup))
            if not all(step.finished for step in labelling):
                asked.append(estimator)
            steps += labelling
        return self._to_have(asked) + steps

    def _to_have(self, asked: Sequence[Writer | Estimator]) -> list[Step]:
        """What has to be had before models are run or asked, each thing once."""
        if not asked:
            return []
        lacks_by_model: dict[str, tuple[str, ...]] = {}
        for model in asked:
            known_as = model.endpoint or model.model
            # Bags of words want nothing.
            if known_as and not lacks_by_model.get(known_as):
                lacks_by_model[known_as] = self._lacking_model(model)
            if known_as and not model.endpoint and model.device != "cpu":
                lacks_by_model[f"PyTorch on {model.device}"] = lacking_device(model.device)
        steps = [self._texts_step()]
        for known_as, lacks in lacks_by_model.items():
            done = int(not lacks)
            step = Step(known_as, "models", 1, done, lambda: None, None, lacks, state="at hand")
            steps.append(step)
        return steps

    # --- what lacks

    def _unreadable(self, name: str) -> tuple[str, ...]:
        """Why a collection cannot be planned."""
        try:
            self.study.labelled(name)
        except (DataUnreachable, InputError) as error:
            return (str(error),)
        return ()

    @cached_property
    def _lacking_texts(self) -> tuple[str, ...]:
        """Why collections can be planned, but not be read by a model."""
        lacks: list[str] = []
        for name, source in self.study.collections.items():
            try:
                self.study.texts(name)
            except DataUnreachable:
                # Its error is of the first file alone, and a list to shop from is of all.
                lacks += source.unreachable()
            except InputError as error:
                lacks.append(str(error))
        return tuple(dict.fromkeys(lacks))

    def _read_texts(self) -> None:
        """Read every collection: a record states all files that it could rest on."""
        for name in self.study.collections:
            self.study.texts(name)

    def _settings_of(self, model: str, endpoint: str, kind: str, **settings: Any) -> dict[str, Any]:
        """Settings of a record; facts, of which the plan was made, are no inputs of it."""
        self._read_texts()
        record_settings = settings_of(
            seed=SEED,
            models=self._weights(model, endpoint),
            packages=() if endpoint else PACKAGES[kind],
            **settings,
        )
        inputs = record_settings["inputs"]
        record_settings["inputs"] = {
            name: digest for name, digest in inputs.items() if not name.startswith("data/facts/")
        }
        return record_settings

    def _texts_step(self) -> Step:
        """The collections with their texts, and whether they are the thesis's."""
        title = " and ".join(self.study.collections)
        lacks = self._lacking_texts
        if not lacks and self.study.stands_for == "thesis" and self.study.other_data:
            title += f", not the thesis's, and so a replica ({self.study.other_data})"
        return Step(title, "texts", 1, int(not lacks), lambda: None, None, lacks, state="at hand")

    def _lacking_model(self, asked: Writer | Estimator) -> tuple[str, ...]:
        """What a model wants before it is run or asked: weights, or a key."""
        if asked.key_variable and not os.environ.get(asked.key_variable):
            lack = f"a key in the environment variable {asked.key_variable}"
            return (f"{lack}; {asked.source}" if asked.source else lack,)
        if asked.endpoint or not asked.model:
            return ()
        lacks = lacking_weights(self.models, asked.model)
        if lacks and asked.source:
            lacks[0] += f"; {asked.source}"
        return tuple(lacks)

    # --- other last responses

    def _writing(self, name: str, writer: Writer) -> Step:
        samples = self._samples_to_write(name)
        done = int(samples["sample"].isin(self._written(name)["sample"]).sum())
        lacks = _too_few(writer.size, len(samples), f"test samples of {name}")
        calls = self._calls_of_writing(samples[done:], writer)
        notes: tuple[str, ...] = ()
        if calls is not None:
            notes = (f"asked at {writer.endpoint}, {_key_in_words(writer)} ({calls})",)
        return Step(
            f"written, {name}",
            f"responses ({_words_to_read(samples)} to read)",
            max(writer.size, len(samples)),
            done,
            partial(self._write, name, writer),
            None,
            lacks,
            notes=notes,
            calls=calls,
        )

    def _calls_of_writing(self, samples: pd.DataFrame, writer: Writer) -> Calls | None:
        """What a writer behind an endpoint is asked."""
        if not writer.endpoint:
            return None
        prompt_words = len(read_prompt(writer.prompt, [INPUT]).split())
        words = float(samples["words"].sum()) + prompt_words * len(samples)
        return Calls(len(samples), words, writer.tokens, writer.prices, writer.currency)

    def _samples_to_write(self, name: str) -> pd.DataFrame:
        order = data.balanced_order(self.study.labelled(name))
        if self.study.writer is None or not self.study.writer.size:
            return order
        return order.head(self.study.writer.size)

    def _annotating(self, names: Sequence[str]) -> Step:
        """What people are asked, of all collections at once; it ends the run until they answer."""
        n_items = 0
        n_settled = 0
        lacks: tuple[str, ...] = ()
        for name in names:
            # The own response of a sample is an item, and so is the written one.
            n_items += 2 * len(self._samples_to_write(name))
            if not len(self._written(name)):
                continue
            try:
                n_settled += len(self.study.annotations(name).settled)
            except DataUnreachable as error:
                lacks += (str(error),)
        readers = "one person"
        if self.study.writer is not None and self.study.writer.readers == 2:
            readers = "two people, and by a third where they differ"
        return Step(
            "annotations",
            "items",
            n_items,
            n_settled,
            partial(self._annotate, names),
            lacks=lacks,
            notes=(f"a dialogue and its last response each, read by {readers}",),
        )

    def _written(self, name: str) -> pd.DataFrame:
        if (self.study.record / "written.csv").is_file():
            return self.study.written(name)
        return pd.DataFrame(columns=["sample", "response"])

    def _write(self, name: str, writer: Writer) -> None:
        path = self.study.record / "written.csv"
        prompt = read_prompt(writer.prompt, [INPUT])
        options = {
            "model": writer.model,
            "endpoint": writer.endpoint,
            "tokens": writer.tokens,
            "prompt": prompt,
        }
        settings = self._settings_of(
            writer.model, writer.endpoint, "few-shot", writer=options, files=self._own_files()
        )
        state(data.settings_path(path), settings)

        samples = self.study.texts(name).part("test").set_index("sample")
        # What was written before is kept: a long run goes on where it was stopped.
        waiting = self._samples_to_write(name)["sample"]
        waiting = waiting[~waiting.isin(self._written(name)["sample"])]
        with open_model(writer.model, writer.served, writer.device, self.models) as (_, write):
            for sample in tqdm(waiting, desc=f"written, {name}", mininterval=10):
                context = dialogue_text(*samples.loc[sample, ["users", "systems"]])
                response = response_in(write(filled(prompt, context), writer.tokens))
                row = {"collection": [name], "sample": [sample], "response": [response]}
                replace_rows(path, pd.DataFrame(row), ["collection", "sample"])

    def _annotate(self, names: Sequence[str]) -> None:
        problems = Problems()
        for name in names:
            with problems.collecting():
                self.study.annotations(name, with_texts=True).go_on()
        problems.refuse()

    # --- estimators: what is to be labelled

    @cached_property
    def _responses_are_there(self) -> bool:
        """Whether the other responses are there, not still to be written, or confirmed."""
        try:
            return bool(self.study.test_sets)
        except (FileNotFoundError, ValueError):
            # Before people have confirmed what was written there is nothing to label.
            if self.study.counterfactuals == "written":
                return False
            raise

    def _labelling(self, system: str, estimator: Estimator, name: str, setup: str) -> Step:
        title = f"{system}, {name}, {setup}"
        label = partial(self._label, system, estimator, name, setup)
        lacks: tuple[str, ...] = ()
        unreadable = self._unreadable(name)
        if unreadable:
            return Step(title, "samples", None, 0, label, None, unreadable)

        collection = self.study.labelled(name)
        test_dialogues = collection.part("test")["dialogue"].nunique()
        too_few = _too_few(estimator.dialogues, test_dialogues, f"test dialogues of {name}")
        lacks = too_few + lacks
        try:
            responses_are_there = self._responses_are_there
        except DataUnreachable as error:
            return Step(title, "samples", None, 0, label, None, (*lacks, str(error)))
        if not responses_are_there:
            n_samples = len(collection.part("valid")) + len(collection.part("test"))
            unit = f"samples ({n_samples:,} and those that people confirm)"
            work = self._work(estimator, collection, setup)
            notes = _notes_on_labelling(estimator)
            return Step(title, unit, None, 0, label, None, lacks, notes=notes, work=work)

        samples = self._samples_of(estimator, self.study.test_sets[name])
        missing = self._missing(system, estimator, samples, setup)
        pace = self._measured(system, estimator).get(f"seconds a sample of {name}, {setup}")
        unit = "samples"
        if estimator.kind == "few-shot":
            unit = f"samples ({_words_to_read(samples)} to read)"
        # What is asked for cannot be reached where there are too few dialogues.
        wanted = None if too_few else len(samples)
        done = len(samples) - len(missing)
        work = self._work(estimator, self.study.test_sets[name], setup)
        notes = _notes_on_labelling(estimator)
        return Step(title, unit, wanted, done, label, pace, lacks, notes=notes, work=work)

    def _work(self, estimator: Estimator, collection: Collection, setup: str) -> Work | None:
        """What an estimator reads and learns in a setup."""
        prompt_words = 0
        if estimator.prompt is not None:
            prompt_words = len(read_prompt(estimator.prompt, [INPUT, *EXAMPLES]).split())
        return work_of(estimator, collection, estimator.setups[setup], prompt_words)

    def _samples_of(self, estimator: Estimator, collection: Collection) -> pd.DataFrame:
        """The samples that an estimator is to label."""
        samples = collection.worlds()
        if estimator.kind != "few-shot":
            return samples
        # What is validated is a threshold of trained estimators.
        samples = samples[samples["world"] != "valid"]
        return data.drawn_dialogues(samples, estimator.dialogues)

    def _missing(
        self, system: str, estimator: Estimator, samples: pd.DataFrame, setup: str
    ) -> pd.DataFrame:
        """Samples without a recorded prediction."""
        # Predictions by other settings are none of this estimator.
        path = self.study.record / f"{system}.csv"
        if not path.is_file() or not self._is_stated(system, estimator):
            return samples
        rows = read_columns(path, PREDICTION_COLUMNS)
        done = pd.MultiIndex.from_frame(rows.loc[rows["setup"] == setup, SAMPLE_KEYS])
        keys = pd.MultiIndex.from_frame(samples[SAMPLE_KEYS])
        return samples[~keys.isin(done)]

    # --- estimators: what a record states

    def _settings(self, estimator: Estimator) -> dict[str, Any]:
        """What an estimator's record states, that decides what it says."""
        options = asdict(estimator)
        for option in MAY_CHANGE:
            del options[option]
        # How a model on this machine is read came later: older records are by first tokens, and
        # nothing else is read in two ways.
        is_local = estimator.kind == "few-shot" and not estimator.endpoint
        if not is_local or estimator.answers == "first token":
            del options["answers"]
        training = options["training"] or {}
        # An option that is off may be added later without a new record.
        options["training"] = {option: value for option, value in training.items() if value}
        if estimator.prompt is not None:
            options["prompt"] = read_prompt(estimator.prompt, [INPUT, *EXAMPLES])
        digests = {}
        for name, collection in self.study.test_sets.items():
            digests[name] = collection.digest()
        return {"estimator": options, "turned": digests, "files": self._own_files()}

    def _settings_path(self, system: str) -> Path:
        return data.settings_path(self.study.record / f"{system}.csv")

    def _is_stated(self, system: str, estimator: Estimator) -> bool:
        """Whether the record is of this estimator, of these responses and files."""
        path = self._settings_path(system)
        return path.is_file() and self._settings(estimator).items() <= read_settings(path).items()

    def _measured(self, system: str, estimator: Estimator) -> dict[str, float]:
        if not self._is_stated(system, estimator):
            return {}
        return dict(read_settings(self._settings_path(system)).get("measured", {}))

    def _own_files(self) -> dict[str, str]:
        """Files of the config's own, by their sha256."""
        paths = [path for source in self.study.collections.values() for path in source.files()]
        if self.study.responses is not None:
            paths.append(self.study.responses)
        return {path.name: project.sha256(path) for path in paths}

    def _weights(self, model: str, endpoint: str) -> dict[str, Path]:
        if endpoint or not model:
            return {}
        return {f"{model}/{path.name}": path for path in weights_of(self.models, model)}

    # --- estimators: what they say

    def _label(self, system: str, estimator: Estimator, name: str, setup: str) -> None:
        """Have one setup of an estimator label the samples of a collection that lack."""
        settings = self._settings_of(
            estimator.model, estimator.endpoint, estimator.kind, **self._settings(estimator)
        )
        # Settings before rows: rows without settings would be refused.
        path = self._settings_path(system)
        state(path, settings)

        collection = self.study.turned_texts(name)
        samples = self._samples_of(estimator, collection)
        missing = self._missing(system, estimator, samples, setup)
        start = time.monotonic()
        keep = partial(self._keep, system, setup)
        if estimator.kind == "few-shot":
            self._prompt(estimator, collection, missing, keep)
        else:
            keep(missing, self._train(system, estimator, collection, missing, setup))
            # What a training kept on the way is of gigabytes, and nobody wants it now.
            checkpoint = self._checkpoint(system, estimator, name, setup)
            for path in (checkpoint, checkpoint.with_suffix(".best")):
                path.unlink(missing_ok=True)
        pace = round((time.monotonic() - start) / max(1, len(missing)), 4)
        state(path, settings, {f"seconds a sample of {name}, {setup}": pace})

    def _keep(self, system: str, setup: str, samples: pd.DataFrame, probabilities: Any) -> None:
        probabilities = np.asarray(probabilities, dtype=np.float64)
        rows = samples.assign(system=system, setup=setup, dissatisfaction=probabilities)
        path = self.study.record / f"{system}.csv"
        replace_rows(path, rows[PREDICTION_COLUMNS], PREDICTION_COLUMNS[:-1])

    def _prompt(
        self, estimator: Estimator, collection: Collection, samples: pd.DataFrame, keep: Keep
    ) -> None:
        """Ask a language model, dialogue by dialogue: prompts of one begin alike."""
        if estimator.prompt is None:
            return
        prompt = read_prompt(estimator.prompt, [INPUT, *EXAMPLES])
        examples = example_dialogues(collection)
        model = estimator.model, estimator.served, estimator.device, self.models
        with open_model(*model, estimator.answers) as (label, _):
            groups = samples.groupby("dialogue", sort=False)
            title = f"few-shot, {collection.name}"
            for _, group in tqdm(groups, desc=title, unit="dialogue", mininterval=10):
                prompts = []
                for text in _contexts(group, estimator):
                    prompts.append(filled(prompt, text, examples))
                keep(group, [label_probability(answer) for answer in label(prompts)])

    def _checkpoint(self, system: str, estimator: Estimator, name: str, setup: str) -> Path:
        """Where a training keeps what it has learned: elsewhere for other settings or weights."""
        weights = self._weights(estimator.model, estimator.endpoint)
        basis = {
            "settings": self._settings(estimator),
            "weights": {name: project.sha256(path) for name, path in weights.items()},
        }
        version = digest(json.dumps(basis, sort_keys=True, default=str))
        setup_in_file_name = setup.replace(" ", "-").replace("/", "")
        return self.work / f"{system}-{name}-{setup_in_file_name}-{version}.pt"

    def _train(
        self,
        system: str,
        estimator: Estimator,
        collection: Collection,
        samples: pd.DataFrame,
        setup: str,
    ) -> Any:
        """Train an estimator in one setup, and label samples: probabilities of dissatisfaction."""
        training = estimator.training
        if training is None:
            raise ValueError(f"{system} is not trained")
        train = collection.part("train")
        # 0 stands for under-sampling, which leaves samples out instead of repeating some.
        times = estimator.setups[setup]
        if not times:
            rows = under_sampled(train["dissatisfied"], np.random.default_rng(SEED))
            train, times = train.iloc[rows], 1
        folder = (self.models or Path()) / estimator.model
        if estimator.kind == "hawkes":
            features = state_features(folder, training.length) if estimator.model else None
            return _fitted(training, train, times, features).probability(samples)

        # An encoder takes hours: it keeps a checkpoint on the way.
        self.work.mkdir(parents=True, exist_ok=True)
        checkpoint = self._checkpoint(system, estimator, collection.name, setup)
        if training.program:
            return fine_tune_rating_encoder(
                folder,
                train,
                collection.part("valid"),
                samples,
                times=times,
                epochs=training.epochs,
                batch=training.batch,
                rate=training.rate,
                utterance=training.utterance,
                length=training.length,
                seed=SEED,
                checkpoint=checkpoint,
                device=estimator.device,
            )
        return fine_tune_encoder(
            folder,
            _contexts(train, estimator),
            train["dissatisfied"].tolist(),
            _contexts(samples, estimator),
            times=times,
            steps=_steps(training, train, times),
            batch=training.batch,
            length=training.length,
            rate=training.rate,
            precision=training.precision,
            seed=SEED,
            checkpoint=checkpoint,
            device=estimator.device,
        )


def _notes_on_labelling(estimator: Estimator) -> tuple[str, ...]:
    """Where an estimator is asked, and whether it is the thesis's."""
    notes = []
    if not estimator.printed:
        notes.append("ours: no printed cell is of it")
    if estimator.endpoint:
        notes.append(f"asked at {estimator.endpoint}, {_key_in_words(estimator)}")
    return tuple(notes)


def _key_in_words(asked: Writer | Estimator) -> str:
    return f"with the key in {asked.key_variable}" if asked.key_variable else "without a key"


def _fitted(training: Training, train: pd.DataFrame, times: int, features: Any) -> Hawkes:
    """A Hawkes process fitted to training samples."""
    return fit_hawkes(
        train,
        times=times,
        features=features,
        steps=_steps(training, train, times),
        seed=SEED,
        width=training.width,
        rate=training.rate,
        penalty=training.penalty,
    )


def _steps(training: Training, train: pd.DataFrame, times: int) -> int:
    """Steps of training: as many as are asked for, or as so many epochs take."""
    if training.steps:
        return training.steps
    n_samples = len(train) + (times - 1) * int(train["dissatisfied"].sum())
    return -(-training.epochs * n_samples // training.batch)  # rounded up


def _contexts(samples: pd.DataFrame, estimator: Estimator) -> list[str]:
    """What an estimator is shown of each sample."""
    last = estimator.exchanges or None
    return [dialogue_text(row.users, row.systems, last) for row in samples.itertuples()]


def example_dialogues(collection: Collection) -> list[str]:
    """One satisfied and one dissatisfied training sample of three exchanges, drawn by the seed.

    The thesis shows one of each, and does not say which.
    """
    train = collection.part("train")
    shortest = train[train["turn"] == train["turn"].min()]
    rng = np.random.default_rng(SEED)
    examples = []
    # In the order of the prompt's labels; 3 is neither here nor there.
    for pool in (shortest[shortest["rating"] >= 4], shortest[shortest["rating"] < 3]):
        drawn = pool.iloc[rng.integers(len(pool))]
        examples.append(dialogue_text(drawn["users"], drawn["systems"]))
    return examples


def _too_few(wanted: int, available: int, what: str) -> tuple[str, ...]:
    """What lacks where the config asks for more than there is."""
    if wanted <= available:
        return ()
    return (f"{wanted:,} {what}; there are {available:,}",)


def _words_to_read(samples: pd.DataFrame) -> str:
    """About how many words a model reads of samples, examples and instruction left aside."""
    return f"about {samples['words'].sum() / 1000:,.0f} thousand words"
