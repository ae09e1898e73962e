"""Make the derived data of chapter 3 from files of rated dialogues.

    python data/facts/satisfaction/make.py [--config FILE] [--limit N] [--output FOLDER]

Upstream files come from the folder in EQUIPOISE_MIRROR, the cache, or the URLs of
data/registry.tsv. The tables are written to the folder `facts` of the config, by default the one
of this script. `--limit` reads the first N dialogues of each collection, for a trial.
"""

import argparse
import hashlib
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer

from equipoise_compendium import facts, project, registry
from equipoise_studies.satisfaction import data
from equipoise_studies.satisfaction.data import Study
from equipoise_studies.satisfaction.texts import (
    OVERALL,
    annotated_items,
    read_classes,
    read_collection,
    read_users,
)

RATED_AGAIN = {
    "MultiWOZ": {
        "human": ["human_mwoz/train_mwoz", "human_mwoz/valid_mwoz", "human_mwoz/test_human_mwoz"],
        "model": [f"gemini_mwoz/{part}_gemini_mwoz" for part in ("train", "valid", "test")],
    },
    "SGD": {
        "human": [f"human_sgd/{part}_human_sgd" for part in ("train", "valid", "test")],
        "model": [f"gpt4_sgd/{part}_gpt_sgd" for part in ("train", "valid", "test")],
    },
}
"""Files of item use_relabel, by collection and by who rated."""


# --- swapped responses ----------------------------------------------------------------------------


def nearest_donors(samples: pd.DataFrame, donors: pd.DataFrame) -> pd.DataFrame:
    """Find the donor of each sample that has one: columns sample, donor, similarity.

    A donor has the opposite label. It comes from another dialogue of the same service, and its last
    user utterance has the same act. Of these samples, the donor has the most similar last user
    utterance (cosine of TF-IDF weights); the first one if several are equally similar.
    """
    words = TfidfVectorizer(token_pattern=r"\w+")  # noqa: S106 - no password
    donor_weights = words.fit_transform(donors["users"].str[-1])
    sample_weights = words.transform(samples["users"].str[-1])
    groups = donors.reset_index(drop=True).groupby(["service", "act", "dissatisfied"]).indices
    donor_dialogues, donor_samples = donors["dialogue"].to_numpy(), donors["sample"].to_numpy()
    pairs = []
    for row, sample in enumerate(samples.itertuples()):
        key = sample.service, sample.act, not sample.dissatisfied
        candidates = groups.get(key, np.empty(0, dtype=np.intp))
        candidates = candidates[donor_dialogues[candidates] != sample.dialogue]
        if len(candidates):
            cosines = (donor_weights[candidates] @ sample_weights[row].T).toarray().ravel()
            # Rounded, so that the last bits of a sum do not decide between equal donors.
            cosines = np.round(cosines, 12)
            nearest = cosines.argmax()
            donor = donor_samples[candidates[nearest]]
            pairs.append((sample.sample, donor, float(cosines[nearest])))
    return pd.DataFrame(pairs, columns=["sample", "donor", "similarity"])


# --- tables ---------------------------------------------------------------------------------------


def make_rated_turns(study: Study, limit: int | None) -> pd.DataFrame:
    """Make the table of every rated row, with data about the context before it."""
    tables = []
    for name in data.COLLECTIONS:
        dialogues, samples = read_collection(study, name, limit)
        rows = dialogues[dialogues["speaker"] == "USER"]
        turn = rows.groupby("dialogue", sort=False).cumcount() + 1
        rows = rows.assign(collection=name, turn=turn.where(rows["text"] != OVERALL, 0))
        rows["sample"] = rows["dialogue"] + ":" + rows["line"].astype(str)
        columns = ["sample", "service", "words", "response_words"]
        rows = rows.merge(samples[columns], on="sample", how="left")
        # A row that is no sample has no context: the first turn, and the one for the dialogue.
        rows["answered"] = rows["words"].notna()
        rows["part"] = rows["dialogue"].map(samples.groupby("dialogue")["part"].first())
        rows = rows.fillna({"service": "", "words": 0, "response_words": 0})
        rows["ratings"] = [",".join(map(str, ratings)) for ratings in rows["ratings"]]
        tables.append(rows)
    columns = ["collection", "dialogue", "line", "turn", "part", "answered"]
    columns += ["act", "service", "ratings", "words", "response_words"]
    counts = dict.fromkeys(["line", "turn", "words", "response_words"], np.int16)
    return pd.concat(tables, ignore_index=True)[columns].astype(counts)


def make_swaps(study: Study, limit: int | None) -> pd.DataFrame:
    """Make the table of donors, which come from the test and validation parts."""
    tables = []
    for name in data.COLLECTIONS:
        _, samples = read_collection(study, name, limit)
        donors = samples[samples["part"] != "train"]
        pairs = nearest_donors(data.estimated(samples, "test"), donors)
        tables.append(pairs.assign(collection=name))
    return pd.concat(tables)[["collection", "sample", "donor", "similarity"]]


def make_relabelled() -> pd.DataFrame:
    """Make the table of classes by people and by a model; a digest names each dialogue."""
    tables = []
    for name, files in RATED_AGAIN.items():
        by_rater = []
        for rater, paths in files.items():
            located = [registry.fetch("use_relabel", f"{path}.txt") for path in paths]
            rated = pd.concat([read_classes(path) for path in located])
            texts = rated["users"].map("\n".join) + rated["systems"].map("\n".join)
            rated = pd.DataFrame({"text": texts, rater: rated["level"]})
            # Of a dialogue that occurs twice it is not known which class is whose.
            by_rater.append(rated.drop_duplicates("text", keep=False))
        both = by_rater[0].merge(by_rater[1], on="text")
        digests = [hashlib.sha1(text.encode()).hexdigest()[:10] for text in both.pop("text")]  # noqa: S324 - a name
        both.insert(0, "dialogue", digests)
        both.insert(0, "collection", name)
        tables.append(both)
    return pd.concat(tables)


def make_users() -> pd.DataFrame:
    """Make the table of users' own labels of their dialogues."""
    users = read_users()
    exchanges = users["users"].map(len)
    texts = users["users"].map(" ".join) + " " + users["systems"].map(" ".join)
    table = users.assign(exchanges=exchanges, words=texts.str.split().map(len))
    return table[["dialogue", "recommender", "user", "exchanges", "words", "dissatisfied"]]


def make_annotated_items(study: Study) -> pd.DataFrame:
    """Make the table of the items that annotators labelled."""
    path = (study.outputs / "written.csv").resolve()
    if path.is_relative_to(project.root()):
        project.note(path.relative_to(project.root()).as_posix(), project.sha256(path))
    written = data.written_responses(study)
    samples = pd.concat([read_collection(study, name)[1] for name in data.COLLECTIONS])
    return annotated_items(samples, written).drop(columns=["context", "response"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default="replica")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    study = data.read_study(options.config)
    makers = {
        "rated_turns.parquet": partial(make_rated_turns, study, options.limit),
        "swaps.csv": partial(make_swaps, study, options.limit),
    }
    if options.config == "replica":
        makers["relabelled.csv"] = make_relabelled
        makers["users.csv"] = make_users
    if (study.outputs / "written.csv").is_file():
        makers["annotated_items.csv"] = partial(make_annotated_items, study)
    output = options.output or study.facts
    output.mkdir(parents=True, exist_ok=True)
    for name, content in facts.make(makers).items():
        (output / name).write_bytes(content)
