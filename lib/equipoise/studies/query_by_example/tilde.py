"""TILDE and TILDEv2: contextualised term weights of documents, met by a query that is only tokenised.

The encoders live in `equipoise.studies.query_by_example.neural`; here is what happens without them. A document is
encoded once, into one log-probability a vocabulary token (TILDE) or one weight a document token (TILDEv2); a query is
a sparse row of token counts; scoring all queries against all documents is one matrix product.

References
----------
Zhuang, S. and Zuccon, G. (2021): TILDE: Term Independent Likelihood moDEl for Passage Re-ranking. SIGIR.
Zhuang, S. and Zuccon, G. (2021): Fast Passage Re-ranking with Contextualized Exact Term Matching and Efficient Passage
Expansion. arXiv:2108.08513.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from equipoise.arrays import Floats, Integers


def _flat(texts: Sequence[ArrayLike], vocabulary: int) -> tuple[Integers, Integers]:
    """Row and token id of every token of every text."""
    arrays = [np.asarray(text, dtype=np.int64) for text in texts]
    tokens = np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int64)
    if tokens.size and (tokens.min() < 0 or tokens.max() >= vocabulary):
        raise ValueError(f"token ids must lie in 0 to {vocabulary - 1}, found {tokens.min()} to {tokens.max()}")
    return np.repeat(np.arange(len(arrays)), [array.size for array in arrays]), tokens


def token_counts(texts: Sequence[ArrayLike], vocabulary: int) -> sparse.csr_array:
    """Token counts of tokenised texts, special tokens left out, shaped (texts, vocabulary).

    TILDE's and TILDEv2's whole query encoder: thesis section 2.2.2, and c(q_i) of Eq. 2.2.
    """
    rows, tokens = _flat(texts, vocabulary)
    counts = sparse.coo_array((np.ones(tokens.size), (rows, tokens)), shape=(len(texts), vocabulary)).tocsr()
    counts.sum_duplicates()
    return counts


def tilde_query_likelihood(queries: sparse.csr_array, log_probabilities: ArrayLike) -> Floats:
    r"""TILDE's score: the log-likelihood of the query's tokens, each independent of the others given the document.

    .. math:: \text{TILDE-QL}(q | d) = \sum_{i}^{|q|} \log P_\theta(q_i | d)

    ``queries`` (shaped (queries, vocabulary)): token counts; a token that stands twice in the query counts twice.
    ``log_probabilities`` (shaped (documents, vocabulary)): natural logarithms, at most 0. Returns ndarray, shaped
    (queries, documents), in nats.

    thesis Eq. 2.1.
    """
    table = np.asarray(log_probabilities)
    if table.ndim != 2 or table.shape[1] != queries.shape[1]:
        raise ValueError(f"queries over {queries.shape[1]} tokens, log-probabilities shaped {table.shape}")
    # only tokens that some query holds are read: a few hundred columns of tens of thousands
    used = np.unique(queries.indices)
    scores: Floats = queries[:, used] @ table[:, used].astype(np.float64).T
    return scores


def term_weights(texts: Sequence[ArrayLike], weights: Sequence[ArrayLike], vocabulary: int) -> sparse.csr_array:
    r"""TILDEv2's document: for each of its tokens the largest weight that any of its places has.

    .. math:: w(d, t) = \max_{j : d_j = t} v_j^d

    ``texts``, ``weights``: token ids of each document, and the weight v, at least 0, of every place. Returns shape
    (documents, vocabulary); tokens of weight 0 are not stored.

    The maximum of thesis Eq. 2.2, taken once a document: c(q_i) is not negative, so it can stay outside.
    """
    rows, tokens = _flat(texts, vocabulary)
    values = np.concatenate([np.asarray(row, dtype=np.float64) for row in weights]) if len(weights) else np.empty(0)
    if len(texts) != len(weights) or [np.size(text) for text in texts] != [np.size(row) for row in weights]:
        raise ValueError("each token of each text needs one weight")
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError("a term weight must be finite and not negative: it leaves a ReLU")
    order = np.lexsort((values, tokens, rows))
    rows, tokens, values = rows[order], tokens[order], values[order]
    last = np.ones(rows.size, dtype=bool)  # of equal (row, token) the last is the largest
    last[:-1] = (rows[1:] != rows[:-1]) | (tokens[1:] != tokens[:-1])
    keep = last & (values > 0)
    return sparse.coo_array((values[keep], (rows[keep], tokens[keep])), shape=(len(texts), vocabulary)).tocsr()


def matched_term_scores(queries: sparse.csr_array, documents: sparse.csr_array) -> Floats:
    r"""TILDEv2's score: the weights of the document's tokens that stand in the query, times their counts there.

    .. math:: s(q, d) = \sum_{q_i \in q} \max_{q_i = d_j} \bigl( c(q_i) \times v_j^d \bigr)

    ``queries``: from `token_counts`. ``documents``: from `term_weights`, or the weights of any sparse ranker. Returns
    ndarray, shaped (queries, documents).

    thesis Eq. 2.2.

    >>> matched_term_scores(token_counts([[1, 1, 2]], 4), term_weights([[1, 3]], [[2.0, 9.0]], 4))
    array([[4.]])
    """
    if queries.shape[1] != documents.shape[1]:
        raise ValueError(f"queries over {queries.shape[1]} tokens, documents over {documents.shape[1]}")
    scores: Floats = (queries @ documents.T).toarray()
    return scores


def pair_scores(
    queries: sparse.csr_array, documents: sparse.csr_array, query: ArrayLike, document: ArrayLike
) -> Floats:
    """`matched_term_scores` of chosen pairs only, for re-ranking; ``query`` and ``document`` are row numbers."""
    left, right = np.asarray(query, dtype=np.int64), np.asarray(document, dtype=np.int64)
    if queries.shape[1] != documents.shape[1] or left.shape != right.shape:
        raise ValueError(
            f"vocabularies of {queries.shape[1]} and {documents.shape[1]}, {left.size} and {right.size} rows"
        )
    scores: Floats = np.asarray((queries[left] * documents[right]).sum(axis=1), dtype=np.float64).ravel()
    return scores


def expansion_terms(log_probabilities: ArrayLike, texts: Sequence[ArrayLike], m: int) -> list[Integers]:
    """The new ones among the m most likely terms of each document, most likely first, to be appended to it.

    ``log_probabilities`` (shaped (documents, vocabulary)): from TILDE; of equally likely terms the smaller id is first.
    Fewer than m are added: those already in the document are not.

    thesis section 2.3.4: m = 200 and 300. The authors' program also leaves out stop words and symbols.
    """
    table = np.asarray(log_probabilities)
    if len(texts) != len(table):
        raise ValueError(f"{len(texts)} texts and {len(table)} rows of log-probabilities")
    if not 0 <= m <= table.shape[1]:
        raise ValueError(f"m must lie in 0 to {table.shape[1]}, found {m}")
    present = token_counts(texts, table.shape[1])
    top = np.argsort(-table, axis=1, kind="stable")[:, :m]
    rows = np.repeat(np.arange(len(table)), m)
    new = present[rows, top.ravel()].reshape(top.shape) == 0 if top.size else np.zeros(top.shape, dtype=bool)
    return np.split(top[new], np.cumsum(new.sum(axis=1))[:-1]) if len(table) else []
