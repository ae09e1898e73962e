"""Facts of chapter 3: ratings, acts, parts, places and labels of dialogues; none of their texts."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd

from equipoise_compendium import project
from equipoise_studies.satisfaction.annotation import committed_responses, items_of
from equipoise_studies.satisfaction.data import (
    COLLECTIONS,
    FILES,
    read_relabelled,
    read_upstream,
    with_swapped,
)

SAMPLE_FACTS = ["sample", "part", "service", "words", "response_words"]


def make_rated_turns() -> pd.DataFrame:
    """Every rated row, with the raters' ratings and what is a fact about the context before it."""
    tables = []
    for name in COLLECTIONS:
        collection = read_upstream(name, FILES[name])
        rows = collection.rated_rows
        sample = rows["dialogue"] + ":" + rows["line"].astype(str)
        # A row is a sample where the system spoke since the user's turn before.
        samples = collection.all_samples[SAMPLE_FACTS]
        part_by_dialogue = collection.all_samples.groupby("dialogue")["part"].first()

        table = rows.assign(collection=name, sample=sample)
        table = table.merge(samples.drop(columns="part"), on="sample", how="left")
        # A row that ends no sample has no context: the first turn, and the one for the dialogue.
        table["answered"] = table["words"].notna()
        table["part"] = table["dialogue"].map(part_by_dialogue)
        table["service"] = table["service"].fillna("")
        table = table.fillna({"words": 0, "response_words": 0})
        table["ratings"] = [",".join(map(str, ratings)) for ratings in table["ratings"]]
        tables.append(table)

    columns = ["collection", "dialogue", "line", "turn", "part", "answered"]
    columns += ["act", "service", "ratings", "words", "response_words"]
    turns = pd.concat(tables, ignore_index=True)[columns]
    counts = dict.fromkeys(["line", "turn", "words", "response_words"], np.int16)
    return turns.astype(counts)


def make_swaps() -> pd.DataFrame:
    """Donor of each swapped response, and how alike the two last user utterances are."""
    tables = []
    for name in COLLECTIONS:
        # Labels, services and acts of sample and donor are in the table of rated turns.
        turned = with_swapped(read_upstream(name, FILES[name])).turned
        tables.append(
            turned.assign(collection=name)[["collection", "sample", "donor", "similarity"]]
        )
    return pd.concat(tables, ignore_index=True)


def make_relabelled() -> pd.DataFrame:
    """Classes that people and a language model gave to dialogues, each named by its digest."""
    tables = []
    for name in COLLECTIONS:
        classes = read_relabelled(name)
        digests = [hashlib.sha1(text.encode()).hexdigest()[:10] for text in classes.pop("text")]  # noqa: S324 - a name
        classes.insert(0, "dialogue", digests)
        classes.insert(0, "collection", name)
        tables.append(classes)
    return pd.concat(tables, ignore_index=True)


def make_annotated_items() -> pd.DataFrame:
    """What each item stands for that annotators were asked about: own and written responses."""
    tables = []
    responses = committed_responses(project.data("outputs", "satisfaction", "written.csv"))
    for name in COLLECTIONS:
        items = items_of(read_upstream(name, FILES[name]), responses[name])
        items = items[["item", "sample", "written", "dissatisfied"]]
        tables.append(items.assign(collection=name))
    columns = ["collection", "item", "sample", "written", "dissatisfied"]
    return pd.concat(tables, ignore_index=True)[columns]


TABLES = {
    "rated_turns.parquet": make_rated_turns,
    "swaps.csv": make_swaps,
    "relabelled.csv": make_relabelled,
    "annotated_items.csv": make_annotated_items,
}
"""What makes each fact table."""
