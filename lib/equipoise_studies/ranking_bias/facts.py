"""Fact tables of chapter 4: what its notebook needs of the collections, without their texts.

``equipoise data facts ranking_bias`` makes them. Documents and queries keep the ids and the order
of their upstream files; term counts are of the representative terms alone.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from equipoise.measures.ranking_bias import TermCounts, count_terms
from equipoise.options import Tokens
from equipoise_compendium.facts import MakeTable
from equipoise_studies.ranking_bias import msmarco, upstream
from equipoise_studies.ranking_bias.data import WITH_FACTS, occurrences
from equipoise_studies.ranking_bias.substitution import PRONOUNS

TOKENISATIONS: tuple[Tokens, ...] = ("word", "whitespace", "space")
"""Ways in which a text falls into terms; each names a column of counts."""


def make_terms() -> pd.DataFrame:
    """Both term lists: columns ``list, term, group``."""
    # capitals stay: they tell a name from a word
    lists = {name: upstream.read_term_list(name) for name in upstream.TERM_LISTS}
    return pd.concat(lists, names=["list"]).reset_index("list")


def make_queries() -> pd.DataFrame:
    """Ids of the queries: columns ``collection, query``."""
    return _of_each({name: upstream.collection(name).queries[["query"]] for name in WITH_FACTS})


def make_query_terms() -> pd.DataFrame:
    """Words of the queries that have a counterpart of the other gender.

    Columns ``collection, query, term, occurrences``.
    """
    # every word that a substitution may touch, whatever was recorded of one
    pairs = upstream.gender_pairs()
    vocabulary = {*pairs.words, *pairs.names, *pairs.one_way, *PRONOUNS}
    tables = {}
    for name in WITH_FACTS:
        queries = upstream.collection(name).queries
        texts = zip(queries["query"], queries["text"], strict=True)
        tables[name] = occurrences(count_terms(texts, vocabulary, tokens="word"), "query")
    return _of_each(tables)


def make_qrels() -> pd.DataFrame:
    """Judgements: columns ``collection, topic, document, level``."""
    tables: dict[str, pd.DataFrame] = {}
    for name in WITH_FACTS:
        # collections that share their documents share judgements
        documents = upstream.SHARED.get(name, name)
        qrels = upstream.collection(name).qrels
        if documents in tables:
            qrels = pd.concat([tables[documents], qrels]).drop_duplicates()
        tables[documents] = qrels
    return _of_each(tables)


def make_documents() -> pd.DataFrame:
    """Lengths in terms: columns ``collection, document``, and one for each tokenisation."""
    tables = {}
    for documents, name in _document_sets().items():
        lengths = {}
        for tokens, term_counts in _counted_each_way(name).items():
            # Parquet keeps the type: half the bytes of the default
            lengths[tokens] = pd.Series(term_counts.lengths, term_counts.documents, dtype="int32")
        tables[documents] = pd.DataFrame(lengths).reset_index()
    return _of_each(tables)


def make_term_counts() -> pd.DataFrame:
    """Occurrences of terms in documents, where there are any.

    Columns ``collection, document, term``, and one for each tokenisation.
    """
    tables = {}
    for documents, name in _document_sets().items():
        term_counts = _counted_each_way(name)
        columns = {}
        for tokens, counts in term_counts.items():
            columns[tokens] = occurrences(counts, "document").set_index(["document", "term"])
        # a term may stand in a document under one tokenisation and not under another
        table = pd.concat(columns, axis=1).droplevel(1, axis=1)
        table = table.fillna(0).astype("int16").reset_index()

        # in the order of the documents, as all tables of a collection
        place = term_counts["word"].documents.get_indexer(table["document"])
        order = np.lexsort((table["term"], place))
        tables[documents] = table.iloc[order]
    return _of_each(tables)


def _document_sets() -> dict[str, str]:
    """The documents of the collections by name, each with a collection that has them."""
    return {upstream.SHARED.get(name, name): name for name in WITH_FACTS}


def _counted_each_way(name: str) -> dict[str, TermCounts]:
    """The terms of both lists, counted under each tokenisation."""
    collection = upstream.collection(name)
    terms = make_terms()["term"]
    return {
        tokens: count_terms(collection.documents(), terms, tokens=tokens)
        for tokens in TOKENISATIONS
    }


def make_public_queries() -> pd.DataFrame:
    """The public query sets of the thesis: columns ``query, kind``."""
    return upstream.public_queries()


def make_passage_digests() -> pd.DataFrame:
    """Digests of passages of MS MARCO: columns ``document, digest``."""
    return msmarco.passage_digests()


def make_public_runs() -> pd.DataFrame:
    """Public runs on the queries of TREC Deep Learning, ranks and scores as upstream.

    Columns ``run, topic, document, rank, score``, and ``text``: whether the passage's is at hand.
    """
    runs = msmarco.public_runs()
    runs["text"] = runs["document"].isin(msmarco.ranked().passages["document"])
    # three runs have six digits, and no more are needed to tell their ranks apart
    return runs.astype({"run": "category", "rank": "int16", "score": "float32"})


def _of_each(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The tables of all collections, one beneath the other."""
    return pd.concat(tables, names=["collection"]).reset_index("collection")


TABLES: dict[str, MakeTable] = {
    "terms.csv": make_terms,
    "queries.csv": make_queries,
    "query_terms.csv": make_query_terms,
    "qrels.csv": make_qrels,
    "documents.parquet": make_documents,
    "term_counts.parquet": make_term_counts,
    "public_queries.csv": make_public_queries,
    "passage_digests.csv": make_passage_digests,
    "public_runs.parquet": make_public_runs,
}
"""Makers of the fact tables, by file."""
