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


def term_counts(dataset: QueryByExample) -> pd.DataFrame:
    """How often each paper holds each term that another paper holds too, by each analyser.

    Returns ``analyser, document, term, count``. Of many pairs of papers this is the shorter form of
    `shared_terms` and `term_statistics`; `from_counts` makes them of it.
    """
    texts = text_of(dataset.papers)
    tables = []
    for analyser, tokenise in ANALYSERS.items():
        counts = _counts(texts, tokenise)
        in_two_papers = (counts > 0).sum(axis=0) > 1
        cells = sparse.coo_array(counts[:, in_two_papers])
        table = pd.DataFrame({"term": cells.col, "count": cells.data}).astype("int32")
        table.insert(0, "analyser", analyser)
        table.insert(1, "document", texts.index.take(cells.row).to_numpy())
        tables.append(table)
    counted = pd.concat(tables)
    return counted.sort_values(["analyser", "document", "term"], ignore_index=True)


def from_counts(counts: pd.DataFrame, pairs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What `shared_terms` and `term_statistics` return, of the counts of `term_counts`.

    ``pairs``: ``query, document``, each once.
    """
    # A paper that shares no term with any other has no counts.
    papers = pd.concat([counts["document"], pairs["query"], pairs["document"]])
    documents = pd.Index(papers.unique())
    shared_tables, statistics_tables = [], []
    for analyser in ANALYSERS:
        of_analyser = counts[counts["analyser"] == analyser]
        rows = documents.get_indexer(of_analyser["document"])
        cells = (of_analyser["count"], (rows, of_analyser["term"]))
        matrix = sparse.coo_array(cells, shape=(len(documents), counts["term"].max() + 1))
        shared, statistics = _shared(matrix.tocsr(), documents, pairs)
        shared.insert(0, "analyser", analyser)
        statistics.insert(0, "analyser", analyser)
        shared_tables.append(shared)
        statistics_tables.append(statistics)
    shared_terms = pd.concat(shared_tables, ignore_index=True)
    return shared_terms, pd.concat(statistics_tables, ignore_index=True)


def _counts(texts: pd.Series, tokenise: Tokenisation) -> sparse.csr_array:
    """How often each text holds each term, shaped (texts, terms)."""
    return sparse.csr_array(CountVectorizer(analyzer=tokenise).fit_transform(texts))


def _tables_of(
    dataset: QueryByExample, tokenise: Tokenisation
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Shared terms and their statistics by one analyser."""
    texts = text_of(dataset.papers)
    return _shared(_counts(texts, tokenise), texts.index, dataset.pairs)


def _shared(
    counts: sparse.csr_array, documents: pd.Index, pairs: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Shared terms and their statistics; ``counts`` is shaped (documents, terms)."""
    # A row a pair: how often the query holds each term that its candidate holds too.
    in_query = counts[documents.get_indexer(pairs["query"])]
    in_document = counts[documents.get_indexer(pairs["document"])]
    shared_counts = sparse.coo_array(in_query * (in_document > 0))
    order = np.lexsort((shared_counts.col, shared_counts.row))
    pair, column = shared_counts.row[order], shared_counts.col[order]
    shared_columns, term = np.unique(column, return_inverse=True)
    shared = pairs.take(pair).reset_index(drop=True)
    shared["term"] = term
    shared["in_query"] = shared_counts.data[order]
    shared["in_document"] = in_document[pair, column]

    # The collection is every paper that is a candidate; some queries are none.
    is_candidate = documents.isin(pairs["document"])
    in_collection = counts[is_candidate][:, shared_columns]
    statistics = pd.DataFrame({"term": np.arange(len(shared_columns))})
    statistics["documents"] = (in_collection > 0).sum(axis=0)
    statistics["occurrences"] = in_collection.sum(axis=0)
    # Narrow integers keep the files of facts small.
    shared = shared.astype(dict.fromkeys(["term", "in_query", "in_document"], "int32"))
    return shared, statistics.astype("int32")
