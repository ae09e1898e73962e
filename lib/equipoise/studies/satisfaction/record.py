"""Record what estimators of user satisfaction say about dialogues, and of swapped last responses, for thesis chapter 3.

``python -m equipoise.studies.satisfaction.record --models FOLDER SYSTEM ...`` needs the packages of the extra
``models``, model weights in FOLDER and the upstream data; it writes ``data/outputs/satisfaction``. Each system keeps
what it has done, and goes on from there when it is started again. Notebooks read only what it has written.
"""

from __future__ import annotations

import time
from functools import partial
from itertools import product, repeat
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from tqdm import tqdm

from equipoise import project
from equipoise.files import read_columns
from equipoise.studies.recording import replace_rows, settings_of, state
from equipoise.studies.satisfaction import data
from equipoise.studies.satisfaction.data import Collection, collection, ordered_subset
from equipoise.studies.satisfaction.dialogues import dialogue_text
from equipoise.studies.satisfaction.prompts import LABELS, few_shot_prompt, label_probability, written_responses
from equipoise.studies.satisfaction.systems import continuation, fine_tune_encoder, first_tokens, fit_hawkes
from equipoise.systems.language_models import load_server

LAST = 3
"""Exchanges that encoders and language models are shown."""

SUBSET = 50
WRITTEN = 4
UP_SAMPLING = {"w/o up-sampling": 1, "up-sampling x10": 10, "up-sampling x20": 20}
ENCODER: dict[str, Any] = {"steps": 250, "batch": 32, "length": 64, "rate": 5e-4, "seed": data.SEED}
HAWKES: dict[str, Any] = {"width": 128, "steps": 300, "rate": 0.03, "penalty": 1e-4, "seed": data.SEED}
ENCODER_MODEL = "splade-tiny-msmarco"
FEW_SHOT_MODEL = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
WRITER_MODEL = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"


def _path(*parts: str) -> Path:
    return project.root().joinpath("data", *data.FOLDER, *parts)


def _missing(system: str, held: Collection, setup: str) -> pd.DataFrame:
    """Samples that a system is still to label, with their world; for few-shot a subset, in a balanced order."""
    samples = held.worlds()
    if system == "few-shot":
        samples = ordered_subset(held, SUBSET)[["sample"]].merge(samples[samples["world"] != "valid"], on="sample")
    path = _path(f"{system}.csv")
    if not path.is_file():
        return samples
    known = read_columns(path, data.PREDICTION_COLUMNS)
    done = known[(known["collection"] == held.name) & (known["setup"] == setup)]
    return samples[~(samples["world"] + samples["sample"]).isin(done["world"] + done["sample"])]


def _keep(system: str, setup: str, samples: pd.DataFrame, found: ArrayLike) -> None:
    rows = samples.assign(system=system, setup=setup, dissatisfaction=found)
    replace_rows(_path(f"{system}.csv"), rows[data.PREDICTION_COLUMNS], data.PREDICTION_COLUMNS[:-1])


def _texts(samples: pd.DataFrame) -> list[str]:
    return list(map(dialogue_text, samples["users"], samples["systems"], repeat(LAST)))


def _encoded(held: Collection, setup: str, samples: pd.DataFrame, models: Path, work: Path | None) -> None:
    train, times = held.part("train"), UP_SAMPLING[setup]
    checkpoint = None if work is None else work / f"{held.name}-{times}.pt"
    texts = _texts(train), train["dissatisfied"].tolist(), _texts(samples)
    found = fine_tune_encoder(models / ENCODER_MODEL, *texts, times=times, checkpoint=checkpoint, **ENCODER)
    _keep("encoder", setup, samples, found)


def _examples(held: Collection) -> list[tuple[str, str]]:
    """One satisfied and one dissatisfied training sample, drawn by the seed."""
    train = held.part("train")
    short = train[train["users"].map(len) == 3]
    rng = np.random.default_rng(data.SEED)
    pools = short[short["rating"] >= 4], short[short["rating"] < 3]
    drawn = pd.concat([pool.iloc[[rng.integers(len(pool))]] for pool in pools])
    return list(zip(_texts(drawn), LABELS, strict=True))


