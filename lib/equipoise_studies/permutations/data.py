"""The derived data of CAsT 2019 and 2020, as tables.

A text is a bag of term numbers, such as "0714 3624"; ``data/facts/permutations`` describes how it
was made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import pandas as pd

from equipoise.arrays import Floats
from equipoise.measures.effectiveness import effectiveness
from equipoise.permutations.structures import (
    ClassStructure,
    Structure,
    class_structures,
    sampled_permutations,
)
from equipoise_compendium import facts, project
from equipoise_studies.permutations.experiment import discounted
from equipoise_studies.permutations.systems import ByContext, Collection, Conversation


def read_utterances(year: Literal[2019, 2020] = 2019) -> pd.DataFrame:
    """Read judged utterances in their original order.

    Columns query, topic, turn, class, terms (a bag); for 2019 also anaphoric and phrase (the bag of
    what a later pronoun refers to).
    """
    name = "utterances.csv" if year == 2019 else "utterances_2020.csv"
    table = facts.read("permutations", name, {"turn": int})
    if "anaphoric" in table:
        table["anaphoric"] = table["anaphoric"] == "1"
    return table


def read_collection(year: Literal[2019, 2020] = 2019) -> Collection:
    """Read the passages whose text is public."""
    name = "passages.parquet" if year == 2019 else "passages_2020.parquet"
    passages = facts.read("permutations", name)
    return Collection.from_texts(dict(zip(passages["document"], passages["terms"], strict=True)))


def read_qrels(year: Literal[2019, 2020] = 2019) -> pd.DataFrame:
    """Read judgements: columns query, document, grade."""
    name = "qrels.parquet" if year == 2019 else "qrels_2020.parquet"
    return facts.read("permutations", name).astype({"grade": int})


def conversations(
    utterances: pd.DataFrame, structures: Mapping[str, Structure] | None = None
) -> list[Conversation]:
    """Make conversations from a table of judged utterances, in order of first appearance.

    ``structures``: valid permutations by topic; by default those of the classes.
    """
    if structures is None:
        structures = class_structures(utterances)
    rewrites = facts.read("permutations", "model_rewrites.csv").set_index("query")
    parsed = []
    for topic, turns in utterances.groupby("topic", sort=False):
        ordered = turns.sort_values("turn", kind="stable")
        queries = ordered["query"].tolist()
        rewrites_of_topic = {}
        for row in rewrites[rewrites.index.isin(queries)].itertuples():
            pair = queries.index(row.before), queries.index(row.Index)
            rewrites_of_topic[pair] = row.terms
        antecedents = {}
        if "phrase" in ordered:
            antecedents["phrases"] = tuple(ordered["phrase"])
            antecedents["anaphoric"] = tuple(ordered["anaphoric"])
        parsed.append(
            Conversation(
                topic=str(topic),
                queries=tuple(queries),
                texts=tuple(ordered["terms"]),
                structure=structures[str(topic)],
                rewrites=rewrites_of_topic,
                **antecedents,
            )
        )
    return parsed


def read_sequential() -> dict[tuple[str, str], Floats]:
    """Read the scores of RM3s on every valid permutation: by system and topic."""
    table = facts.read("permutations", "sequential.parquet")
    return {
        ("RM3s", str(topic)): part.to_numpy() for topic, part in table.groupby("topic")["value"]
    }


def read_pools(
    conversations: Sequence[Conversation], qrels: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read the scores of all systems in nested pools of passages, with the paper's parameters.

    ``qrels``: of the conversations. Returns conversations (columns pool, passages, run, topic,
    permutation, value) and utterances in the original order (query in place of permutation).
    """
    path = project.data("outputs", "permutations", "pools.jsonl")
    settings, *lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    grades_by_query = qrels.groupby("query")["grade"]
    ideal_gains = grades_by_query.agg(lambda grades: discounted(sorted(grades, reverse=True)[:3]))
    known = {conversation.topic: conversation for conversation in conversations}
    structures = {}
    for conversation in conversations:
        if isinstance(conversation.structure, ClassStructure):  # the only ones that were recorded
            structures[conversation.topic] = conversation.structure
    orders = sampled_permutations(
        structures, settings["permutations"], settings["permutation seed"]
    )
    of_conversations, of_utterances = {}, {}
    for line in lines:
        if line["topic"] not in known:
            continue
        queries, order = list(known[line["topic"]].queries), orders[line["topic"]]
        size = len(queries)
        for run, rows in line.items():
            if not isinstance(rows, list):
                continue
            # Passages without judgement, "-", gain nothing.
            digits = "".join(rows).replace("-", "0").replace(" ", "").encode()
            grades = np.frombuffer(digits, dtype=np.uint8) - ord("0")
            gains = discounted(grades.reshape(len(rows), size, -1))
            scores = gains / ideal_gains[queries].to_numpy()  # shape (rows, utterances)
            if run != "RM3s":
                after = np.broadcast_to(scores, (size + 1, size))  # one row where none is needed
                by_position = ByContext(after, np.ones(size, dtype=bool)).along(order)
                scores = np.take_along_axis(by_position, np.argsort(order, axis=1), axis=1)
            place = line["pool"], line["passages"], run
            of_conversations[(*place, line["topic"])] = pd.Series(scores.mean(axis=1))
            of_utterances[(*place, line["topic"])] = pd.Series(scores[0], queries)
    names = ["pool", "passages", "run", "topic"]
    values = pd.concat(of_conversations, names=[*names, "permutation"]).rename("value")
    originals = pd.concat(of_utterances, names=[*names, "query"]).rename("value")
    return values.reset_index(), originals.reset_index()


def read_dependencies() -> pd.DataFrame:
    """Read pairs of utterances of CAsT 2019, a later one after one that it depends on, by people.

    Columns query, needs.
    """
    return facts.read("permutations", "dependencies.csv")


def read_rankings(count: int) -> pd.DataFrame:
    """Read the first ``count`` public rankings of the whole collection.

    Columns run, query, rank, document, score. The rank of a document that is not relevant replaces
    its id.
    """
    table = facts.read("permutations", "rankings.parquet")
    runs = table["run"].unique()[:count]
    return _with_documents(table[table["run"].isin(runs)].reset_index(drop=True))


def read_whole_collection(depth: int = 10) -> pd.DataFrame:
    """Read the first ranks of 16 systems on the whole collection.

    Documents are as in `read_rankings`.

    Columns run, query, rank, document, judged, score.
    """
    table = facts.read("permutations", "whole_collection.parquet")
    if depth > table["rank"].max():
        raise ValueError(f"the cut-off must be at most {table['rank'].max()} here, got {depth}")
    return _with_documents(table[table["rank"] <= depth].reset_index(drop=True))


def scores_of_rankings(rankings: pd.DataFrame, qrels: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Score rankings by a measure such as nDCG@3: columns run, query, topic, value."""
    scores = effectiveness(rankings, qrels, measures={measure: measure})
    return scores.assign(topic=scores["query"].str.partition("_")[0])


def _with_documents(table: pd.DataFrame) -> pd.DataFrame:
    rank = table["rank"].astype(int)
    table["document"] = table["document"].where(
        table["document"] != "", "not relevant, rank " + rank.astype(str)
    )
    return table.assign(score=-rank.astype(float))
