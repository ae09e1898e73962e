"""Collections of rated dialogues for chapter 3, with other last responses, and what was recorded about them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from equipoise.files import read_columns
from equipoise_compendium import project, registry
from equipoise_studies.recording import read_settings
from equipoise_studies.satisfaction.dialogues import dialogue_samples, parts_of, turn_samples
from equipoise_studies.satisfaction.readers import read_dialogues, read_samples
from equipoise_studies.satisfaction.swapped import swap_responses

COLLECTIONS = ("MultiWOZ", "SGD")
"""The collections of the thesis."""

UPSTREAM = {"MWOZ": "mwoz", "SGD": "sgd", "ReDial": "", "CCPE": ""}
"""Files of item uss, with the name of their parts in item asap, if they have any."""

FOLDER = ("outputs", "satisfaction")
"""Where recorded predictions are, below ``data/``."""

PREDICTION_COLUMNS = ["collection", "world", "sample", "system", "setup", "dissatisfaction"]
SEED = 20240501
Level = Literal["turn", "dialogue"]

_RELABELLED = {
    "MultiWOZ": {"human": "human_mwoz/{}_mwoz.txt", "model": "gemini_mwoz/{}_gemini_mwoz.txt"},
    "SGD": {"human": "human_sgd/{}_human_sgd.txt", "model": "gpt4_sgd/{}_gpt_sgd.txt"},
}
_MISNAMED = {"human_mwoz/test_mwoz.txt": "human_mwoz/test_human_mwoz.txt"}


@dataclass(frozen=True, eq=False)
class Collection:
    """Samples of one collection.

    ``dialogues``: every turn, as `read_dialogues` gives it. ``rated``: samples from the second turn
    on, with the column part ("train", "valid" or "test"). ``level``: what is rated. ``turned``:
    samples of the test part with another last response, of the opposite label. ``world``: their
    name: "swapped", or "CF" as the thesis has it.
    """

    name: str
    dialogues: pd.DataFrame
    rated: pd.DataFrame
    level: Level = "turn"
    turned: pd.DataFrame = field(default_factory=pd.DataFrame)
    world: str = "CF"

    @cached_property
    def samples(self) -> pd.DataFrame:
        """The samples that are estimated: those of user turns 4 to 16, or whole dialogues."""
        return (
            self.rated[self.rated["users"].map(len).between(3, 15)]
            if self.level == "turn"
            else self.rated
        )

    def part(self, name: str) -> pd.DataFrame:
        """The samples of a part."""
        return self.samples[self.samples["part"] == name].reset_index(drop=True)

    def worlds(self) -> pd.DataFrame:
        """The samples that estimators label, with collection and world.

        The worlds are "valid" and "Main", the validation and the test part, and that of the turned
        samples.
        """
        worlds = {"valid": self.part("valid"), "Main": self.part("test"), self.world: self.turned}
        tables = [
            samples.assign(collection=self.name, world=world) for world, samples in worlds.items()
        ]
        return pd.concat([table for table in tables if len(table)], ignore_index=True)

    def digest(self) -> str:
        """The sha256 of the turned samples: predictions fit only the same responses."""
        if self.turned.empty:
            lines = []
        elif "donor" in self.turned:
            lines = [f"{row.sample} {row.donor}" for row in self.turned.itertuples()]
        else:
            lines = [f"{row.sample} {row.systems[-1]}" for row in self.turned.itertuples()]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def read_collection(
    name: str,
    dialogues: Path,
    parts: Mapping[str, Path],
    *,
    level: Level = "turn",
    words: bool = False,
) -> Collection:
    """Read a file of dialogues; ``parts``: files of the validation and the test samples, by part.

    Without them a tenth of the dialogues each is drawn for validation and test, by `SEED`.
    ``words``: whether the service is told by words, where acts name none.
    """
    held = read_dialogues(dialogues)
    if parts:
        part = parts_of(held, {part: read_samples(file) for part, file in parts.items()})
    else:
        names = np.random.default_rng(SEED).permutation(held["dialogue"].unique())
        tenth = max(1, len(names) // 10)
        drawn = ["valid"] * tenth + ["test"] * tenth + ["train"] * (len(names) - 2 * tenth)
        part = pd.Series(drawn, index=names)
    told = None
    if words:
        listed = read_columns(project.data("attributes", "sgd_services.csv"), ["word", "service"])
        told = dict(zip(listed["word"], listed["service"], strict=True))
    rated = (
        turn_samples(held, least=2, most=None, words=told)
        if level == "turn"
        else dialogue_samples(held)
    )
    return Collection(name, held, rated.assign(part=rated["dialogue"].map(part)), level)


def read_upstream(name: str, file: str, level: Level = "turn") -> Collection:
    """Read a file of item uss, named in `UPSTREAM`, with the parts of item asap."""
    parts = {}
    if short := UPSTREAM[file]:
        parts = {
            part: registry.fetch("asap", f"dataset/{short}/{part}_{short}.txt")
            for part in ("valid", "test")
        }
    dialogues = registry.fetch("uss", f"dataset/{file}.txt")
    return read_collection(name, dialogues, parts, level=level, words=file == "SGD")


def with_swapped(held: Collection) -> Collection:
    """A collection whose test part has swapped responses.

    They are taken from the second turn on, of dialogues of the test and validation parts only: no
    estimator was trained on one.
    """
    rated = held.rated
    return replace(
        held,
        turned=swap_responses(held.part("test"), rated[rated["part"] != "train"]),
        world="swapped",
    )


def with_responses(held: Collection, responses: pd.DataFrame) -> Collection:
    """A collection whose test part has the given last responses, of opposite label: columns sample and response."""
    turned = held.part("test").merge(
        responses[["sample", "response"]], on="sample", validate="one_to_one"
    )
    turned["original"], last = turned["systems"], turned.pop("response")
    turned["systems"] = [
        (*said[:-1], new) for said, new in zip(turned["systems"], last, strict=True)
    ]
    return replace(
        held, turned=turned.assign(dissatisfied=~turned["dissatisfied"], rating=pd.NA), world="CF"
    )


def collection(name: str) -> Collection:
    """One of `COLLECTIONS` with swapped responses."""
    return with_swapped(read_upstream(name, {"MultiWOZ": "MWOZ"}.get(name, name)))


def balanced_order(held: Collection) -> pd.DataFrame:
    """The test samples in an order of which every beginning is balanced: satisfied and dissatisfied by turns.

    As long as there are both; shuffled within a label by `SEED`.
    """
    test = held.part("test")
    shuffled = test.iloc[np.random.default_rng(SEED).permutation(len(test))]
    order = shuffled.assign(turn=shuffled.groupby("dissatisfied").cumcount())
    return order.sort_values(["turn", "dissatisfied"]).drop(columns="turn").reset_index(drop=True)


def drawn_dialogues(samples: pd.DataFrame, most: int) -> pd.DataFrame:
    """The samples of so many dialogues, drawn by `SEED`, turn after turn; of all dialogues where ``most`` is 0."""
    homes, lines = (samples["sample"].str.split(":").str[place].astype(int) for place in (0, 1))
    names = np.random.default_rng(SEED).permutation(np.sort(homes.unique()))
    place = homes.map({name: place for place, name in enumerate(names)})
    order = samples.assign(place=place, line=lines).sort_values(["place", "line", "world"])
    kept = order[order["place"] < most] if most else order
    return kept.drop(columns=["place", "line"]).reset_index(drop=True)


def load_relabelled(name: str) -> pd.DataFrame:
    """Dialogues of item use_relabel that were rated both by people and by a language model.

    Returns the columns text, human, model: one row for each dialogue that stands once in the files
    of both, in the order of those by people; the classes are 0 (dissatisfied), 1 (neutral) or 2
    (satisfied). The model is Gemini for MultiWOZ and GPT-4 for SGD.
    """
    rated = []
    for rater, form in _RELABELLED[name].items():
        files = [form.format(part) for part in ("train", "valid", "test")]
        samples = pd.concat(
            [
                read_samples(registry.fetch("use_relabel", _MISNAMED.get(file, file)))
                for file in files
            ]
        )
        text = samples["users"].map("\n".join) + samples["systems"].map("\n".join)
        rated.append(
            pd.DataFrame({"text": text, rater: samples["level"]}).drop_duplicates(
                "text", keep=False
            )
        )
    return rated[0].merge(rated[1], on="text")


def predictions(held: Iterable[Collection], paths: Mapping[str, Path]) -> pd.DataFrame:
    """Recorded probabilities of dissatisfaction.

    ``held``: the collections that they are about; predictions of other responses are refused.
    ``paths``: the file of each system, with its settings beside it in ``settings``. Returns:
    `PREDICTION_COLUMNS`, where ``world`` is "valid", "Main" or that of the turned samples and
    ``dissatisfaction`` is the probability, from 0 to 1.
    """
    found, tables = {part.name: part.digest() for part in held}, []
    for system, path in paths.items():
        made = read_settings(settings_path(path))
        tables.append(read_columns(path, PREDICTION_COLUMNS))
        there = set(tables[-1]["collection"])
        stale = sorted(
            name
            for name, digest in found.items()
            if name in there and made["turned"].get(name) != digest
        )
        if stale:
            raise ValueError(
                f"{system} labelled other last responses of {', '.join(stale)}: record anew"
            )
    table = pd.concat(tables, ignore_index=True).astype({"dissatisfaction": "float64"})
    if (
        not table["dissatisfaction"].between(0, 1).all()
        or table.duplicated(PREDICTION_COLUMNS[:-1]).any()
    ):
        raise ValueError(
            "recorded predictions are probabilities, one for each sample of a system and setup"
        )
    return table


def settings_path(path: Path) -> Path:
    """Where the settings of a recorded file lie."""
    return path.parent / "settings" / f"{path.stem}.json"
