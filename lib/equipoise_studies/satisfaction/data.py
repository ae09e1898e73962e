"""The data of chapter 3: settings, rated turns, samples, other last responses, predictions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from equipoise_compendium import project
from equipoise_compendium.printed import read_columns
from equipoise_studies.configs import ConfigPath, Settings, read_config

COLLECTIONS = ("MultiWOZ", "SGD")
FIRST_TURN, LAST_TURN = 4, 16
"""User turns whose ratings are estimated; with these, 13 of 18 cells of Table 3.2 agree."""

PUBLISHED_AS = {"BERT": "encoder", "ASAP": "hawkes", "Zephyr": "few-shot", "MistralIF": "few-shot"}
"""The kind of estimator that replaces each model of the thesis."""

USERS_SHARES, EXCHANGED = "users' shares", "shares exchanged"
"""How often each label occurs in training on users: as in the data, or with the labels swapped."""

Ties = Literal["lower", "higher", "first"]
"""The one of several most frequent ratings that counts."""
Share = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]
Whole = Annotated[int, Field(ge=0)]


# --- settings -------------------------------------------------------------------------------------


class Source(Settings):
    """Rated dialogues in the format of item uss, and their parts in the format of item asap.

    A file is a path relative to the config, or ``item/path`` of data/registry.tsv.
    """

    about: str
    dialogues: str
    valid: str
    test: str
    services_by_word: bool = False  # acts name no service, words do (data/attributes)


class Model(Settings):
    """A model: a GGUF file or checkpoint in the folder of models, or the name at an endpoint.

    The key in the environment variable ``key_variable`` is sent to this endpoint only.
    """

    about: str = ""
    model: str = ""
    endpoint: str = ""
    key_variable: str = ""


class Writer(Model):
    """A language model that writes last responses, which annotators then label."""

    prompt: str
    size: Whole = 0  # test samples of each collection; 0 for all
    tokens: Count = 100  # of a response, at most
    who: str = "people"  # the annotators


class Training(Settings):
    """How an encoder is fine-tuned, or a Hawkes process fitted."""

    program: Literal["", "uss"] = ""  # uss: as the program of that item trains BERT
    epochs: Whole = 0
    steps: Whole = 0  # of a Hawkes process
    batch: Count = 32
    length: Count = 512  # tokens that are kept, from the end
    utterance: Whole = 0  # tokens of one utterance; 0 for all
    rate: Share = 2e-5
    precision: Literal["float32", "bfloat16"] = "float32"
    width: Count = 128  # dimensions of an exchange
    penalty: Annotated[float, Field(ge=0)] = 1e-4  # of the squared weights


class Estimator(Model):
    """An estimator of user satisfaction."""

    kind: Literal["few-shot", "encoder", "hawkes"]
    exchanges: Whole = 0  # that it reads, from the end; 0 for all
    prompt: str = ""
    dialogues: Whole = 0  # of each collection that a few-shot estimator labels; 0 for all
    training: Training = Training()
    up_sampling: tuple[Count, ...] = (1,)  # how often a dissatisfied sample is repeated
    under_sampling: bool = False  # also with as many satisfied samples as dissatisfied ones

    @property
    def setups(self) -> dict[str, int]:
        """Names of the setups in Table 3.6, and the repetitions in each; 0 is under-sampling."""
        if self.kind == "few-shot":
            return {"Few-shot": 1}
        setups = {}
        for times in self.up_sampling:
            setups["w/o up-sampling" if times == 1 else f"up-sampling x{times}"] = times
        if self.under_sampling:
            setups["under-sampling"] = 0
        return setups


class Study(Settings):
    """A study in the design of chapter 3 (thesis sections 3.4 and 3.5).

    ``facts`` and ``outputs`` are the folders of derived data and of model outputs.
    """

    collections: dict[Literal["MultiWOZ", "SGD"], Source]
    counterfactuals: Literal["swapped", "written"] = "swapped"
    estimators: dict[str, Estimator]
    users: dict[str, Estimator] = Field(default={})  # estimators of users' own satisfaction
    writer: Writer
    facts: ConfigPath = Path("data/facts/satisfaction")
    outputs: ConfigPath = Path("data/outputs/satisfaction")
    folder: ConfigPath = Path()  # of this file, to which the names of others are relative

    @property
    def world(self) -> str:
        """The name of the test set with other last responses."""
        return "swapped" if self.counterfactuals == "swapped" else "CF"

    def prompt(self, name: str) -> str:
        """Read a prompt."""
        return (self.folder / name).read_text(encoding="utf-8").strip()


def read_study(name: str) -> Study:
    """Read a config: a name in data/studies/satisfaction, or the path of a YAML file."""
    return read_config(Study, "satisfaction", name)


# --- labels ---------------------------------------------------------------------------------------


def label_of(ratings: Sequence[Sequence[int]], ties: Ties = "lower") -> np.ndarray:
    """Return the most frequent rating of each turn, shaped (turns,); below 3 is dissatisfied.

    thesis, Table 3.1, which does not state how several ratings become one.
    """
    labels = []
    for turn_ratings in ratings:
        candidates = list(turn_ratings)
        if ties != "first":
            candidates.sort(reverse=ties == "higher")
        # Of several most frequent ratings, max() takes the first.
        labels.append(max(candidates, key=candidates.count))
    return np.array(labels, dtype=np.int64)


def without_dissenters(ratings: pd.Series) -> pd.Series:
    """Drop the raters of each dialogue who disagree most, until four are left.

    ``ratings`` has one tuple per rated turn, with the dialogue as index; a rater has the same
    position in all turns of a dialogue. The rater who agrees least often with the labels is
    dropped, of several the first. The README of item uss states that ratings at odds with others
    were removed, and not how. Of several hundred rules this one is nearest to Table 3.1.
    """
    remaining = []
    for dialogue, dialogue_ratings in ratings.groupby(level=0, sort=False):
        by_rater = np.array(dialogue_ratings.tolist())  # shape (turns, raters)
        while by_rater.shape[1] > 4:
            labels = label_of(by_rater.tolist())
            agreements = (by_rater == labels[:, np.newaxis]).sum(axis=0)
            by_rater = np.delete(by_rater, agreements.argmin(), axis=1)
        rows = list(map(tuple, by_rater.tolist()))
        remaining.append(pd.Series(rows, index=[dialogue] * len(rows)))
    return pd.concat(remaining)


# --- samples --------------------------------------------------------------------------------------


def rated_turns(study: Study) -> pd.DataFrame:
    """Read every rated turn of both collections; turn 0 rates the dialogue.

    Columns are those of the file (data/facts/satisfaction/README.md), with ratings as tuples.
    """
    turns = pd.read_parquet(study.facts / "rated_turns.parquet")
    ratings = [tuple(map(int, text.split(","))) for text in turns["ratings"]]
    return turns.assign(ratings=ratings)


def samples_of(turns: pd.DataFrame) -> pd.DataFrame:
    """Return the samples: dialogues up to a system response that is rated.

    Columns are collection, sample (``dialogue:line`` of the turn that rates it), dialogue, turn,
    part, act (of the last user utterance), service, rating and dissatisfied.
    """
    samples = turns.assign(sample=turns["dialogue"] + ":" + turns["line"].astype(str))
    samples["act"] = samples.groupby(["collection", "dialogue"], sort=False)["act"].shift()
    samples = samples[samples["answered"]].reset_index(drop=True)
    samples["rating"] = label_of(samples["ratings"].tolist())
    samples["dissatisfied"] = samples["rating"] < 3
    columns = ["collection", "sample", "dialogue", "turn", "part", "act", "service"]
    return samples[[*columns, "rating", "dissatisfied"]]


def estimated(samples: pd.DataFrame, part: str) -> pd.DataFrame:
    """Return the samples of a part that are estimated: those of user turns 4 to 16."""
    in_turns = samples["turn"].between(FIRST_TURN, LAST_TURN)
    return samples[in_turns & (samples["part"] == part)].reset_index(drop=True)


# --- other last responses -------------------------------------------------------------------------


def other_responses(study: Study, samples: pd.DataFrame) -> pd.DataFrame:
    """Return the test samples with another last response, and the label that they have with it.

    Columns are those of the samples, and ``donor`` and ``similarity`` of swapped responses, or the
    ``item`` of those that were written and that annotators confirmed.
    """
    test = estimated(samples, "test")
    if study.counterfactuals == "written":
        items = read_items(study)
        return confirmed(test, items, settled(study, items))
    columns = ["collection", "sample", "donor", "similarity"]
    swaps = read_columns(study.facts / "swaps.csv", columns)
    swaps["similarity"] = swaps["similarity"].astype(float)
    other = test.merge(swaps, on=["collection", "sample"], validate="one_to_one")
    donors = samples.set_index(["collection", "sample"])[["rating", "dissatisfied"]]
    keys = pd.MultiIndex.from_frame(other[["collection", "donor"]])
    other[["rating", "dissatisfied"]] = donors.loc[keys].to_numpy()
    return other.astype({"rating": "int64", "dissatisfied": bool})


def confirmed(test: pd.DataFrame, items: pd.DataFrame, labels: pd.DataFrame) -> pd.DataFrame:
    """Return the test samples whose written response turns the label, as annotators confirm."""
    if len(labels) < len(items):
        raise ValueError(f"{len(items) - len(labels)} of {len(items)} items have no label yet")
    as_asked = labels[labels["written"] & (labels["satisfied"] != labels["dissatisfied"])]
    other = test.merge(as_asked[["collection", "sample", "item"]], validate="one_to_one")
    return other.assign(dissatisfied=~other["dissatisfied"])


def read_items(study: Study) -> pd.DataFrame:
    """Read the items to annotate: the own and the written response of each context.

    Columns are collection, item, sample, written and dissatisfied, which is the label of the own
    response, or the one that the written response was to have.
    """
    columns = ["collection", "item", "sample", "written", "dissatisfied"]
    items = read_columns(study.facts / "annotated_items.csv", columns)
    return items.assign(
        written=items["written"] == "True", dissatisfied=items["dissatisfied"] == "True"
    )


def item_name(collection: str, sample: str, written: bool, response: str) -> str:
    """Name an item by a digest, which does not reveal whether its response was written."""
    content = f"{collection} {sample} {written} {response}"
    return hashlib.sha256(content.encode()).hexdigest()[:10]


def read_labels(study: Study, name: str) -> pd.DataFrame:
    """Read the answers of one annotator: columns item, satisfied and coherent.

    Items without both answers are left out.
    """
    tables = [pd.DataFrame(columns=["item", "satisfied", "coherent"], dtype=str)]
    for path in sorted((study.outputs / "annotations").glob(f"*-{name}.csv")):
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        answers = table[["satisfied", "coherent"]].apply(lambda cells: cells.str.strip())
        bad = ~answers.isin(["yes", "no", ""]).all(axis=1)
        if bad.any():
            line = int(bad.to_numpy().argmax()) + 2
            raise ValueError(f"{path.name}, line {line}: answers must be yes, no or empty")
        tables.append(table[["item"]].join(answers == "yes")[(answers != "").all(axis=1)])
    return pd.concat(tables, ignore_index=True).astype({"satisfied": bool, "coherent": bool})


def pairs_of_labels(study: Study, items: pd.DataFrame) -> pd.DataFrame:
    """Return the items that both annotators labelled; columns of the second end in ``_2``."""
    first, second = read_labels(study, "annotator-1"), read_labels(study, "annotator-2")
    return items.merge(first, on="item").merge(second, on="item", suffixes=("", "_2"))


def settled(study: Study, items: pd.DataFrame) -> pd.DataFrame:
    """Return the items with the label of both annotators, or of the third where these differ."""
    pairs = pairs_of_labels(study, items)
    differ = (pairs["satisfied"] != pairs["satisfied_2"]) | (
        pairs["coherent"] != pairs["coherent_2"]
    )
    disputed = pairs.loc[differ, items.columns].merge(read_labels(study, "adjudicator"), on="item")
    return pd.concat([pairs.loc[~differ, disputed.columns], disputed], ignore_index=True)


def written_responses(study: Study) -> pd.DataFrame:
    """Read the last responses that a language model wrote."""
    path = study.outputs / "written.csv"
    return read_columns(path, ["collection", "sample", "response"])


def users() -> pd.DataFrame:
    """Read users' own labels of their dialogues with recommenders (item crsarena).

    Columns are dialogue, recommender, user, exchanges, words and dissatisfied.
    """
    return pd.read_csv(project.data("facts", "satisfaction", "users.csv"))


def user_predictions() -> pd.DataFrame:
    """Read the cached probabilities of dissatisfaction of users.

    Columns are those of `users`, system, setup and dissatisfaction. A few-shot estimator learns no
    shares of the labels, so its predictions are repeated for both setups.
    """
    cached = pd.read_csv(project.data("outputs", "satisfaction", "users.csv"))
    both = [USERS_SHARES, EXCHANGED]
    cached["setup"] = [both if name == "Few-shot" else [name] for name in cached["setup"]]
    cached = cached.explode("setup", ignore_index=True)
    return cached.merge(users(), on="dialogue", validate="many_to_one")


def readings(study: Study, other: pd.DataFrame) -> pd.DataFrame:
    """Read whether swapped responses change the user's rating as their label claims, and why.

    One reader read 30 swapped responses of each collection, drawn at random. Columns are
    collection, sample, donor, shown (the label), flips (yes, no or unclear) and reason. The table
    is empty for responses that people confirmed.
    """
    columns = ["collection", "sample", "donor", "shown", "flips", "reason"]
    if study.counterfactuals == "written":
        return pd.DataFrame(columns=columns)
    table = read_columns(study.outputs / "readings.csv", columns)
    labels = np.where(other["dissatisfied"], "dissatisfied", "satisfied")
    known = other[["collection", "sample", "donor"]].assign(shown=labels)
    # Readings of other responses would be applied to the wrong ones.
    if len(table.merge(known)) < len(table):
        raise ValueError("readings.csv: must be about the swapped responses of swaps.csv")
    return table


# --- predictions ----------------------------------------------------------------------------------


def digest(other: pd.DataFrame) -> str:
    """Return the sha256 of the other last responses that predictions are about."""
    lines = other["sample"] + " " + other["donor" if "donor" in other else "item"]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def predictions(study: Study, other: pd.DataFrame) -> pd.DataFrame:
    """Read the cached probabilities of dissatisfaction on the test sets.

    ``other`` is the table of `other_responses`; predictions about other responses are rejected.
    Columns are collection, world (Main or the name of the other test set), sample, system, setup
    and dissatisfaction, which is NaN where an answer contained no label.
    """
    columns = ["collection", "world", "sample", "system", "setup", "dissatisfaction"]
    tables = []
    for system, estimator in study.estimators.items():
        settings = study.outputs / "settings" / f"{system}.json"
        recorded = json.loads(settings.read_text(encoding="utf-8"))["turned"]
        for name, responses in other.groupby("collection"):
            if recorded.get(name) != digest(responses):
                raise ValueError(f"{system}.csv: must be about the other responses of {name}")
        table = read_columns(study.outputs / f"{system}.csv", columns)
        tables.append(table[table["setup"].isin(estimator.setups)])
    table = pd.concat(tables, ignore_index=True)
    table = table[table["world"].isin(["Main", study.world])].reset_index(drop=True)
    probabilities = table["dissatisfaction"]
    table["dissatisfaction"] = probabilities.where(probabilities != "", "nan").astype("float64")
    if not table["dissatisfaction"].dropna().between(0, 1).all():
        raise ValueError("predictions must be probabilities from 0 to 1")
    if table.duplicated(columns[:-1]).any():
        raise ValueError("predictions must be one per sample, system and setup")
    return table
