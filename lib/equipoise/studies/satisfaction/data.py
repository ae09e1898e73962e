"""The collections of chapter 3, MultiWOZ and SGD, with swapped responses, and what was recorded about them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from equipoise import project
from equipoise.files import read_columns
from equipoise.loaders import registry
from equipoise.studies.satisfaction.dialogues import parts_of, turn_samples
from equipoise.studies.satisfaction.readers import read_dialogues, read_samples
from equipoise.studies.satisfaction.swapped import swap_responses

COLLECTIONS = {"MultiWOZ": ("MWOZ", "mwoz"), "SGD": ("SGD", "sgd")}
"""Names of the collections, with those of their files in items uss and asap."""

FOLDER = ("outputs", "satisfaction")
"""Where recorded predictions are, below ``data/``."""

PREDICTION_COLUMNS = ["collection", "world", "sample", "system", "setup", "dissatisfaction"]
SEED = 20240501

_RELABELLED = {
    "MultiWOZ": {"human": "human_mwoz/{}_mwoz.txt", "model": "gemini_mwoz/{}_gemini_mwoz.txt"},
    "SGD": {"human": "human_sgd/{}_human_sgd.txt", "model": "gpt4_sgd/{}_gpt_sgd.txt"},
}
_MISNAMED = {"human_mwoz/test_mwoz.txt": "human_mwoz/test_human_mwoz.txt"}


@dataclass(frozen=True, eq=False)
class Collection:
    """Samples of one collection.

    ``dialogues``: every turn, as `read_dialogues` gives it. ``samples``: those of all parts, with the column part
    ("train", "valid" or "test"). ``swapped``: those of the test part that have a donor, with its last response, whose
    own user was of the opposite mind.
    """

    name: str
    dialogues: pd.DataFrame
    samples: pd.DataFrame
    swapped: pd.DataFrame

    def part(self, name: str) -> pd.DataFrame:
        """The samples of a part."""
        return self.samples[self.samples["part"] == name].reset_index(drop=True)

    def worlds(self) -> pd.DataFrame:
        """The samples that estimators label, with collection and world.

        The worlds are "valid" and "Main", the validation and the test part, and "swapped", the test part with
        swapped last responses.
        """
        worlds = {"valid": self.part("valid"), "Main": self.part("test"), "swapped": self.swapped}
        tables = [samples.assign(collection=self.name, world=world) for world, samples in worlds.items()]
        return pd.concat(tables, ignore_index=True)

    def digest(self, samples: Iterable[str]) -> str:
        """The sha256 of the donors of these samples: predictions fit only the same swapped responses."""
        among = self.swapped["sample"].isin(list(samples))
        lines = self.swapped.loc[among, ["sample", "donor"]].agg(" ".join, axis=1)
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def collection(name: str) -> Collection:
    """Read one of `COLLECTIONS` and swap in last responses.

    Samples are those of user turns 4 to 16. Swapped responses are taken from the second turn on, of dialogues of the
    test and validation parts only: no estimator was trained on one.
    """
    upper, lower = COLLECTIONS[name]
    dialogues = read_dialogues(registry.fetch("uss", f"dataset/{upper}.txt"))
    files = {part: registry.fetch("asap", f"dataset/{lower}/{part}_{lower}.txt") for part in ("valid", "test")}
    parts = parts_of(dialogues, {part: read_samples(file) for part, file in files.items()})
    words = None
    if name == "SGD":
        listed = read_columns(project.data("attributes", "sgd_services.csv"), ["word", "service"])
        words = dict(zip(listed["word"], listed["service"], strict=True))
    rated = turn_samples(dialogues, least=2, most=None, words=words)
    rated["part"] = rated["dialogue"].map(parts)
    samples = rated[rated["users"].map(len).between(3, 15)]
    swapped = swap_responses(samples[samples["part"] == "test"], rated[rated["part"] != "train"])
    return Collection(name, dialogues, samples, swapped)


def ordered_subset(held: Collection, size: int) -> pd.DataFrame:
    """Test samples that have a swapped response, so many, in an order of which every beginning is balanced.

    Returns the columns sample, dissatisfied: satisfied and dissatisfied by turns, as long as there are both; shuffled
    within a label by `SEED`.
    """
    test = held.part("test").merge(held.swapped[["sample"]])
    shuffled = test.iloc[np.random.default_rng(SEED).permutation(len(test))]
    order = shuffled.assign(turn=shuffled.groupby("dissatisfied").cumcount()).sort_values(["turn", "dissatisfied"])
    return order[["sample", "dissatisfied"]].iloc[:size].reset_index(drop=True)


def load_relabelled(name: str) -> pd.DataFrame:
    """Dialogues of item use_relabel that were rated both by people and by a language model.

    Returns the columns text, human, model: one row for each dialogue that stands once in the files of both, in the
    order of those by people; the classes are 0 (dissatisfied), 1 (neutral) or 2 (satisfied). The model is Gemini for
    MultiWOZ and GPT-4 for SGD.
    """
    rated = []
    for rater, form in _RELABELLED[name].items():
        files = [form.format(part) for part in ("train", "valid", "test")]
        samples = pd.concat([read_samples(registry.fetch("use_relabel", _MISNAMED.get(file, file))) for file in files])
        text = samples["users"].map("\n".join) + samples["systems"].map("\n".join)
        rated.append(pd.DataFrame({"text": text, rater: samples["level"]}).drop_duplicates("text", keep=False))
    return rated[0].merge(rated[1], on="text")


def predictions(held: Iterable[Collection], *systems: str) -> pd.DataFrame:
    """Recorded probabilities of dissatisfaction.

    ``held``: the collections that they are about; predictions of other swapped responses are refused. ``*systems``:
    names of files in ``data/outputs/satisfaction``, without their ending. Returns: `PREDICTION_COLUMNS`, where
    ``world`` is "Main", "swapped" or "valid" and ``dissatisfaction`` is the probability, from 0 to 1.
    """
    parts, tables = list(held), []
    for system in systems:
        made = json.loads(project.data(*FOLDER, "settings", f"{system}.json").read_text(encoding="utf-8"))
        tables.append(read_columns(project.data(*FOLDER, f"{system}.csv"), PREDICTION_COLUMNS))
        turned = tables[-1][tables[-1]["world"] == "swapped"]
        found = {part.name: part.digest(turned.loc[turned["collection"] == part.name, "sample"]) for part in parts}
        stale = sorted(name for name, digest in found.items() if made["swapped"].get(name) != digest)
        if stale:
            raise ValueError(f"{system} labelled other swapped responses of {', '.join(stale)}: record anew")
    table = pd.concat(tables, ignore_index=True).astype({"dissatisfaction": "float64"})
    if not table["dissatisfaction"].between(0, 1).all() or table.duplicated(PREDICTION_COLUMNS[:-1]).any():
        raise ValueError("recorded predictions are probabilities, one for each sample of a system and setup")
    return table
