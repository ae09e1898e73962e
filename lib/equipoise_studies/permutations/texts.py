"""Texts of CAsT 2019 and 2020 from the upstream files: utterances, passages, judgements, terms."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import Stemmer
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from equipoise.loaders.trec import read_qrels
from equipoise_compendium import registry

STEMMER = Stemmer.Stemmer("porter")


def english_terms(text: str) -> list[str]:
    """Split an English text: lower-cased letters and digits, no stop words, Porter-stemmed.

    Stop words (here scikit-learn's list) and Porter's stemmer are also what Terrier, the engine of
    the permutations study, applies by default; its list is another.
    """
    words = re.findall(r"[^\W_]+", text.lower())
    stems = STEMMER.stemWords([word for word in words if word not in ENGLISH_STOP_WORDS])
    return [stem for stem in stems if stem]  # of a lone s nothing remains


def utterances_of(file: str) -> pd.DataFrame:
    """Read the topics of a track: columns query, topic, turn (from 1), text."""
    rows = []
    for topic in json.loads(registry.fetch("cast19", file).read_text(encoding="utf-8")):
        for turn, content in enumerate(topic["turn"], start=1):
            query = f"{topic['number']}_{content['number']}"
            rows.append((query, str(topic["number"]), turn, content["raw_utterance"].strip()))
    return pd.DataFrame(rows, columns=["query", "topic", "turn", "text"])


def fields_of(path: Path) -> list[list[str]]:
    """Read lines of fields that tabs separate."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return [[field.strip() for field in line.split("\t")] for line in lines if line.strip()]


def judgements(file: str) -> pd.DataFrame:
    """Read judgements: columns query, document, grade (0 to 4)."""
    table = read_qrels(registry.fetch("cast19", file))
    return table.rename(columns={"topic": "query", "level": "grade"})


def resolved_texts() -> pd.Series:
    """Read the utterances of CAsT 2019 by query, their references resolved by hand."""
    file = "2019/data/evaluation/evaluation_topics_annotated_resolved_v1.0.tsv"
    return pd.Series(dict(fields_of(registry.fetch("cast19", file))))


def passages_2019() -> pd.DataFrame:
    """Read passages, the annotated spans of each joined: columns document, text, source."""
    spans: dict[str, list[str]] = {}
    _, *lines = fields_of(registry.fetch("case_saac", "dataset/cast/cast.support"))
    for _, _, passage, *texts in lines:
        known = spans.setdefault(passage, [])
        # several annotators mark the same span
        known.extend(text for text in dict.fromkeys(texts) if text and text not in known)
    table = pd.DataFrame({"document": spans.keys(), "text": map(" ".join, spans.values())})
    return table.assign(source=table["document"].str.partition("_")[0])


def passages_2020() -> pd.DataFrame:
    """Read the annotated passages of CAsT 2020, and unanswerable ones: columns document, text."""
    columns = {"Input.passage_id": "document", "Input.passage": "text"}
    parts = []
    for group in "ABCDE":
        for batch in range(1, 6):
            file = f"group-{group}_batch-{batch}_paragraph_regular.csv"
            path = registry.fetch("castsnippets", f"data/large_scale/all/2020/{file}")
            parts.append(pd.read_csv(path, usecols=[*columns], dtype=str, keep_default_na=False))
    annotated = pd.concat(parts).rename(columns=columns)

    path = registry.fetch("cast_answerability", "data/CAsT-unanswerable/unanswerable.csv")
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    # the file also has turns of CAsT 2022
    queries = utterances_of("2020/2020_manual_evaluation_topics_v1.0.json")["query"]
    unanswerable = table[table["turn_id"].isin(queries)][["passage_id", "passage"]]
    unanswerable.columns = annotated.columns
    return pd.concat([annotated, unanswerable]).drop_duplicates("document")
