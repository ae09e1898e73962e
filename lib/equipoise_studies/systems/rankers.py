"""Rankers of a small collection: BM25, dense and learned sparse.

Each scores every query against every document exactly, without an index: the collections here are
of hundreds to thousands of documents. Scores come as an array shaped (queries, documents); `best`
makes a run of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from equipoise.arrays import Floats
from equipoise_studies.systems.encoders import Floats32, Model, token_states
from equipoise_studies.systems.lexical import Collection, bm25
from equipoise_studies.systems.tokenisation import Tokenisation, lucene_terms

Texts = Sequence[str]
Represent = Callable[[Floats32, NDArray[np.bool_]], Iterable[Any]]
"""From the network's output of a batch, and its mask, to what represents each text."""


def best(
    scores: ArrayLike, queries: Texts, documents: Texts, run: str, *, depth: int = 20
) -> pd.DataFrame:
    """The best documents of every query, as a run.

    ``scores`` (shaped (queries, documents)): higher is better; ``-inf`` leaves a document out.
    ``depth``: documents kept for each query, and behind them those tied with the last, so that a
    tie is kept whole. Returns columns ``run, topic, document, rank, score``, ties in the order of
    the document ids.
    """
    table = np.asarray(scores, dtype=np.float64)
    if table.shape != (len(queries), len(documents)):
        raise ValueError(
            f"scores are shaped {table.shape}, wanted {(len(queries), len(documents))}"
        )
    ids = np.asarray(documents, dtype=object)
    by_id = np.argsort(ids.astype(str), kind="stable")
    order = by_id[np.argsort(-table[:, by_id], axis=1, kind="stable")]
    # All that tie with the last one kept are kept too.
    falling = np.take_along_axis(table, order, axis=1)
    rows, places = np.nonzero(falling >= falling[:, [min(depth, len(ids)) - 1]])
    columns = order[rows, places]
    frame = pd.DataFrame(
        {
            "run": run,
            "topic": np.asarray(queries, dtype=object)[rows],
            "document": ids[columns],
            "rank": places + 1,
            "score": table[rows, columns],
        }
    )
    return frame[np.isfinite(frame["score"])].reset_index(drop=True)


def bm25_scores(
    queries: Texts,
    documents: Texts,
    tokenise: Tokenisation = lucene_terms,
    *,
    k1: float = 0.9,
    b: float = 0.4,
) -> Floats:
    """BM25 of texts, shaped (queries, documents), without the constant factor k1 + 1.

    thesis section 4.4: BM25 by Pyserini, whose English terms, k1 and b are the defaults. The runs
    of ``data/outputs/ranking_bias`` were recorded with bm25s, in single precision: the same
    rankings, and scores that differ in the sixth digit at most.
    """
    # Ids in the order of the rows.
    texts_by_id = {f"{row:09d}": text for row, text in enumerate(documents)}
    collection = Collection.from_texts(texts_by_id, tokenise)
    return bm25(collection, collection.queries(queries), k1=k1, b=b) / (k1 + 1)


def _represented(model: Model, texts: Texts, represent: Represent, **options: Any) -> list[Any]:
    """What represents each text, in their order; ``**options`` are those of `token_states`."""
    representations: list[Any] = [None] * len(texts)
    for positions, states, mask in token_states(model, texts, **options):
        for position, row in zip(positions, represent(states, mask), strict=True):
            representations[position] = row
    return representations


def _states_of_tokens(states: Floats32, mask: NDArray[np.bool_]) -> list[Floats32]:
    """States of a batch without those of its padding."""
    return [row[is_token] for row, is_token in zip(states, mask, strict=True)]


def _means_of_tokens(states: Floats32, mask: NDArray[np.bool_]) -> list[Floats32]:
    """Mean state of the tokens of each text of a batch."""
    return [states_of_text.mean(axis=0) for states_of_text in _states_of_tokens(states, mask)]


def text_vectors(model: Model, texts: Texts, **options: Any) -> Floats32:
    """Mean token state of each text, shaped (texts, width), which several scores can share.

    ``model``: an encoder. ``**options``: of `token_states`, whose default length is all-MiniLM's
    own limit.
    """
    return np.stack(_represented(model, texts, _means_of_tokens, **options))


def dense_scores(queries: Floats32, documents: Floats32) -> Floats:
    r"""Cosine of the mean token states of query and document, such as all-MiniLM was trained for.

    .. math:: s(q, d) = \cos\left(\overline{h(q)}, \overline{h(d)}\right)

    ``queries``, ``documents``: of `text_vectors`. Returns ndarray, shaped (queries, documents),
    between -1 and 1.

    Reimers and Gurevych (2019), Sentence-BERT: the dense retrieval of thesis section 4.4.
    """
    cosines: Floats = (_directions(queries) @ _directions(documents).T).astype(np.float64)
    return cosines


def _directions(vectors: Floats32) -> Floats32:
    """Vectors scaled to length 1."""
    directions: Floats32 = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return directions


def _term_weights(logits: Floats32, mask: NDArray[np.bool_]) -> list[sparse.csr_array]:
    """SPLADE's weight of every vocabulary term, by its strongest place in each text."""
    weights = []
    for states in _states_of_tokens(logits, mask):
        largest = np.maximum(states.max(axis=0), 0.0)  # below zero counts as nothing
        weights.append(sparse.csr_array(np.log1p(largest).astype(np.float64)[np.newaxis]))
    return weights


def splade_scores(queries: Texts, documents: Texts, model: Model, **options: Any) -> Floats:
    r"""Learned sparse retrieval: dot product of term weights by a masked language model.

    .. math:: w_t(x) = \max_{i \in x} \ln\left(1 + \mathrm{ReLU}(\mathrm{logit}_{i,t})\right), \quad
        s(q, d) = \sum_t w_t(q) w_t(d)

    ``model``: with a masked-language-model head. ``**options``: of `token_states`, with batches of
    16 where not given. Returns ndarray, shaped (queries, documents), from 0.

    Formal et al. (2021), SPLADE v2; thesis section 4.4 has uniCOIL and DeepImpact as learned sparse
    retrieval.
    """
    options = {"batch": 16, **options}
    of_queries = sparse.vstack(_represented(model, queries, _term_weights, **options), format="csr")
    of_documents = sparse.vstack(
        _represented(model, documents, _term_weights, **options), format="csr"
    )
    return np.asarray((of_queries @ of_documents.T).toarray())
