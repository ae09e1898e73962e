"""Record what estimators of user satisfaction say about dialogues and their counterfactuals, for thesis chapter 3.

``python -m equipoise.studies.satisfaction.record --models FOLDER SYSTEM ...`` needs the packages of the extra
``models``, model weights in FOLDER and the upstream data; it writes ``data/outputs/satisfaction``. Each system keeps
what it has done, and goes on from there when it is started again. Notebooks read only what it has written.
"""

from __future__ import annotations

import csv
import hashlib
import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
from tqdm import tqdm

from equipoise import project
from equipoise.files import read_columns
from equipoise.loaders import registry
from equipoise.studies.satisfaction import systems as estimators
from equipoise.studies.satisfaction.data import read_dialogues, read_samples
from equipoise.studies.satisfaction.dialogues import dialogue_text, parts_of, turn_samples
from equipoise.studies.satisfaction.swapped_dialogues import swap_responses, written_responses

COLLECTIONS = {"MultiWOZ": ("MWOZ", "mwoz"), "SGD": ("SGD", "sgd")}
"""Names of the collections, with those of their files in items uss and asap."""

FOLDER = ("outputs", "satisfaction")
COLUMNS = ["collection", "world", "sample", "system", "setup", "dissatisfaction"]
SEED = 20240501
LAST = 3
SUBSET = 50
UP_SAMPLING = {"w/o up-sampling": 1, "up-sampling x10": 10, "up-sampling x20": 20}
ENCODER: dict[str, Any] = {"steps": 250, "batch": 32, "length": 64, "rate": 5e-4, "seed": SEED}
HAWKES: dict[str, Any] = {"width": 128, "steps": 300, "rate": 0.03, "penalty": 1e-4, "seed": SEED}
FEW_SHOT_MODEL = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
WRITER_MODEL = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
WRITTEN = 4


@dataclass(frozen=True, eq=False)
class Collection:
    """Samples of one collection.

    ``dialogues``: Every turn, as the loader gives it. ``samples``: of all parts, with the column part ("train",
    "valid" or "test"). ``counterfactual``: Those of the test part with a last response of opposite outcome, where
    there is a donor.
    """

    name: str
    dialogues: pd.DataFrame
    samples: pd.DataFrame
    counterfactual: pd.DataFrame

    def part(self, name: str) -> pd.DataFrame:
        """Return the samples of a part."""
        return self.samples[self.samples["part"] == name].reset_index(drop=True)

    def digest(self) -> str:
        """Return the sha256 of what every counterfactual was made of: predictions fit only the same ones."""
        lines = self.counterfactual[["sample", "donor"]].agg(" ".join, axis=1)
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def collection(name: str) -> Collection:
    """Read a collection and make its counterfactual.

    ``name``: one of `COLLECTIONS`.

    Responses are swapped in from dialogues of the test and validation parts only, so that no estimator was trained on
    one, from the second turn of a dialogue on.
    """
    upper, lower = COLLECTIONS[name]
    dialogues = read_dialogues(registry.fetch("uss", f"dataset/{upper}.txt"))
    published = {
        part: read_samples(registry.fetch("asap", f"dataset/{lower}/{part}_{lower}.txt")) for part in ("valid", "test")
    }
    parts = parts_of(dialogues, published)
    words = None
    if name == "SGD":
        listed = read_columns(project.data("attributes", "sgd_services.csv"), ["word", "service"])
        words = dict(zip(listed["word"], listed["service"], strict=True))
    samples, early = (turn_samples(dialogues, least=least, words=words) for least in (4, 2))
    samples["part"], early["part"] = samples["dialogue"].map(parts), early["dialogue"].map(parts)
    test = samples[samples["part"] == "test"].reset_index(drop=True)
    return Collection(name, dialogues, samples, swap_responses(test, early[early["part"] != "train"]))


def ordered_subset(held: Collection, size: int | None = None) -> pd.DataFrame:
    """Test samples that have a counterfactual, in an order of which every beginning is balanced between the labels.

    ``size``: Samples to keep; without it, all. Returns DataFrame, columns sample, dissatisfied: Satisfied and
    dissatisfied by turns, as long as there are both; shuffled within a label by `SEED`.
    """
    test = held.part("test")
    test = test[test["sample"].isin(held.counterfactual["sample"])].reset_index(drop=True)
    shuffled = test.iloc[np.random.default_rng(SEED).permutation(len(test))]
    turn = shuffled.groupby("dissatisfied").cumcount()
    order = shuffled.assign(turn=turn).sort_values(["turn", "dissatisfied"], kind="stable")
    return order[["sample", "dissatisfied"]].iloc[:size].reset_index(drop=True)


