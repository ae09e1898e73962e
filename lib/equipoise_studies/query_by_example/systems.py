"""The lexical rankers of thesis chapter 2 over texts, by any tokenisation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from equipoise.arrays import Floats
from equipoise_studies.query_by_example.data import QueryByExample, chosen, text_of
from equipoise_studies.systems.lexical import Collection, bm25, jelinek_mercer
from equipoise_studies.systems.tokenisation import Tokenisation

_MODELS: dict[str, Callable[..., Floats]] = {"bm25": bm25, "lm": jelinek_mercer}

QUERIES_AT_ONCE = 200
"""Queries whose scores of all documents are in memory at once."""

BM25 = {"k1": 2.75, "b": 1.0}
"""BM25's parameters in thesis section 2.2.1, tuned there for scientific papers."""

SMOOTHING = 0.1
"""The language model's weight of the collection, which the thesis does not print."""


def lexical_scores(
    dataset: QueryByExample, tokenise: Tokenisation, *, model: str = "bm25", **settings: Any
) -> pd.DataFrame:
    """Scores of a lexical model for every judged pair: ``query, document, score``.

    Papers are searched by title and abstract; the collection is every paper that is a candidate of
    some query. ``model``: "bm25", or "lm", the Jelinek-Mercer language model; ``**settings`` are
    those of `bm25` or `jelinek_mercer`. Rows are ordered as ``dataset.pairs``.

    thesis sections 2.2.1 and 2.3.2.
    """
    score = chosen(_MODELS, model, "model")
    texts, pairs = text_of(dataset.papers), dataset.pairs
    candidates = sorted(set(pairs["document"]))
    collection = Collection.from_texts(dict(texts[candidates]), tokenise)
    columns = pd.Index(collection.documents).get_indexer(pairs["document"])

    tables = []
    for start in range(0, len(dataset.queries), QUERIES_AT_ONCE):
        queries = pd.Index(dataset.queries[start : start + QUERIES_AT_ONCE])
        scores = score(collection, collection.queries(list(texts[queries])), **settings)
        rows = queries.get_indexer(pairs["query"])
        of_part = rows >= 0  # pairs are ordered by query, so parts follow one another
        tables.append(scores[rows[of_part], columns[of_part]])
    return pairs.assign(score=np.concatenate(tables))
