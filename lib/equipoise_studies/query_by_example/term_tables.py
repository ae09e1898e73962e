"""What lexical rankers count: lengths of papers, and terms that a query and a candidate share.

A term of a query adds to a candidate's score only where the candidate holds it too. So the shared
terms with their counts, how common each is in the collection, and the lengths of the papers are all
that BM25 and the language model need, whatever their parameters. Terms are numbers here: their
places among the shared terms of an analyser in alphabetical order.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from equipoise_studies.query_by_example.data import QueryByExample, text_of
from equipoise_studies.systems.tokenisation import ANALYSERS, Tokenisation


def paper_lengths(dataset: QueryByExample) -> pd.DataFrame:
    """Number of terms of each paper by each analyser: ``document, SA, STM1, STM2``."""
    texts = text_of(dataset.papers)
    lengths = pd.DataFrame({"document": texts.index})
    for analyser, tokenise in ANALYSERS.items():
        lengths[analyser] = [len(tokenise(text)) for text in texts]
    return lengths.astype(dict.fromkeys(ANALYSERS, "int32"))


def shared_terms(dataset: QueryByExample) -> pd.DataFrame:
    """Terms that a query and a candidate share, a row each: what the score of a pair is a sum of.

    Returns ``analyser, query, document, term, in_query, in_document``; the last two are counts.
    """
    tables = []
    for analyser, tokenise in ANALYSERS.items():
        shared, _ = _tables_of(dataset, tokenise)
        shared.insert(0, "analyser", analyser)
        tables.append(shared)
    return pd.concat(tables, ignore_index=True)


def term_statistics(dataset: QueryByExample) -> pd.DataFrame:
    """How common each shared term is among all candidates.

    Returns ``analyser, term, documents, occurrences``: candidates that hold it, and how often they
    do together.
    """
    tables = []
    for analyser, tokenise in ANALYSERS.items():
        _, statistics = _tables_of(dataset, tokenise)
        statistics.insert(0, "analyser", analyser)
        tables.append(statistics)
    return pd.concat(tables, ignore_index=True)


def _tables_of(
    dataset: QueryByExample, tokenise: Tokenisation
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Shared terms and their statistics by one analyser."""
    texts, pairs = text_of(dataset.papers), dataset.pairs
    counts = sparse.csr_array(CountVectorizer(analyzer=tokenise).fit_transform(texts))

    # A row a pair: how often the query holds each term that its candidate holds too.
    in_query = counts[texts.index.get_indexer(pairs["query"])]
    in_document = counts[texts.index.get_indexer(pairs["document"])]
    shared_counts = sparse.coo_array(in_query * (in_document > 0))
    order = np.lexsort((shared_counts.col, shared_counts.row))
    pair, column = shared_counts.row[order], shared_counts.col[order]
    shared_columns, term = np.unique(column, return_inverse=True)
    shared = pairs.take(pair).reset_index(drop=True)
    shared["term"] = term
    shared["in_query"] = shared_counts.data[order]
    shared["in_document"] = in_document[pair, column]

    # The collection is every paper that is a candidate; some queries are none.
    is_candidate = texts.index.isin(pairs["document"])
    in_collection = counts[is_candidate][:, shared_columns]
    statistics = pd.DataFrame({"term": np.arange(len(shared_columns))})
    statistics["documents"] = (in_collection > 0).sum(axis=0)
    statistics["occurrences"] = in_collection.sum(axis=0)
    # Narrow integers keep the files of facts small.
    shared = shared.astype(dict.fromkeys(["term", "in_query", "in_document"], "int32"))
    return shared, statistics.astype("int32")
