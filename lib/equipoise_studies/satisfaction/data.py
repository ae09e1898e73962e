"""Collections of rated dialogues for chapter 3, with other last responses, and what was recorded.

A collection comes from facts (`collection_of_facts`), which is enough to score what estimators
said, or with its texts (`read_collection`), which estimators and writers have to read.
"""

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
from equipoise_compendium import facts, project, registry
from equipoise_studies.recording import read_settings
from equipoise_studies.satisfaction.dialogues import (
    count_words,
    dialogue_samples,
    label_of,
    parts_of,
    rated_rows,
    turn_samples,
)
from equipoise_studies.satisfaction.readers import read_dialogues, read_samples
from equipoise_studies.satisfaction.swapped import swap_responses, with_labels_of

STUDY = "satisfaction"
COLLECTIONS = ("MultiWOZ", "SGD")
"""The collections of the thesis."""

FILES = {"MultiWOZ": "MWOZ", "SGD": "SGD"}
"""Files of item uss that hold them; facts are made of these two."""

PART_FILES = {"MWOZ": "mwoz", "SGD": "sgd"}
"""Name of the parts in item asap, of the files of item uss that have them."""

FOLDER = ("outputs", STUDY)
"""Where recorded predictions are, below ``data/``."""

PREDICTION_COLUMNS = ["collection", "world", "sample", "system", "setup", "dissatisfaction"]
SEED = 20240501
FIRST_TURN, LAST_TURN = 4, 16
"""User turns whose ratings are estimated: with these, Table 3.2 comes out."""

Level = Literal["turn", "dialogue"]

RATED_AGAIN = {
    "MultiWOZ": {
        "human": [
            "human_mwoz/train_mwoz.txt",
            "human_mwoz/valid_mwoz.txt",
            "human_mwoz/test_human_mwoz.txt",
        ],
        "model": [f"gemini_mwoz/{part}_gemini_mwoz.txt" for part in ("train", "valid", "test")],
    },
    "SGD": {
        "human": [f"human_sgd/{part}_human_sgd.txt" for part in ("train", "valid", "test")],
        "model": [f"gpt4_sgd/{part}_gpt_sgd.txt" for part in ("train", "valid", "test")],
    },
}
"""Files of item use_relabel, by collection and by who rated."""


@dataclass(frozen=True, eq=False)
class Collection:
    """Samples of one collection.

    ``rated_rows``: every rated row, as `equipoise_studies.satisfaction.dialogues.rated_rows` gives
    it. ``all_samples``: samples from the second turn on, with the column part ("train", "valid" or
    "test"), and with users and systems only where the texts were read. ``level``: what is rated.
    ``turned``: samples of the test part with another last response, of the opposite label.
    ``world``: their name: "swapped", or "CF" as the thesis has it.
    """

    name: str
    rated_rows: pd.DataFrame
    all_samples: pd.DataFrame
    level: Level = "turn"
    turned: pd.DataFrame = field(default_factory=pd.DataFrame)
    world: str = "CF"

    @cached_property
    def samples(self) -> pd.DataFrame:
        """The samples that are estimated: those of user turns 4 to 16, or dialogues."""
        if self.level == "dialogue":
            return self.all_samples
        return self.all_samples[self.all_samples["turn"].between(FIRST_TURN, LAST_TURN)]

    @property
    def has_texts(self) -> bool:
        """Whether the texts were read."""
        return "systems" in self.all_samples

    def part(self, name: str) -> pd.DataFrame:
        """The samples of a part."""
        return self.samples[self.samples["part"] == name].reset_index(drop=True)

    def worlds(self) -> pd.DataFrame:
        """The samples that estimators label, with collection and world.

        The worlds are "valid" and "Main", the validation and the test part, and that of the turned
        samples.
        """
        samples_by_world = {
            "valid": self.part("valid"),
            "Main": self.part("test"),
            self.world: self.turned,
        }
        tables = []
        for world, samples in samples_by_world.items():
            if len(samples):
                tables.append(samples.assign(collection=self.name, world=world))
        return pd.concat(tables, ignore_index=True)

    def digest(self) -> str:
        """The sha256 of the turned samples: predictions fit only the same responses."""
        lines = []
        if not self.turned.empty:
            # A response of another dialogue is named by its donor, a written one by itself.
            responses = self.turned["donor" if "donor" in self.turned else "response"]
            lines = (self.turned["sample"] + " " + responses).tolist()
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()


# --- collections of facts -------------------------------------------------------------------------


