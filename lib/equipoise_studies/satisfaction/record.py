"""Record what estimators of user satisfaction say about dialogues, with their own and with other last responses.

``equipoise study satisfaction`` runs the steps of `plan`; models on this machine need the packages
of the extra ``models``. Each step keeps what it has done, and goes on from there. Notebooks read
only what it has written.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property, partial
from itertools import product
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
from equipoise_studies.recording import (
    lacking_weights,
    read_settings,
    replace_rows,
    settings_of,
    state,
    weights_of,
)
from equipoise_studies.satisfaction import data
from equipoise_studies.satisfaction.asking import opened
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
from equipoise_studies.satisfaction.study import NOTEBOOK, Estimator, Study
from equipoise_studies.satisfaction.systems import (
    fine_tune_encoder,
    fit_hawkes,
    state_features,
    under_sampled,
)

__all__ = ["NOTEBOOK", "Study", "plan"]

PACKAGES = {
    "few-shot": ("torch", "transformers"),
    "encoder": ("torch", "transformers"),
    "hawkes": ("torch",),
}
_FREE = ("about", "printed", "dialogues", "up_sampling", "under_sampling", "device")
"""What may change of an estimator between two parts of its record: the rows tell it, or it tells nothing."""


def plan(study: Study, models: Path | None, work: Path) -> list[Step]:
    """The steps that record a study.

    ``models``: folder of checkpoints. ``work``: folder of what a training keeps on the way.
    """
    return _Recorder(study, models, work).steps()


class _Recorder:
    def __init__(self, study: Study, models: Path | None, work: Path) -> None:
        self.study, self.models, self.work = study, models, work

    def steps(self) -> list[Step]:
        """What is written and labelled by people, and then what each estimator says of each collection."""
        try:
            plain = self.study.plain
        except (DataUnreachable, InputError) as error:
            unreachable = (str(error),)
            return [
                Step(name, "samples", None, 0, lambda: None, None, unreachable)
                for name in self.study.estimators
            ]
        turning = [part for part in plain.values() if part.level == "turn"]
        steps = [self._writing(part) for part in turning if self.study.writer is not None]
        if self.study.writer is not None and self.study.writer.annotations is not None:
            steps.append(self._annotating(turning))
        for (name, one), part in product(self.study.estimators.items(), plain.values()):
            steps += [self._labelling(name, one, part, setup) for setup in one.setups]
        return steps

    def _lacks(self, model: str, endpoint: str) -> tuple[str, ...]:
        return () if endpoint or not model else tuple(lacking_weights(self.models, model))

    # --- other last responses

    def _writing(self, part: Collection) -> Step:
        wanted, writer = self._to_write(part), self.study.writer
        done = wanted["sample"].isin(self._written(part.name)["sample"]).sum()
        unit, run = f"responses ({_words(wanted)} to read)", partial(self._write, part)
        size, model, endpoint = (
            (writer.size, writer.model, writer.endpoint) if writer else (0, "", "")
        )
        lacks = _short(size, len(wanted), f"test samples of {part.name}") + self._lacks(
            model, endpoint
        )
        return Step(
            f"written, {part.name}", unit, max(size, len(wanted)), int(done), run, None, lacks
        )

    def _to_write(self, part: Collection) -> pd.DataFrame:
        size = self.study.writer.size if self.study.writer else 0
        return data.balanced_order(part).head(size or None)

    def _annotating(self, parts: Sequence[Collection]) -> Step:
        """What people are asked, of all collections at once; it ends the study for today until they have answered."""
        wanted = 2 * sum(len(self._to_write(part)) for part in parts)
        done = sum(
            len(self.study.annotations(part).settled)
            for part in parts
            if len(self._written(part.name))
        )
        return Step("annotations", "items", wanted, done, partial(self._annotate, parts))

    def _written(self, name: str) -> pd.DataFrame:
        there = (self.study.record / "written.csv").is_file()
        return self.study.written(name) if there else pd.DataFrame(columns=["sample", "response"])

    def _write(self, part: Collection) -> None:
        writer, path, wanted = (
            self.study.writer,
            self.study.record / "written.csv",
            self._to_write(part),
        )
        if writer is None:
            return
        prompt = read_prompt(writer.prompt, [INPUT])
        left = wanted[~wanted["sample"].isin(self._written(part.name)["sample"])]
        settings = settings_of(
            seed=SEED,
            models=self._models(writer.model, writer.endpoint),
            packages=() if writer.endpoint else PACKAGES["few-shot"],
            writer={
                "model": writer.model,
                "endpoint": writer.endpoint,
                "tokens": writer.tokens,
                "prompt": prompt,
            },
            files=self._files(),
        )
        state(data.settings_path(path), settings)
        with opened(writer.model, writer.endpoint, writer.device, self.models) as (_, write):
            for row in tqdm(
                left.itertuples(), total=len(left), desc=f"written, {part.name}", mininterval=10
            ):
                found = response_in(
                    write(filled(prompt, dialogue_text(row.users, row.systems)), writer.tokens)
                )
                made = pd.DataFrame(
                    {"collection": [part.name], "sample": [row.sample], "response": [found]}
                )
                replace_rows(path, made, ["collection", "sample"])

    def _annotate(self, parts: Sequence[Collection]) -> None:
        problems = Problems()
        for part in parts:
            with problems.collecting():
                self.study.annotations(part).go_on()
        problems.refuse()

    # --- estimators

    @cached_property
    def _held(self) -> dict[str, Collection] | None:
        """The collections with their other responses; None where these are still to be written, or confirmed."""
        try:
            return self.study.held
        except (FileNotFoundError, ValueError):
            if self.study.counterfactuals == "written":
                return None
            raise

    def _labelling(self, name: str, one: Estimator, part: Collection, setup: str) -> Step:
        there = part.part("test")["sample"].str.partition(":")[0].nunique()
        short = _short(one.dialogues, there, f"test dialogues of {part.name}")
        known, lacks = f"{name}, {part.name}, {setup}", short + self._lacks(one.model, one.endpoint)
        run = partial(self._label, name, one, part.name, setup)
        if self._held is None:
            size = len(part.part("valid")) + len(part.part("test"))
            return Step(known, f"samples, {size:,} and those turned", None, 0, run, None, lacks)
        wanted, measured = self._wanted(one, part.name), self._measured(name, one)
        done = len(wanted) - len(self._missing(name, one, wanted, setup))
        pace = measured.get(f"seconds a sample of {part.name}, {setup}")
        unit = f"samples ({_words(wanted)} to read)" if one.kind == "few-shot" else "samples"
        return Step(known, unit, None if short else len(wanted), done, run, pace, lacks)

    def _wanted(self, one: Estimator, name: str) -> pd.DataFrame:
        """The samples that an estimator is to label."""
        samples = self.study.held[name].worlds()
        if one.kind != "few-shot":
            return samples
        return data.drawn_dialogues(samples[samples["world"] != "valid"], one.dialogues)

    def _missing(self, name: str, one: Estimator, wanted: pd.DataFrame, setup: str) -> pd.DataFrame:
        path = self.study.record / f"{name}.csv"
        if not path.is_file() or not self._stated(name, one):
            return wanted
        rows = read_columns(path, PREDICTION_COLUMNS)
        done = rows[rows["setup"] == setup].set_index(["collection", "world", "sample"]).index
        return wanted[
            ~pd.MultiIndex.from_frame(wanted[["collection", "world", "sample"]]).isin(done)
        ]

    def _asked(self, one: Estimator) -> dict[str, Any]:
        """What an estimator's record states, that decides what it says."""
        own = {what: value for what, value in asdict(one).items() if what not in _FREE}
        own["training"] = {what: value for what, value in (own["training"] or {}).items() if value}
        if one.prompt is not None:
            own["prompt"] = read_prompt(one.prompt, [INPUT, *EXAMPLES])
        turned = {name: part.digest() for name, part in self.study.held.items()}
        return {"estimator": own, "turned": turned, "files": self._files()}

    def _settings_path(self, name: str) -> Path:
        return data.settings_path(self.study.record / f"{name}.csv")

    def _stated(self, name: str, one: Estimator) -> bool:
        """Whether the record is of this estimator, of these responses and files."""
        path = self._settings_path(name)
        return path.is_file() and self._asked(one).items() <= read_settings(path).items()

    def _measured(self, name: str, one: Estimator) -> dict[str, float]:
        path = self._settings_path(name)
        return (
            dict(read_settings(path).get("measured", {}))
            if path.is_file() and self._stated(name, one)
            else {}
        )

    def _files(self) -> dict[str, str]:
        """Files of the config's own, by their sha256."""
        paths = [path for source in self.study.collections.values() for path in source.files()]
        return {
            path.name: project.sha256(path)
            for path in (*paths, self.study.responses)
            if path is not None
        }

    def _models(self, model: str, endpoint: str) -> dict[str, Path]:
        return (
            {}
            if endpoint
            else {f"{model}/{path.name}": path for path in weights_of(self.models, model)}
        )

    def _label(self, name: str, one: Estimator, collection: str, setup: str) -> None:
        packages = () if one.endpoint else PACKAGES[one.kind]
        part, weights = (
            self.study.held[collection],
            self._models(one.model, one.endpoint) if one.model else {},
        )
        settings = settings_of(seed=SEED, models=weights, packages=packages, **self._asked(one))
        state(self._settings_path(name), settings)
        missing, begun = (
            self._missing(name, one, self._wanted(one, collection), setup),
            time.monotonic(),
        )
        keep = partial(self._keep, name, setup)
        if one.kind == "few-shot":
            self._prompted(one, part, missing, keep)
        else:
            keep(missing, self._trained(name, one, part, missing, setup))
        pace = round((time.monotonic() - begun) / max(1, len(missing)), 4)
        state(
            self._settings_path(name),
            settings,
            {f"seconds a sample of {collection}, {setup}": pace},
        )

    def _keep(self, name: str, setup: str, samples: pd.DataFrame, found: Any) -> None:
        rows = samples.assign(
            system=name, setup=setup, dissatisfaction=np.asarray(found, dtype=np.float64)
        )
        replace_rows(
            self.study.record / f"{name}.csv", rows[PREDICTION_COLUMNS], PREDICTION_COLUMNS[:-1]
        )

    def _prompted(self, one: Estimator, part: Collection, missing: pd.DataFrame, keep: Any) -> None:
        if one.prompt is None:
            return
        shown = one.exchanges or None
        prompt, examples = read_prompt(one.prompt, [INPUT, *EXAMPLES]), example_dialogues(part)
        with opened(one.model, one.endpoint, one.device, self.models) as (label, _):
            groups = missing.groupby(missing["sample"].str.partition(":")[0], sort=False)
            for _, group in tqdm(
                groups, desc=f"few-shot, {part.name}", unit="dialogue", mininterval=10
            ):
                texts = [dialogue_text(row.users, row.systems, shown) for row in group.itertuples()]
                told = label([filled(prompt, text, examples) for text in texts])
                keep(group, [label_probability(answer) for answer in told])

    def _trained(
        self, name: str, one: Estimator, part: Collection, samples: pd.DataFrame, setup: str
    ) -> Any:
        train, times, how = part.part("train"), one.setups[setup], one.training
        if how is None:
            raise ValueError(f"{name} is not trained")
        if not times:
            train, times = (
                train.iloc[under_sampled(train["dissatisfied"], np.random.default_rng(SEED))],
                1,
            )
        rare = int(train["dissatisfied"].sum())
        steps = how.steps or -(-how.epochs * (len(train) + (times - 1) * rare) // how.batch)
        folder = (self.models or Path()) / one.model
        if one.kind == "hawkes":
            features = state_features(folder, how.length) if one.model else None
            found: dict[str, Any] = {"width": how.width, "rate": how.rate, "penalty": how.penalty}
            fitted = fit_hawkes(
                train, times=times, features=features, steps=steps, seed=SEED, **found
            )
            return fitted.probability(samples)
        self.work.mkdir(parents=True, exist_ok=True)
        shown = one.exchanges or None
        texts, wanted = (
            [dialogue_text(row.users, row.systems, shown) for row in some.itertuples()]
            for some in (train, samples)
        )
        kept = self.work / f"{name}-{part.name}-{setup.replace(' ', '-').replace('/', '')}.pt"
        settings: dict[str, Any] = {
            "batch": how.batch,
            "length": how.length,
            "rate": how.rate,
            "device": one.device,
        }
        settings |= {"times": times, "steps": steps, "precision": how.precision, "seed": SEED}
        labels = train["dissatisfied"].tolist()
        return fine_tune_encoder(folder, texts, labels, wanted, checkpoint=kept, **settings)


def example_dialogues(held: Collection) -> list[str]:
    """One satisfied and one dissatisfied training sample of three exchanges, drawn by the seed.

    The thesis shows one of each, and does not say which.
    """
    train = held.part("train")
    short = train[train["users"].map(len) == train["users"].map(len).min()]
    rng = np.random.default_rng(SEED)
    pools = short[short["rating"] >= 4], short[short["rating"] < 3]
    drawn = [pool.iloc[rng.integers(len(pool))] for pool in pools]
    return [dialogue_text(row["users"], row["systems"]) for row in drawn]


def _short(asked: int, there: int, what: str) -> tuple[str, ...]:
    """What lacks where the config asks for more than there is."""
    return (f"{asked:,} {what}; there are {there:,}",) if asked > there else ()


def _words(samples: pd.DataFrame) -> str:
    """About how many words a model reads of some samples, examples and instruction left aside."""
    texts: Sequence[str] = [" ".join((*row.users, *row.systems)) for row in samples.itertuples()]
    return f"about {sum(len(text.split()) for text in texts) / 1000:,.0f} thousand words"
