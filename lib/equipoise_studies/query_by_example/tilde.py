"""TILDE and TILDEv2: contextualised term weights of documents, met by a tokenised query.

The encoders live in `equipoise_studies.query_by_example.neural`; here is what happens without them.
A document is encoded once, into one log-probability a vocabulary token (TILDE) or one weight a
document token (TILDEv2); a query is a sparse row of token counts; scoring all queries against all
documents is one matrix product.

References
----------
Zhuang, S. and Zuccon, G. (2021): TILDE: Term Independent Likelihood moDEl for Passage Re-ranking.
SIGIR. Zhuang, S. and Zuccon, G. (2021): Fast Passage Re-ranking with Contextualized Exact Term
Matching and Efficient Passage Expansion. arXiv:2108.08513.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import sparse

from equipoise.arrays import Floats, Integers
from equipoise.statistics import finite


def _flat(texts: Sequence[ArrayLike]) -> tuple[Integers, Integers]:
    """Row and token id of every token of every text."""
    arrays = [np.asarray(text, dtype=np.int64) for text in texts]
    sizes = [array.size for array in arrays]
    return np.repeat(np.arange(len(arrays)), sizes), np.concatenate(arrays)


def token_counts(texts: Sequence[ArrayLike], vocabulary: int) -> sparse.csr_array:
    """Token counts of tokenised texts, special tokens left out, shaped (texts, vocabulary).

    TILDE's and TILDEv2's whole query encoder: thesis section 2.2.2, and c(q_i) of Eq. 2.2.
    """
    rows, tokens = _flat(texts)
    shape = (len(texts), vocabulary)
    return sparse.coo_array((np.ones(tokens.size), (rows, tokens)), shape=shape).tocsr()


def tilde_query_likelihood(queries: sparse.csr_array, log_probabilities: ArrayLike) -> Floats:
    r"""TILDE's score: the log-likelihood of a query's tokens, independent given the document.

    .. math:: \text{TILDE-QL}(q | d) = \sum_{i}^{|q|} \log P_\theta(q_i | d)

    ``queries`` (shaped (queries, vocabulary)): token counts; a token that stands twice in the query
    counts twice. ``log_probabilities`` (shaped (documents, vocabulary)): natural logarithms, at
    most 0. Returns ndarray, shaped (queries, documents), in nats.

    thesis Eq. 2.1.
    """
    table = np.asarray(log_probabilities)
    if table.shape[1] != queries.shape[1]:
        raise ValueError(
            f"queries over {queries.shape[1]} tokens, log-probabilities shaped {table.shape}"
        )
    # Only tokens that some query holds are read: a few hundred columns of tens of thousands.
    used = np.unique(queries.indices)
    scores: Floats = queries[:, used] @ table[:, used].astype(np.float64).T
    return scores


def term_weights(
    texts: Sequence[ArrayLike], weights: Sequence[ArrayLike], vocabulary: int
) -> sparse.csr_array:
    r"""TILDEv2's document: for each of its tokens the largest weight that any of its places has.

    .. math:: w(d, t) = \max_{j : d_j = t} v_j^d

    ``texts``, ``weights``: token ids of each document, and the weight v, at least 0, of every
    place. Returns shape (documents, vocabulary); tokens of weight 0 are not stored.

    The maximum of thesis Eq. 2.2, taken once a document: c(q_i) is not negative, so it can stay
    outside.
    """
    sizes = [np.size(text) for text in texts]
    if sizes != [np.size(of_text) for of_text in weights]:
        raise ValueError("each token of each text needs one weight")
    rows, tokens = _flat(texts)
    flat_weights = np.concatenate([np.asarray(of_text) for of_text in weights])
    values = finite(flat_weights, "term weights")
    if (values < 0).any():
        raise ValueError("a term weight is not negative: it leaves a ReLU")
    places = pd.DataFrame({"row": rows, "token": tokens, "weight": values})
    positive = places[places["weight"] > 0]
    largest = positive.groupby(["row", "token"], as_index=False)["weight"].max()
    coordinates = (largest["row"], largest["token"])
    shape = (len(texts), vocabulary)
    return sparse.coo_array((largest["weight"], coordinates), shape=shape).tocsr()


def matched_term_scores(queries: sparse.csr_array, documents: sparse.csr_array) -> Floats:
    r"""TILDEv2's score: weights of a document's tokens times their counts in the query.

    .. math:: s(q, d) = \sum_{q_i \in q} \max_{q_i = d_j} \bigl( c(q_i) \times v_j^d \bigr)

    ``queries``: from `token_counts`. ``documents``: from `term_weights`, or the weights of any
    sparse ranker. Returns ndarray, shaped (queries, documents).

    thesis Eq. 2.2.

    >>> matched_term_scores(token_counts([[1, 1, 2]], 4), term_weights([[1, 3]], [[2.0, 9.0]], 4))
    array([[4.]])
    """
    scores: Floats = (queries @ documents.T).toarray()
    return scores


def unasked_tokens(vocabulary: Mapping[str, int], stop_words: Iterable[str]) -> Integers:
    """Tokens that the authors' TILDE asks no text for: stop words, symbols and the plural's s.

    A stop word counts where it is one token; a symbol is a token with other signs than letters of
    the Latin alphabet, digits, ``_`` and ``-``, such as [CLS].
    """
    unasked = {vocabulary[word] for word in stop_words if word in vocabulary}
    for token, number in vocabulary.items():
        continues_word = token.startswith("#") and len(token) > 1
        if not continues_word and not re.fullmatch(r"[A-Za-z0-9_-]*", token):
            unasked.add(number)
    if "##s" in vocabulary:
        unasked.add(vocabulary["##s"])
    return np.array(sorted(unasked), dtype=np.int64)


def expansion_terms(
    log_probabilities: ArrayLike,
    texts: Sequence[ArrayLike],
    m: int,
    unasked: ArrayLike = (),
) -> list[Integers]:
    """The new ones among the m most likely terms of each document, most likely first.

    They are to be appended to it.

    ``log_probabilities`` (shaped (documents, vocabulary)): from TILDE; of equally likely terms the
    smaller id is first. Fewer than m are added: those already in the document are not, nor those
    ``unasked`` for, as in the authors' program.

    thesis section 2.3.4: m = 200 and 300.
    """
    likely = np.argsort(-np.asarray(log_probabilities), axis=1, kind="stable")[:, :m]
    # How many are new differs from document to document.
    new_terms = []
    for terms, text in zip(likely, texts, strict=True):
        is_new = ~np.isin(terms, text) & ~np.isin(terms, np.asarray(unasked, dtype=np.int64))
        new_terms.append(terms[is_new])
    return new_terms
