"""Neural rankers of a small collection: dense, learned sparse, and late interaction as a re-ranker.

Each scores every query against every document (or every candidate) exactly, without an index: the collections here are
of hundreds to thousands of documents. Scores come as an array shaped (queries, documents); `best` makes a run of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import bm25s
import numpy as np
import pandas as pd
import Stemmer
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from equipoise.arrays import Floats
from equipoise.systems.encoders import Model, token_states

Floats32 = NDArray[np.float32]


def best(
    scores: ArrayLike, queries: Sequence[str], documents: Sequence[str], run: str, *, depth: int = 20
) -> pd.DataFrame:
    """Best documents of every query, as a run.

    ``scores`` (shaped (queries, documents)): Higher is better; ``-inf`` leaves a document out. ``queries``,
    ``documents``: ids of the rows and columns. ``run``: name of the run. ``depth``: Documents kept for each query.
    Returns DataFrame, columns run, topic, document, rank, score: Ties in the order of the document ids.
    """
    table = np.asarray(scores, dtype=np.float64)
    if table.shape != (len(queries), len(documents)):
        raise ValueError(f"scores are shaped {table.shape}, wanted {(len(queries), len(documents))}")
    ids = np.asarray(documents, dtype=object)
    by_id = np.argsort(ids.astype(str), kind="stable")
    order = by_id[np.argsort(-table[:, by_id], axis=1, kind="stable")][:, :depth]
    kept = np.take_along_axis(table, order, axis=1)
    rank = np.broadcast_to(np.arange(1, order.shape[1] + 1), order.shape)
    topics = np.repeat(np.asarray(queries, dtype=object), order.shape[1])
    frame = pd.DataFrame(
        {"run": run, "topic": topics, "document": ids[order].ravel(), "rank": rank.ravel(), "score": kept.ravel()}
    )
    return frame[np.isfinite(frame["score"])].reset_index(drop=True)


def bm25_scores(queries: Sequence[str], documents: Sequence[str], *, k1: float = 0.9, b: float = 0.4) -> Floats:
    """BM25 by bm25s, with English stop words and the Porter stemmer.

    ``queries``, ``documents``: Texts. ``k1``, ``b``: Saturation and length normalisation: the defaults of Pyserini,
    which the thesis uses. Returns ndarray, shaped (queries, documents): The variant of Lucene.

    thesis section 4.4 (BM25 by Pyserini).
    """
    _something(queries, documents)
    stemmer = Stemmer.Stemmer("english")
    options = {"stopwords": "en", "stemmer": stemmer, "show_progress": False}
    retriever = bm25s.BM25(method="lucene", k1=k1, b=b)
    retriever.index(bm25s.tokenize(list(documents), **options), show_progress=False)
    asked = bm25s.tokenize(list(queries), return_ids=False, **options)
    return np.vstack([retriever.get_scores(words) for words in asked]).astype(np.float64)


def _mean_pooled(model: Model, texts: Sequence[str], length: int, batch: int, progress: str) -> Floats32:
    rows: list[NDArray[np.int64]] = []
    vectors: list[Floats32] = []
    for positions, states, mask in token_states(model, texts, length=length, batch=batch, progress=progress):
        weights = mask[:, :, np.newaxis].astype(np.float32)
        mean = (states * weights).sum(axis=1) / weights.sum(axis=1)
        vectors.append((mean / np.linalg.norm(mean, axis=1, keepdims=True)).astype(np.float32))
        rows.append(positions)
    back = np.argsort(np.concatenate(rows))
    pooled: Floats32 = np.concatenate(vectors)[back]
    return pooled


def dense_scores(
    queries: Sequence[str],
    documents: Sequence[str],
    model: Model,
    *,
    length: int = 256,
    batch: int = 32,
    progress: str = "",
) -> Floats:
    r"""Cosine of the mean token states of query and document, such as all-MiniLM was trained for.

    .. math:: s(q, d) = \cos\left(\overline{h(q)}, \overline{h(d)}\right)

    ``queries``, ``documents``: Texts. ``model``: an encoder. ``length``: Tokens after which a text is cut:
    all-MiniLM's own limit. ``batch``: Texts in one step. ``progress``: Label of a progress bar. Returns ndarray,
    shaped (queries, documents): Between -1 and 1.

    Reimers and Gurevych (2019), Sentence-BERT: the dense retrieval of thesis section 4.4.
    """
    _something(queries, documents)
    options = {"length": length, "batch": batch}
    asked = _mean_pooled(model, queries, progress="", **options)
    held = _mean_pooled(model, documents, progress=progress, **options)
    return (asked @ held.T).astype(np.float64)


def _something(queries: Sequence[str], documents: Sequence[str]) -> None:
    if not queries or not documents:
        raise ValueError(f"nothing to rank: {len(queries)} queries and {len(documents)} documents")


def _splade_vectors(model: Model, texts: Sequence[str], length: int, batch: int, progress: str) -> sparse.csr_array:
    rows: list[NDArray[np.int64]] = []
    parts = []
    for positions, logits, mask in token_states(model, texts, length=length, batch=batch, progress=progress):
        strongest = np.where(mask[:, :, np.newaxis], logits, 0.0).max(axis=1)  # below zero counts as nothing
        parts.append(sparse.csr_array(np.log1p(np.maximum(strongest, 0.0)).astype(np.float64)))
        rows.append(positions)
    back = np.argsort(np.concatenate(rows))
    return sparse.csr_array(sparse.vstack(parts, format="csr")[back])


def splade_scores(
    queries: Sequence[str],
    documents: Sequence[str],
    model: Model,
    *,
    length: int = 256,
    batch: int = 16,
    progress: str = "",
) -> Floats:
    r"""Learned sparse retrieval: dot product of term weights that a masked language model gives query and document.

    .. math:: w_t(x) = \max_{i \in x} \ln\left(1 + \mathrm{ReLU}(\mathrm{logit}_{i,t})\right), \quad
        s(q, d) = \sum_t w_t(q) w_t(d)

    ``queries``, ``documents``: Texts. ``model``: with a masked-language-model head. Returns ndarray, shaped
    (queries, documents): From 0.

    Formal et al. (2021), SPLADE v2; thesis section 4.4 has uniCOIL and DeepImpact as learned sparse retrieval.
    """
    _something(queries, documents)
    asked = _splade_vectors(model, queries, length, batch, "")
    held = _splade_vectors(model, documents, length, batch, progress)
    scored: Floats = (asked @ held.T).toarray()
    return scored


def max_similarity(query: Floats32, document: Floats32) -> float:
    r"""Late interaction of one query and one document: the best match of each query token, summed.

    .. math:: s(q, d) = \sum_{i \in q} \max_{j \in d} E_{q_i} \cdot E_{d_j}

    ``query``, ``document`` (shaped (tokens, width)): States of unit length. Returns: At most the number of query
    tokens.

    Khattab and Zaharia (2020), ColBERT.
    """
    return float((query @ document.T).max(axis=1).sum())


def _unit_states(model: Model, texts: Sequence[str], length: int, batch: int, progress: str) -> list[Floats32]:
    held: list[Floats32] = [np.empty((0, 0), dtype=np.float32)] * len(texts)
    for positions, states, mask in token_states(model, texts, length=length, batch=batch, progress=progress):
        unit = states / np.linalg.norm(states, axis=2, keepdims=True)
        for row, position in enumerate(positions):
            held[position] = unit[row][mask[row]].astype(np.float32)
    return held


def late_interaction_scores(
    queries: Sequence[str],
    documents: Sequence[str],
    model: Model,
    first_stage: ArrayLike,
    *,
    depth: int = 100,
    length: int = 256,
    batch: int = 32,
    progress: str = "",
) -> Floats:
    """Re-rank the best documents of a first stage by late interaction.

    ``queries``, ``documents``: Texts. ``model``: an encoder. ``first_stage`` (shaped (queries, documents)): Scores
    of the first stage, such as BM25. ``depth``: Candidates of each query; the thesis re-ranks 1000 of millions.
    Returns ndarray, shaped (queries, documents): ``-inf`` for documents that are no candidates.

    Khattab and Zaharia (2020). The encoder was not trained for late interaction: it stands for the re-rankers of thesis
    section 4.4, which are cross-encoders.
    """
    _something(queries, documents)
    first = np.asarray(first_stage, dtype=np.float64)
    if first.shape != (len(queries), len(documents)):
        raise ValueError(f"the first stage is shaped {first.shape}, wanted {(len(queries), len(documents))}")
    asked = _unit_states(model, queries, length, batch, "")
    held = _unit_states(model, documents, length, batch, progress)
    scores = np.full(first.shape, -np.inf)
    candidates = np.argsort(-first, axis=1, kind="stable")[:, :depth]
    for row, columns in enumerate(candidates):
        for column in columns:
            scores[row, column] = max_similarity(asked[row], held[column])
    return scores