def collection_of_facts(name: str) -> Collection:
    """One of `COLLECTIONS` from its facts, without texts and with no other responses yet."""
    turns = facts.read(STUDY, "rated_turns.parquet")
    turns = turns[turns["collection"] == name].reset_index(drop=True)
    ratings = [tuple(map(int, text.split(","))) for text in turns["ratings"]]
    turns = turns.assign(ratings=ratings)

    # A sample is named by the turn that rates it; its act is that of the user turn before.
    samples = turns.assign(sample=turns["dialogue"] + ":" + turns["line"].astype(str))
    samples["act"] = samples.groupby("dialogue", sort=False)["act"].shift()
    samples = samples[samples["answered"]].reset_index(drop=True)
    rating = label_of(samples["ratings"].tolist())
    samples = samples.assign(rating=rating, dissatisfied=rating < 3)
    samples = samples.drop(columns=["collection", "line", "answered", "ratings"])
    return Collection(name, turns[["dialogue", "line", "turn", "act", "ratings"]], samples)


def with_swaps_of_facts(collection: Collection) -> Collection:
    """A collection of facts whose test part has the swapped responses of the facts."""
    swaps = facts.read(STUDY, "swaps.csv", {"similarity": float})
    swaps = swaps[swaps["collection"] == collection.name].drop(columns="collection")
    # In the order of the test samples, as the digest of the turned ones takes them.
    turned = collection.part("test").merge(swaps, on="sample", validate="one_to_one")
    donors = collection.all_samples.set_index("sample").loc[turned["donor"]]
    turned = with_labels_of(turned, donors.reset_index())
    return replace(collection, turned=turned, world="swapped")


def load_relabelled(name: str) -> pd.DataFrame:
    """Classes of dialogues rated by people and by a language model: columns human and model.

    The classes are 0 (dissatisfied), 1 (neutral) or 2 (satisfied). The model is Gemini for MultiWOZ
    and GPT-4 for SGD.
    """
    classes = facts.read(STUDY, "relabelled.csv", {"human": int, "model": int})
    classes = classes[classes["collection"] == name]
    return classes[["human", "model"]].reset_index(drop=True)


# --- collections with their texts -----------------------------------------------------------------


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
    rows = read_dialogues(dialogues)
    if parts:
        samples_by_part = {part: read_samples(path) for part, path in parts.items()}
        part_by_dialogue = parts_of(rows, samples_by_part)
    else:
        part_by_dialogue = _drawn_parts(rows["dialogue"].unique())

    if level == "dialogue":
        samples = dialogue_samples(rows)
    else:
        services_by_word = _services_by_word() if words else None
        samples = turn_samples(rows, least=2, most=None, words=services_by_word)
    samples = samples.assign(part=samples["dialogue"].map(part_by_dialogue))
    return Collection(name, rated_rows(rows), samples, level)


