"""Make the derived data of the FairWeb-1 pilot pack and of TREC iKAT 2024 from upstream files.

    python data/facts/conversations/make.py [--output FOLDER]

Upstream files come from the folder in EQUIPOISE_MIRROR, the cache, or the URLs of
data/registry.tsv. Without --output the tables next to this script are replaced.
"""

import argparse
import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import Stemmer
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer

from equipoise.loaders.trec import read_qrels, read_run
from equipoise_compendium import facts, registry

FOLDER = "NTCIR/FW1pilotpack"
RUNS = {
    "bm25": "run.bm25-depThre6.bm25-depThre6",
    "qld": "run.qld-depThre6.qld-depThre6",
    "qljm": "run.qljm-depThre6",
}
KINDS = {
    "R-GENDER": "nominal",
    "R-HINDEX": "ordinal",
    "M-ORIGIN": "nominal",
    "M-RATINGS": "ordinal",
    "T-FOLLOWERS": "ordinal",
    "Y-SUBSCS": "ordinal",
}
"""Attribute sets: researchers (R), movies (M), Twitter accounts (T) and YouTube channels (Y)."""


def fetch(name: str) -> Path:
    """Return the path of a file of the pack."""
    return registry.fetch("fairweb", f"{FOLDER}/{name}")


def numbers(values: np.ndarray) -> str:
    """Write numbers as one text, with enough digits to read the same numbers again."""
    return " ".join(repr(float(value)) for value in values)


def make_runs() -> pd.DataFrame:
    """Read the runs in the order of their files, which the campaign's program keeps."""
    runs = [read_run(fetch(file), run, order=None) for run, file in RUNS.items()]
    table = pd.concat(runs, ignore_index=True)
    return table.astype({"run": "str", "topic": "str", "rank": np.int16})


def make_qrels() -> pd.DataFrame:
    """Read the judgements: 0 not relevant, 1 relevant, 2 highly relevant."""
    return read_qrels(fetch("fairweb1pilot.qrels"))


def make_targets() -> pd.DataFrame:
    """Read the target distribution of each attribute set, normalised."""
    rows = []
    for name, kind in KINDS.items():
        target = np.loadtxt(fetch(f"{name}.golddistr"))
        rows.append((name, kind, numbers(target / target.sum())))
    return pd.DataFrame(rows, columns=["attribute", "kind", "target"])


def make_memberships() -> pd.DataFrame:
    """Read the shares of each judged document over the groups of each attribute set."""
    parts = []
    for name in KINDS:
        fetch(f"{name}.golddistr")  # listed among the sources: it fixes the number of groups
        path = fetch(f"fairweb1pilot.{name}.gmemb")
        table = pd.read_csv(path, sep=r"\s+", header=None, dtype={0: str, 1: str})
        shares = table.drop(columns=[0, 1]).to_numpy(dtype=float)
        if not np.allclose(shares.sum(axis=1), 1, atol=1e-5):
            raise ValueError(f"{path}: shares must sum to 1")
        part = table[[0, 1]].set_axis(["topic", "document"], axis="columns")
        part.insert(0, "attribute", name)
        part["memberships"] = [numbers(row) for row in shares]
        parts.append(part)
    return pd.concat(parts)


# --- TREC iKAT 2024 -------------------------------------------------------------------------------

IKAT = "resources/{}_resources/{}.json"
PEOPLE, MODEL = "people", "GPT-4o"
ANSWERS = ("automatic", "manual")  # systems by how their utterances were rewritten
LEAST_SIMILARITY = 0.3  # of a nugget of an answer and a gold nugget that are listed


def read_ikat(folder: str, name: str) -> dict:
    """Read a file of the iKAT resources, an object by turn."""
    path = registry.fetch("ikat2024_systems", IKAT.format(folder, name))
    return json.loads(path.read_text(encoding="utf-8"))


def named(run: str) -> str:
    """Return the name of a system with hyphens only."""
    return run.replace("_", "-")


@cache
def make_ikat_answers() -> pd.DataFrame:
    """List the answers: their words, split at white space, and the nuggets GPT-4o found there."""
    rows = []
    for kind in ANSWERS:
        texts = read_ikat("participant", f"{kind}_responses")
        for topic, by_run in read_ikat("participant", f"{kind}_response_nuggets").items():
            for run, content in by_run.items():
                words = len(texts[topic][run].split())
                rows.append((named(run), topic, kind, words, len(content["nuggets"]["matched"])))
    return pd.DataFrame(rows, columns=["run", "topic", "kind", "words", "nuggets"])


