"""The rankers of thesis chapter 2: lexical ones, computed at once, and recorded scores of the slow ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from equipoise.arrays import Floats
from equipoise_studies.query_by_example.data import QueryByExample, chosen, text_of
from equipoise_studies.systems.lexical import Collection, bm25, jelinek_mercer
from equipoise_studies.systems.tokenisation import ANALYSERS, Tokenisation

_MODELS: dict[str, Callable[..., Floats]] = {"bm25": bm25, "lm": jelinek_mercer}
QUERIES_AT_ONCE = 200
"""Queries whose scores of all documents are in memory at once."""

BM25 = {"k1": 2.75, "b": 1.0}
"""BM25's parameters in thesis section 2.2.1, tuned there for scientific papers."""


def lexical_scores(
    dataset: QueryByExample, tokenise: Tokenisation, *, model: str = "bm25", **settings: Any
) -> pd.DataFrame:
    """Scores of a lexical model for every judged pair; the collection is every paper that is a candidate somewhere.

    Papers are searched by title and abstract. ``model``: "bm25", or "lm", the Jelinek-Mercer
    language model; ``**settings`` are those of `bm25` or `jelinek_mercer`. Returns ``query,
    document, score``, as ordered in ``dataset.pairs``.

    thesis sections 2.2.1 and 2.3.2.
    """
    texts, pairs = text_of(dataset.papers), dataset.pairs
    collection = Collection.from_texts(
        {name: texts[name] for name in sorted(set(pairs["document"]))}, tokenise
    )
    columns, score = (
        pd.Index(collection.documents).get_indexer(pairs["document"]),
        chosen(_MODELS, model, "model"),
    )
    found = []
    for start in range(0, len(dataset.queries), QUERIES_AT_ONCE):
        queries = pd.Index(dataset.queries[start : start + QUERIES_AT_ONCE])
        rows = queries.get_indexer(pairs["query"])
        scores = score(
            collection, collection.queries([texts[name] for name in queries]), **settings
        )
        found.append(scores[rows[rows >= 0], columns[rows >= 0]])
    return pairs.assign(score=np.concatenate(found))


def scored_pairs(
    dataset: QueryByExample, recorded: pd.DataFrame, *, k1: float, b: float, smoothing: float
) -> pd.DataFrame:
    """Every pair of every task with a column of scores a system: recorded ones, and lexical ones over the analysers."""
    lexical = {
        f"{model.upper()} {name}": lexical_scores(dataset, analyser, model=model, **settings)[
            "score"
        ]
        for model, settings in (("bm25", {"k1": k1, "b": b}), ("lm", {"smoothing": smoothing}))
        for name, analyser in ANALYSERS.items()
    }
    return recorded.merge(dataset.pairs.assign(**lexical), on=["query", "document"])