def predictions(held: Iterable[Collection], *systems: str) -> pd.DataFrame:
    """Recorded probabilities of dissatisfaction.

    ``held``: what they are about: predictions of other counterfactuals are refused. ``*systems``: Files in
    ``data/outputs/satisfaction``, without ending. Returns DataFrame, columns collection, world, sample, system,
    setup, dissatisfaction: ``world`` is "Main", "CF" or "valid"; ``dissatisfaction`` the probability, from 0 to 1.
    """
    wanted = {part.name: part.digest() for part in held}
    for system in systems:
        text = project.data(*FOLDER, "settings", f"{system}.json").read_text(encoding="utf-8")
        made = json.loads(text)["counterfactuals"]
        stale = sorted(name for name, digest in wanted.items() if made.get(name) != digest)
        if stale:
            raise ValueError(f"predictions of {system} are of other counterfactuals of {', '.join(stale)}: record anew")
    tables = [read_columns(project.data(*FOLDER, f"{system}.csv"), COLUMNS) for system in systems]
    table = pd.concat(tables, ignore_index=True)
    table["dissatisfaction"] = table["dissatisfaction"].astype("float64")
    if not table["dissatisfaction"].between(0, 1).all() or table.duplicated(COLUMNS[:-1]).any():
        raise ValueError("recorded predictions are probabilities, one for each sample of a system and setup")
    return table


