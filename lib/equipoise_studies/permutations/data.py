"""The facts of CAsT 2019 and 2020 that the notebook starts from, as tables and conversations.

A text is a bag of term numbers here, such as "0714 3624"; `equipoise_studies.permutations.facts`
says how it was made. A tokeniser that splits at blanks makes the collection and the queries of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from equipoise.orders.conversations import Conversation
from equipoise_compendium import facts
from equipoise_studies.systems.lexical import Collection

_STUDY = "permutations"


def read_utterances() -> pd.DataFrame:
    """Judged utterances of CAsT 2019, for `conversations`, in the order of topics and turns.

    Columns query, topic, turn, class, proposed class, words, text (a bag), anaphoric, phrase (the
    bag of what a later pronoun refers to).
    """
    table = facts.read(_STUDY, "utterances.csv", {"turn": int, "words": int, "anaphoric": int})
    return table.rename(columns={"terms": "text"}).astype({"anaphoric": bool})


def read_passages() -> pd.DataFrame:
    """Passages of CAsT 2019: columns document, source, words, terms (a bag)."""
    return facts.read(_STUDY, "passages.parquet")


def read_qrels() -> pd.DataFrame:
    """Judgements of CAsT 2019: columns query, document, grade."""
    return _qrels("qrels.parquet")


def read_utterances_2020() -> pd.DataFrame:
    """Judged utterances of CAsT 2020: columns query, topic, turn, class (by the rule), text."""
    table = facts.read(_STUDY, "utterances_2020.csv", {"turn": int})
    return table.rename(columns={"terms": "text"})


def read_passages_2020() -> pd.DataFrame:
    """Passages of CAsT 2020: columns document, terms (a bag)."""
    return facts.read(_STUDY, "passages_2020.parquet")


def read_qrels_2020() -> pd.DataFrame:
    """Judgements of CAsT 2020: columns query, document, grade."""
    return _qrels("qrels_2020.parquet")


def _qrels(name: str) -> pd.DataFrame:
    return facts.read(_STUDY, name).astype({"grade": int})


def read_rewritings() -> pd.DataFrame:
    """Rewritten utterances of CAsT 2019 as bags: a row a query, a column a rewriter."""
    table = facts.read(_STUDY, "rewritings.csv")
    return table.pivot_table(
        index="query", columns="rewriter", values="terms", aggfunc="first", sort=False
    )


def with_rewrites(scripts: Sequence[Conversation]) -> list[Conversation]:
    """The conversations with what the recorded language model made of their utterances."""
    table = facts.read(_STUDY, "model_rewrites.csv")
    rewritten = table.set_index(["query", "before"])["terms"].to_dict()
    rewritten_scripts = []
    for script in scripts:
        number = {query: place for place, query in enumerate(script.queries)}
        rewrites = {}
        for (query, before), terms in rewritten.items():
            if query in number:
                rewrites[number[before], number[query]] = terms
        rewritten_scripts.append(replace(script, rewrites=rewrites))
    return rewritten_scripts


def read_rankings(count: int) -> pd.DataFrame:
    """The first of the public rankings of the full collection.

    Columns run, query, rank, document, score. A document that is not relevant has lost its id, and
    is called by its rank instead.
    """
    table = facts.read(_STUDY, "rankings.parquet")
    runs = table["run"].unique()[:count]
    return _with_documents(table[table["run"].isin(runs)].reset_index(drop=True))


def read_whole_collection(depth: int = 10) -> pd.DataFrame:
    """The first ranks of 16 systems on the full collection, documents as in `read_rankings`.

    Columns run, query, rank, document, judged, score. Raises ValueError where ``depth`` is more
    than the ranks that are kept.
    """
    table = facts.read(_STUDY, "whole_collection.parquet")
    if depth > table["rank"].max():
        raise ValueError(
            f"data/facts/{_STUDY}/whole_collection.parquet keeps {table['rank'].max()} ranks of a "
            f"system, and {depth} are asked for: take a lower cut-off"
        )
    return _with_documents(table[table["rank"] <= depth].reset_index(drop=True))


def _with_documents(table: pd.DataFrame) -> pd.DataFrame:
    rank = table["rank"].astype(int)
    table["document"] = table["document"].where(
        table["document"] != "", "not relevant, rank " + rank.astype(str)
    )
    return table.assign(score=-rank.astype(float))


def collection_of(passages: pd.DataFrame) -> Collection:
    """The collection of passages whose terms are bags."""
    terms = dict(zip(passages["document"], passages["terms"], strict=True))
    return Collection.from_texts(terms, tokenise=str.split)