def place(nugget: str, answer: str) -> tuple[int, int, str] | None:
    """Find the first and last word of a nugget in an answer, exactly or by letters and digits."""
    words = answer.split()
    number_of_letter = []
    for number, word in enumerate(words, start=1):
        number_of_letter += [number] * len(re.sub(r"[\W_]", "", word.lower()))
    letters = re.sub(r"[\W_]", "", answer.lower())
    wanted = re.sub(r"[\W_]", "", nugget.lower())
    at = letters.find(wanted)
    if at < 0 or not wanted:
        return None
    how = "exact" if nugget in answer else "normalised"
    return number_of_letter[at], number_of_letter[at + len(wanted) - 1], how


@cache
def located() -> pd.DataFrame:
    """Locate the nuggets that GPT-4o copied from each answer, with their text."""
    rows = []
    for kind in ANSWERS:
        texts = read_ikat("participant", f"{kind}_responses")
        for topic, by_run in read_ikat("participant", f"{kind}_response_nuggets").items():
            for run, content in by_run.items():
                for number, nugget in enumerate(content["nuggets"]["matched"], start=1):
                    found = place(nugget, texts[topic][run])
                    if found:
                        rows.append((named(run), topic, number, *found, nugget))
    columns = ["run", "topic", "nugget", "start", "end", "found", "text"]
    return pd.DataFrame(rows, columns=columns)


@cache
def gold() -> pd.DataFrame:
    """Read the gold nuggets of passages, chosen by people and by GPT-4o, with their text."""
    files = {PEOPLE: ("human", "human"), MODEL: ("automatic", "llm")}
    topics = set(make_ikat_answers()["topic"])
    rows = []
    for source, (folder, name) in files.items():
        for topic, nuggets in read_ikat(folder, f"gold_nuggets_{name}_deduplicated").items():
            for number, nugget in enumerate(nuggets.values(), start=1):
                if topic in topics:
                    level = int(nugget["relevance"])
                    rows.append((source, topic, number, level, nugget["text"]))
    return pd.DataFrame(rows, columns=["source", "topic", "gold", "level", "text"])


def terms(text: str) -> list[str]:
    """Split a text into lower-cased words without stop words, Porter-stemmed."""
    words = re.findall(r"[^\W_]+", text.lower())
    stemmer = Stemmer.Stemmer("porter")
    return stemmer.stemWords([word for word in words if word not in ENGLISH_STOP_WORDS])


def make_ikat_matches() -> pd.DataFrame:
    """List nuggets of answers that resemble gold nuggets of their turn: cosine of tf-idf."""
    parts = []
    vectorizer = TfidfVectorizer(analyzer=terms)
    vectorizer.fit([*gold()["text"], *located()["text"]])
    by_topic = dict(iter(located().groupby("topic")))
    for (source, topic), of_turn in gold().groupby(["source", "topic"]):
        nuggets = by_topic[topic]
        vectors = [vectorizer.transform(table["text"]) for table in (nuggets, of_turn)]
        similarity = (vectors[0] @ vectors[1].T).toarray().round(3)
        rows, columns = np.nonzero(similarity >= LEAST_SIMILARITY)
        part = nuggets.iloc[rows][["run", "topic", "nugget"]].reset_index(drop=True)
        part["source"], part["gold"] = source, of_turn["gold"].to_numpy()[columns]
        parts.append(part.assign(similarity=similarity[rows, columns]))
    return pd.concat(parts)


TABLES = {
    "runs.parquet": make_runs,
    "qrels.csv": make_qrels,
    "targets.csv": make_targets,
    "memberships.csv": make_memberships,
    "ikat_answers.csv": make_ikat_answers,
    "ikat_nuggets.parquet": lambda: located().drop(columns="text"),
    "ikat_gold.csv": lambda: gold().drop(columns="text"),
    "ikat_matches.parquet": make_ikat_matches,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    for name, content in facts.make(TABLES).items():
        (output / name).write_bytes(content)