class _Record:
    """A file of predictions that grows as a system goes on."""

    def __init__(self, system: str) -> None:
        self.path = project.root().joinpath("data", *FOLDER, f"{system}.csv")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not self.path.is_file():
            self.path.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
        known = read_columns(self.path, COLUMNS)
        self.done = set(known[COLUMNS[:-1]].itertuples(index=False, name=None))

    def add(self, *keys: str, values: Sequence[tuple[str, float]]) -> None:
        name, world, system, setup = keys
        with self.path.open("a", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            for sample, value in values:
                if (name, world, sample, system, setup) not in self.done:
                    writer.writerow([name, world, sample, system, setup, f"{value:.6g}"])
                    self.done.add((name, world, sample, system, setup))

    def has(self, name: str, system: str, setup: str, world: str = "valid") -> bool:
        return any(key[0] == name and key[1] == world and key[3:] == (system, setup) for key in self.done)


def _note(system: str, entry: dict[str, Any]) -> None:
    path = project.root().joinpath("data", *FOLDER, "settings", f"{system}.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    inputs = {key: value for key, value in project.used_files().items() if not key.startswith("data/out")}
    path.write_text(json.dumps(entry | {"inputs": inputs}, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _worlds(held: Collection) -> dict[str, pd.DataFrame]:
    return {"valid": held.part("valid"), "Main": held.part("test"), "CF": held.counterfactual}


def _trained(
    system: str,
    held: Collection,
    fit: Callable[[pd.DataFrame, int], Callable[[pd.DataFrame], Any]],
    seconds: dict[str, float],
) -> None:
    record, worlds = _Record(system), _worlds(held)
    for setup, times in UP_SAMPLING.items():
        if record.has(held.name, system, setup, "CF"):
            continue
        begun = time.monotonic()
        predict = fit(held.part("train"), times)
        found = predict(pd.concat(worlds.values(), ignore_index=True))
        ends = np.cumsum([len(samples) for samples in worlds.values()])[:-1]
        for (world, samples), part in zip(worlds.items(), np.split(found, ends), strict=True):
            record.add(held.name, world, system, setup, values=list(zip(samples["sample"], part, strict=True)))
        seconds[f"{held.name}, {setup}"] = round(time.monotonic() - begun, 1)


def _examples(held: Collection) -> list[tuple[str, str]]:
    """One satisfied and one dissatisfied training sample that all annotators agree on, drawn by the seed."""
    train = held.part("train")
    short = train[train["users"].map(len) == 3]
    rng = np.random.default_rng(SEED)
    shown = []
    for label, rating in zip(estimators.LABELS, (4, 1), strict=True):
        pool = short[short["rating"] >= rating] if rating > 3 else short[short["rating"] < 3]
        row = pool.iloc[int(rng.integers(len(pool)))]
        shown.append((dialogue_text(row["users"], row["systems"], LAST), label))
    return shown


def _few_shot(held: Collection, models: Path, seconds: dict[str, float]) -> None:
    record = _Record("few-shot")
    first_tokens, _ = estimators.language_model(models / FEW_SHOT_MODEL)
    shown = _examples(held)
    worlds = {world: samples.set_index("sample") for world, samples in _worlds(held).items()}
    begun = time.monotonic()
    for sample in tqdm(ordered_subset(held, SUBSET)["sample"], desc=f"few-shot, {held.name}", mininterval=10):
        for world in ("Main", "CF"):
            if (held.name, world, sample, "few-shot", "Few-shot") in record.done:
                continue
            row = worlds[world].loc[sample]
            prompt = estimators.few_shot_prompt(row["users"], row["systems"], shown, LAST)
            value = estimators.label_probability(first_tokens(prompt))
            record.add(held.name, world, "few-shot", "Few-shot", values=[(sample, value)])
    seconds[held.name] = round(time.monotonic() - begun, 1)


def _written(held: Collection, models: Path) -> pd.DataFrame:
    _, continuation = estimators.language_model(models / WRITER_MODEL)
    chosen = held.part("test").set_index("sample").loc[ordered_subset(held, WRITTEN)["sample"]].reset_index()
    first = _examples(held)
    examples = [(first[0][0], "I'm sorry, I can't help with that."), (first[1][0], "Yes, that is done for you.")]
    made = written_responses(chosen, lambda prompt: continuation(prompt, 48), examples, writer=WRITER_MODEL, last=LAST)
    made["response"] = made["systems"].str[-1]
    return made.assign(collection=held.name)[["collection", "sample", "dissatisfied", "response", "writer"]]


@click.command()
@click.option("--models", required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--work", type=click.Path(file_okay=False, path_type=Path), help="Folder of checkpoints.")
@click.option("--collection", "names", multiple=True, default=list(COLLECTIONS), show_default=True)
@click.argument("systems", nargs=-1, type=click.Choice(["encoder", "hawkes", "few-shot", "written"]))
def main(models: Path, work: Path | None, names: tuple[str, ...], systems: tuple[str, ...]) -> None:
    """Write predictions and settings to data/outputs/satisfaction."""
    held = [collection(name) for name in names]
    for system in systems:
        seconds: dict[str, float] = {}
        entry: dict[str, Any] = {"seed": SEED, "counterfactuals": {part.name: part.digest() for part in held}}
        if system == "encoder":
            base = models / "splade-tiny-msmarco"
            for part in held:
                _trained(system, part, partial(_tuned, base, work, part.name), seconds)
            entry |= {
                "base": "SPLADE-tiny (a BertForMaskedLM, Apache-2.0)",
                "sha256": project.sha256(base / "model.safetensors"),
                "training": ENCODER,
                "exchanges shown": LAST,
                "versions": {name: version(name) for name in ("torch", "transformers")},
            }
        elif system == "hawkes":
            for part in held:
                _trained(
                    system,
                    part,
                    lambda train, times: estimators.fit_hawkes(train, times=times, **HAWKES).probability,
                    seconds,
                )
            entry |= {
                "training": HAWKES,
                "versions": {name: version(name) for name in ("scikit-learn", "torch")},
            }
        elif system == "few-shot":
            for part in held:
                _few_shot(part, models, seconds)
            entry |= {
                "model": FEW_SHOT_MODEL,
                "sha256": project.sha256(models / FEW_SHOT_MODEL),
                "exchanges shown": LAST,
                "subset": SUBSET,
                "prompt": estimators.few_shot_prompt(["..."], ["..."], [("...", label) for label in estimators.LABELS]),
                "versions": {"xllamacpp": version("xllamacpp")},
            }
        else:
            made = pd.concat([_written(part, models) for part in held])
            path = project.root().joinpath("data", *FOLDER, "written.csv")
            made.to_csv(path, index=False, lineterminator="\n")
            entry |= {"model": WRITER_MODEL, "sha256": project.sha256(models / WRITER_MODEL), "exchanges shown": LAST}
        _note(system, entry | ({"seconds on one thread": seconds} if seconds else {}))


def _tuned(base: Path, work: Path | None, name: str, train: pd.DataFrame, times: int) -> Callable[[pd.DataFrame], Any]:
    checkpoint = None if work is None else work / f"{name}-{times}.pt"
    labels = train["dissatisfied"].tolist()
    return lambda samples: estimators.fine_tune_encoder(
        base, _texts(train), labels, _texts(samples), times=times, checkpoint=checkpoint, **ENCODER
    )


def _texts(samples: pd.DataFrame) -> list[str]:
    return [
        dialogue_text(users, systems, LAST) for users, systems in zip(samples["users"], samples["systems"], strict=True)
    ]


if __name__ == "__main__":
    main()