def _prompted(held: Collection, setup: str, samples: pd.DataFrame, models: Path) -> None:
    server, examples = load_server(models / FEW_SHOT_MODEL), _examples(held)
    for place in tqdm(range(len(samples)), desc=f"few-shot, {held.name}", mininterval=10):
        sample = samples.iloc[[place]]
        prompt = few_shot_prompt(sample["users"].iloc[0], sample["systems"].iloc[0], examples, LAST)
        _keep("few-shot", setup, sample, label_probability(first_tokens(server, prompt)))


def _written(held: Collection, models: Path) -> None:
    server = load_server(models / WRITER_MODEL)
    chosen = ordered_subset(held, WRITTEN)[["sample"]].merge(held.part("test"), on="sample")
    (satisfied, _), (dissatisfied, _) = _examples(held)
    examples = [(satisfied, "I'm sorry, I can't help with that."), (dissatisfied, "Yes, that is done for you.")]
    write = partial(continuation, server, tokens=48)
    made = written_responses(chosen, write, examples, writer=WRITER_MODEL, last=LAST)
    made = made.assign(collection=held.name, response=made["systems"].str[-1])
    columns = ["collection", "sample", "dissatisfied", "response", "writer"]
    replace_rows(_path("written.csv"), made[columns], ["collection", "sample"])


def _settings(system: str, held: dict[str, Collection], models: Path) -> dict[str, Any]:
    weights = {"encoder": f"{ENCODER_MODEL}/model.safetensors", "few-shot": FEW_SHOT_MODEL, "written": WRITER_MODEL}
    prompt = few_shot_prompt(["..."], ["..."], [("...", label) for label in LABELS])
    own: dict[str, dict[str, Any]] = {
        "encoder": {"packages": ["torch", "transformers"], "training": ENCODER, "exchanges shown": LAST},
        "hawkes": {"packages": ["scikit-learn", "torch"], "training": HAWKES},
        "few-shot": {"packages": ["xllamacpp"], "exchanges shown": LAST, "subset": SUBSET, "prompt": prompt},
        "written": {"packages": ["xllamacpp"], "exchanges shown": LAST},
    }
    used = {name: models / name for kind, name in weights.items() if kind == system}
    size = {"few-shot": SUBSET, "written": WRITTEN}.get(system)
    chosen = {name: ordered_subset(part, size) if size else part.swapped for name, part in held.items()}
    digests = {name: held[name].digest(samples["sample"]) for name, samples in chosen.items()}
    return settings_of(seed=data.SEED, models=used, swapped=digests, **own[system])


@click.command()
@click.option("--models", required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--work", type=click.Path(file_okay=False, path_type=Path), help="Folder of checkpoints.")
@click.option("--collection", "names", multiple=True, default=list(data.COLLECTIONS), show_default=True)
@click.argument("systems", nargs=-1, type=click.Choice(["encoder", "hawkes", "few-shot", "written"]))
def main(models: Path, work: Path | None, names: tuple[str, ...], systems: tuple[str, ...]) -> None:
    """Write predictions and settings to data/outputs/satisfaction."""
    held = {name: collection(name) for name in data.COLLECTIONS}
    for system in systems:
        path, settings = _path("settings", f"{system}.json"), _settings(system, held, models)
        state(path, settings)
        setups = {"few-shot": ["Few-shot"], "written": [""]}.get(system, list(UP_SAMPLING))
        for name, setup in product(names, setups):
            begun, part = time.monotonic(), held[name]
            if system == "written":
                _written(part, models)
                continue
            samples = _missing(system, part, setup)
            if samples.empty:
                continue
            if system == "encoder":
                _encoded(part, setup, samples, models, work)
            elif system == "hawkes":
                fitted = fit_hawkes(part.part("train"), times=UP_SAMPLING[setup], **HAWKES)
                _keep(system, setup, samples, fitted.probability(samples))
            else:
                _prompted(part, setup, samples, models)
            state(path, settings, {f"seconds of {name}, {setup}": round(time.monotonic() - begun, 1)})


if __name__ == "__main__":
    main()
