"""The rankers of thesis chapter 2: lexical ones, computed at once, and recorded scores of the slow ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from equipoise.arrays import Floats
from equipoise.studies.query_by_example.data import QueryByExample, chosen, text_of
from equipoise.systems.lexical import Collection, bm25, jelinek_mercer
from equipoise.systems.tokenisation import ANALYSERS, Tokenisation

_MODELS: dict[str, Callable[..., Floats]] = {"bm25": bm25, "lm": jelinek_mercer}
_TERMS = {"SA": "SA", "STM1": "STM1", "STM2": "STM2", "bert": "BERT-Token", "domain": "domain-Token"}

SYSTEMS = {f"{model}_{name}": f"{model.upper()} {label}" for model in _MODELS for name, label in _TERMS.items()}
SYSTEMS |= {
    "tilde_zero": "TILDE tiny, zero-shot",
    "tilde_tiny": "TILDE tiny",
    "tilde_minilm": "TILDE MiniLM",
    "tilde_minilm_softmax": "TILDE MiniLM, softmax",
    "tildev2_zero": "TILDEv2 tiny, zero-shot",
    "tildev2_tiny": "TILDEv2 tiny",
    "tildev2_minilm": "TILDEv2 MiniLM",
    "tildev2_tiny_m200": "TILDEv2 tiny, m = 200",
    "tildev2_tiny_m300": "TILDEv2 tiny, m = 300",
    "cross_tiny": "Cross-encoder tiny",
}
"""Every system of the replica: its column of scores, and what it is called in tables."""

BM25 = {"k1": 2.75, "b": 1.0}
"""BM25's parameters in thesis section 2.2.1, tuned there for scientific papers."""


def lexical_scores(
    dataset: QueryByExample, tokenise: Tokenisation, *, model: str = "bm25", **settings: Any
) -> pd.DataFrame:
    """Scores of a lexical model for every judged pair; the collection is every paper that is a candidate somewhere.

    Papers are searched by title and abstract. ``model``: "bm25", or "lm", the Jelinek-Mercer language model;
    ``**settings`` are those of `bm25` or `jelinek_mercer`. Returns ``query, document, score``, as ordered in
    ``dataset.pairs``.

    thesis sections 2.2.1 and 2.3.2.
    """
    texts, pairs = text_of(dataset.papers), dataset.pairs
    collection = Collection.from_texts({name: texts[name] for name in sorted(set(pairs["document"]))}, tokenise)
    queries, documents = pd.Index(dataset.queries), pd.Index(collection.documents)
    asked = collection.queries([texts[name] for name in queries])
    scores = chosen(_MODELS, model, "model")(collection, asked, **settings)
    return pairs.assign(score=scores[queries.get_indexer(pairs["query"]), documents.get_indexer(pairs["document"])])


def scored_pairs(
    dataset: QueryByExample, recorded: pd.DataFrame, *, k1: float, b: float, smoothing: float
) -> pd.DataFrame:
    """Every pair of every task with a column of scores a system: recorded ones, and lexical ones over the analysers."""
    lexical = {
        f"{model}_{name}": lexical_scores(dataset, analyser, model=model, **settings)["score"]
        for model, settings in (("bm25", {"k1": k1, "b": b}), ("lm", {"smoothing": smoothing}))
        for name, analyser in ANALYSERS.items()
    }
    return dataset.judgements[["task", "query", "document"]].merge(recorded.assign(**lexical), on=["query", "document"])


def read_scores(path: Path, dataset: QueryByExample) -> pd.DataFrame:
    """Read recorded scores, one column a system, and check them against the pairs that are to be ranked.

    Returns ``query, document`` and a column a system, as ordered in ``dataset.pairs``.
    """
    pair = ["query", "document"]
    scores = pd.read_csv(path, dtype=dict.fromkeys(pair, str)).sort_values(pair, ignore_index=True)
    if not scores[pair].equals(dataset.pairs) or scores.isna().to_numpy().any():
        raise ValueError(
            f"{path.name} does not fit the data: each of {len(dataset.pairs)} pairs is to be scored once by every "
            f"system, and no other; found {len(scores)} rows; record the scores again"
        )
    return scores
