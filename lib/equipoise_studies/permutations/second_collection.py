"""CAsT 2020 as a second collection: classes proposed by a rule, passages of the CAsT-snippets annotation.

Nobody classed the utterances of CAsT 2020. But people rewrote each of them, and the words that they
added say what it depends on. `proposed_classes` is that rule; how far it agrees with the classes of
CAsT 2019, which are by hand, is reported beside what rests on it.

The data items are ``cast19`` (topics, judgements), ``cast_rewrites`` (rewrites by people and by
systems), ``castsnippets`` (passages with text, five for each judged turn).
"""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd

from equipoise.loaders.topics import read_topics
from equipoise_compendium import registry
from equipoise_studies.permutations.data import judged_conversations, read_qrels
from equipoise_studies.systems.lexical import english_terms

_BATCHES = [(group, batch) for group in "ABCDE" for batch in range(1, 6)]
_SNIPPETS = "data/large_scale/all/2020/group-{}_batch-{}_paragraph_regular.csv"

# rewrites of CAsT 2019 in the order of the script, by who made them (data item cast_rewrites)
REWRITERS = {
    "QuReTeC": "5_QuReTeC_Q.tsv",
    "Transformer++": "2_Transformer_Plus_Plus_Q.tsv",
    "Self-learn": "3_Self_learn_Q.tsv",
    "Rule-based": "4_Rule_based_Q.tsv",
    "people": "10_Human.tsv",
}


def read_rewritten(path: str | Path) -> pd.Series:
    """Rewritten utterances by query, from a file of item cast_rewrites: separated by tabs, without quoting."""
    table = pd.read_csv(path, sep="\t", quoting=csv.QUOTE_NONE, dtype=str, keep_default_na=False)
    return table.set_index("id")["query"]


def fetch_rewrites(queries: pd.Series) -> dict[str, dict[str, str]]:
    """What public rewriters and people made of the utterances of CAsT 2019 in the order of the script, by query."""
    found = {}
    for name, file in REWRITERS.items():
        texts = read_rewritten(registry.fetch("cast_rewrites", f"rewrites/2019/{file}"))
        found[name] = {query: texts[query] for query in queries}
    return found


def proposed_classes(utterances: pd.DataFrame, rewritten: pd.Series) -> pd.Series:
    """Class of every utterance, by the terms that people added when they rewrote it.

    None: SE. Only such as the first utterance of the conversation has: FT. Others: PT. The first
    utterance is SE. ``utterances``: columns query, topic, turn, text. ``rewritten``: texts by
    query.
    """
    classes = {}
    for _, turns in utterances.sort_values("turn", kind="stable").groupby("topic", sort=False):
        first, *later = zip(turns["query"], turns["text"], strict=True)
        opening = {*english_terms(f"{first[1]} {rewritten[first[0]]}")}
        classes[first[0]] = "SE"
        for query, text in later:
            added = {*english_terms(rewritten[query])} - {*english_terms(text)}
            classes[query] = "PT" if added - opening else "FT" if added else "SE"
    return utterances["query"].map(classes)


def agreement(judged: pd.DataFrame, resolved: pd.DataFrame) -> pd.DataFrame:
    """Classes by hand against those that the rule proposes, as counts: one row for each class by hand."""
    proposed = proposed_classes(judged, resolved.set_index("query")["text"])
    counts = pd.crosstab(judged["class"], proposed.rename(None)).rename_axis("class by hand")
    return counts.add_prefix("proposed ").reset_index()


def read_snippet_passages(path: str | Path) -> pd.DataFrame:
    """Passages of one file of item castsnippets: columns document, text, each once."""
    columns = {"Input.passage_id": "document", "Input.passage": "text"}
    table = pd.read_csv(path, usecols=list(columns), dtype=str, keep_default_na=False)
    return table.rename(columns=columns).drop_duplicates("document")[list(columns.values())]


def fetch_second() -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Judged conversations of CAsT 2020 with proposed classes, their judgements, and the passages with text."""
    topics = read_topics(
        registry.fetch("cast19", "2020/2020_manual_evaluation_topics_v1.0.json")
    ).utterances
    qrels = read_qrels(registry.fetch("cast19", "2020/2020qrels.txt"))
    rewritten = read_rewritten(registry.fetch("cast_rewrites", "rewrites/2020/11_Human.tsv"))
    classes = topics[["query"]].assign(**{"class": proposed_classes(topics, rewritten)})
    files = [registry.fetch("castsnippets", _SNIPPETS.format(*place)) for place in _BATCHES]
    passages = pd.concat(map(read_snippet_passages, files)).drop_duplicates("document")
    return judged_conversations(topics, classes, qrels), qrels, passages