def _drawn_parts(dialogues: np.ndarray) -> pd.Series:
    names = np.random.default_rng(SEED).permutation(dialogues)
    tenth = max(1, len(names) // 10)
    parts = ["valid"] * tenth + ["test"] * tenth + ["train"] * (len(names) - 2 * tenth)
    return pd.Series(parts, index=names)


def _services_by_word() -> dict[str, str]:
    table = read_columns(project.data("attributes", "sgd_services.csv"), ["word", "service"])
    return dict(zip(table["word"], table["service"], strict=True))


def upstream_files(file: str) -> dict[str, tuple[str, str]]:
    """Item and path of the dialogues of a file of item uss, and of its parts, if it has any."""
    files = {"dialogues": ("uss", f"dataset/{file}.txt")}
    short_name = PART_FILES.get(file)
    if short_name:
        for part in ("valid", "test"):
            files[part] = ("asap", f"dataset/{short_name}/{part}_{short_name}.txt")
    return files


def read_upstream(name: str, file: str, level: Level = "turn") -> Collection:
    """Read a file of item uss, with the parts of item asap where there are any."""
    parts = {}
    for part, (item, path) in upstream_files(file).items():
        parts[part] = registry.fetch(item, path)
    dialogues = parts.pop("dialogues")
    return read_collection(name, dialogues, parts, level=level, words=file == "SGD")


def read_relabelled(name: str) -> pd.DataFrame:
    """Dialogues of item use_relabel that were rated both by people and by a language model.

    Returns the columns text, human, model: one row for each dialogue that stands once in the files
    of both, in the order of those by people; the classes are those of `load_relabelled`.
    """
    classes_by_rater = []
    for rater, paths in RATED_AGAIN[name].items():
        files = [read_samples(registry.fetch("use_relabel", path)) for path in paths]
        samples = pd.concat(files)
        texts = samples["users"].map("\n".join) + samples["systems"].map("\n".join)
        classes = pd.DataFrame({"text": texts, rater: samples["level"]})
        # Of a dialogue that stands twice it is not known which rating is whose.
        classes_by_rater.append(classes.drop_duplicates("text", keep=False))
    human, model = classes_by_rater
    return human.merge(model, on="text")


def with_swapped(collection: Collection) -> Collection:
    """A collection whose test part has swapped responses.

    They are taken from the second turn on, of dialogues of the test and validation parts only: no
    estimator was trained on one.
    """
    donors = collection.all_samples[collection.all_samples["part"] != "train"]
    turned = swap_responses(collection.part("test"), donors)
    return replace(collection, turned=turned, world="swapped")


def with_responses(collection: Collection, responses: pd.DataFrame) -> Collection:
    """A collection whose test part has other last responses, of opposite label.

    ``responses``: columns sample and response.
    """
    turned = collection.part("test").merge(
        responses[["sample", "response"]], on="sample", validate="one_to_one"
    )
    if collection.has_texts:
        turned["original"] = turned["systems"]
        systems = []
        for texts, response in zip(turned["original"], turned["response"], strict=True):
            systems.append((*texts[:-1], response))
        turned["systems"] = systems
    response_words = turned["response"].map(count_words)
    turned = turned.assign(
        words=turned["words"] - turned["response_words"] + response_words,
        response_words=response_words,
        dissatisfied=~turned["dissatisfied"],
        rating=pd.NA,
    )
    return replace(collection, turned=turned, world="CF")


# --- orders and draws -----------------------------------------------------------------------------


def balanced_order(collection: Collection) -> pd.DataFrame:
    """Test samples in an order of which every beginning is balanced: the two labels by turns.

    As long as there are both; shuffled within a label by `SEED`.
    """
    test = collection.part("test")
    shuffled = test.iloc[np.random.default_rng(SEED).permutation(len(test))]
    place = shuffled.groupby("dissatisfied").cumcount()
    order = shuffled.assign(place=place).sort_values(["place", "dissatisfied"])
    return order.drop(columns="place").reset_index(drop=True)


def drawn_dialogues(samples: pd.DataFrame, most: int) -> pd.DataFrame:
    """The samples of so many dialogues, drawn by `SEED`, turn after turn; of all where it is 0."""
    ids = samples["sample"].str.split(":")
    dialogues, lines = ids.str[0].astype(int), ids.str[1].astype(int)
    drawn = np.random.default_rng(SEED).permutation(np.sort(dialogues.unique()))
    places = pd.Series(np.arange(len(drawn)), index=drawn)
    order = samples.assign(place=dialogues.map(places), line=lines)
    order = order.sort_values(["place", "line", "world"])
    if most:
        order = order[order["place"] < most]
    return order.drop(columns=["place", "line"]).reset_index(drop=True)


# --- what was recorded ----------------------------------------------------------------------------


def predictions(collections: Iterable[Collection], paths: Mapping[str, Path]) -> pd.DataFrame:
    """Recorded probabilities of dissatisfaction.

    ``collections``: those that they are about; predictions of other responses are refused.
    ``paths``: the file of each system, with its settings beside it in ``settings``. Returns:
    `PREDICTION_COLUMNS`, where ``world`` is "valid", "Main" or that of the turned samples and
    ``dissatisfaction`` is the probability, from 0 to 1, NaN where an answer held no label.
    """
    digests = {collection.name: collection.digest() for collection in collections}
    tables = []
    for system, path in paths.items():
        settings = read_settings(settings_path(path))
        table = read_columns(path, PREDICTION_COLUMNS)
        tables.append(table)
        stale = []
        for name in sorted(set(table["collection"]) & digests.keys()):
            if settings["turned"].get(name) != digests[name]:
                stale.append(name)
        if stale:
            raise ValueError(
                f"{system} labelled other last responses of {', '.join(stale)}: record anew"
            )
    table = pd.concat(tables, ignore_index=True)
    is_answered = table["dissatisfaction"] != ""
    probabilities = table["dissatisfaction"].where(is_answered, "nan").astype("float64")
    table["dissatisfaction"] = probabilities
    in_range = probabilities[is_answered].between(0, 1).all()
    if not in_range or table.duplicated(PREDICTION_COLUMNS[:-1]).any():
        raise ValueError(
            "recorded predictions are probabilities, one for each sample of a system and setup"
        )
    return table


def settings_path(path: Path) -> Path:
    """Where the settings of a recorded file lie."""
    return path.parent / "settings" / f"{path.stem}.json"
