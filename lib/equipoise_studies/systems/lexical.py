"""Lexical ranking of a collection: BM25, query likelihood with two smoothings, RM3 feedback.

A `Collection` holds the term counts of its documents as a sparse matrix. Queries are rows of a
sparse matrix over the same terms, with any non-negative weights, so that concatenated, weighted and
expanded queries are all the same thing and many are scored at once by one sparse product. Text
becomes terms through a tokeniser that the caller can exchange; scikit-learn counts, Snowball's
Porter stemmer stems.

References
----------
permutations, section 4.1 (parameters). Robertson and Zaragoza (2009), The Probabilistic Relevance
Framework: BM25 and Beyond. Zhai and Lafferty (2001) for both kinds of smoothing. Lavrenko and Croft
(2001), Abdul-Jaleel et al. (2004) for RM3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

from equipoise.arrays import Floats
from equipoise_studies.systems.tokenisation import porter

Sparse = Any  # scipy.sparse.csr_array of float64: SciPy ships no types

_WORD = re.compile(r"[^\W_]+")
_MOST_COLUMNS = 9_000_000  # a score step and a column number fit one 64-bit integer


def english_terms(text: str) -> list[str]:
    """Terms of an English text: lower-cased letters and digits, no stop words, Porter-stemmed.

    Stop words (here scikit-learn's list) and Porter's stemmer are also what Terrier, the engine of
    the permutations study, applies by default; its list is another.

    >>> english_terms("The sharks' teeth")
    ['shark', 'teeth']
    """
    words = [word for word in _WORD.findall(text.lower()) if word not in ENGLISH_STOP_WORDS]
    return [stem for stem in porter(words) if stem]  # of a lone s nothing is left


@dataclass(frozen=True, eq=False)
class Collection:
    """Documents as term counts, shaped (documents, terms), with what made them.

    The ``vectorizer`` makes queries too.
    """

    documents: tuple[str, ...]
    counts: Sparse
    vectorizer: Any

    @classmethod
    def from_texts(
        cls, texts: dict[str, str], tokenise: Callable[[str], Sequence[str]] = english_terms
    ) -> Collection:
        """Count the terms of documents, given as text by id; rows are sorted by id.

        Documents without a term stay in the collection; nothing retrieves them.
        """
        if not texts:
            raise ValueError("a collection needs at least one document")
        documents = tuple(sorted(texts))
        vectorizer = CountVectorizer(analyzer=tokenise, dtype=np.float64)
        try:
            counts = vectorizer.fit_transform([texts[name] for name in documents])
        except ValueError as error:
            raise ValueError(f"no document has a term that the tokeniser keeps ({error})") from None
        return cls(documents, sparse.csr_array(counts), vectorizer)

    @property
    def lengths(self) -> Floats:
        """Number of terms of each document, shaped (documents,)."""
        return np.asarray(self.counts.sum(axis=1), dtype=np.float64)

    def queries(self, texts: Sequence[str]) -> Sparse:
        """Queries as term counts, shaped (queries, terms), without terms that no document has."""
        return sparse.csr_array(self.vectorizer.transform(texts))


def bm25(collection: Collection, queries: Sparse, *, k1: float = 1.2, b: float = 0.75) -> Floats:
    r"""BM25 scores of all documents for many queries at once.

    .. math::
        s(q, d) = \sum_t q_t\, idf_t \frac{tf_{td} (k_1 + 1)}
        {tf_{td} + k_1 (1 - b + b\, |d| / \overline{|d|})}

    ``queries`` (shaped (queries, terms)): non-negative term weights; the score is linear in them.
    ``k1``: saturation of the term frequency, at least 0. ``b``: normalisation by document length, 0
    to 1. The idf is log(1 + (N - n + 0.5) / (n + 0.5)), never negative. Returns ndarray, shaped
    (queries, documents).

    permutations, section 4.1 (k1 = 1.2, b = 0.75); thesis chapter 2. The factor k1 + 1 does not
    change a ranking.
    """
    if k1 < 0 or not 0 <= b <= 1:
        raise ValueError(f"k1 is at least 0 and b between 0 and 1, found k1={k1} and b={b}")
    counts, lengths = collection.counts.tocoo(), collection.lengths
    holders = np.bincount(counts.col, minlength=counts.shape[1])
    # With 1 added within the logarithm, as in Lucene, a term of most documents is not negative.
    rarity = np.log1p((len(lengths) - holders + 0.5) / (holders + 0.5))
    norm = k1 * (1 - b + b * lengths / lengths.mean())
    values = rarity[counts.col] * counts.data * (k1 + 1) / (counts.data + norm[counts.row])
    return _product(queries, counts, values)


def query_likelihood(collection: Collection, queries: Sparse, *, mu: float = 2500.0) -> Floats:
    r"""Log-likelihood of queries under Dirichlet-smoothed document models.

    It is without the part that does not depend on the document.

    .. math::
        s(q, d) = \sum_t q_t \log\frac{tf_{td} + \mu\, p(t|C)}{|d| + \mu} - \sum_t q_t \log p(t|C)

    p(t|C) is the share of t among all terms of the collection. ``queries`` (shaped (queries,
    terms)): non-negative term weights. ``mu``: mass of the smoothing, in terms; above 0. Returns
    ndarray, shaped (queries, documents), in nats; larger is better, negative values are usual.

    permutations, section 4.1 (mu = 2500); Zhai and Lafferty (2001).
    """
    if mu <= 0:
        raise ValueError(f"mu is above 0, found {mu}")
    counts = collection.counts.tocoo()
    share = np.asarray(collection.counts.sum(axis=0)) / collection.counts.sum()
    scores = _product(queries, counts, np.log1p(counts.data / (mu * share[counts.col])))
    mass = np.asarray(queries.sum(axis=1), dtype=np.float64)
    return scores + np.outer(mass, np.log(mu / (collection.lengths + mu)))


def jelinek_mercer(
    collection: Collection, queries: Sparse, *, smoothing: float = 0.1, added: float = 1.0
) -> Floats:
    r"""Log-likelihood of queries under Jelinek-Mercer smoothing.

    It is without the part that does not depend on the document.

    .. math::
        s(q, d) = \sum_t q_t \ln
        \Bigl( 1 + \frac{(1 - \lambda) \, tf_{td} / |d|}{\lambda \, p(t | C)} \Bigr), \quad
        p(t | C) = \frac{cf_t + a}{|C| + a}

    cf counts a term in all documents, \|C\| is the number of all their terms. ``queries`` (shaped
    (queries, terms)): non-negative term weights. ``smoothing``: lambda, the weight of the
    collection, strictly between 0 and 1; 0.1 is Elasticsearch's default, which the thesis does not
    say to have changed. ``added``: a, added to the collection frequencies: 1 in Lucene, 0 in the
    textbook. Returns ndarray, shaped (queries, documents), in nats; 0 where no term is shared.

    thesis section 2.2.1; Zhai and Lafferty (2001).
    """
    if not 0 < smoothing < 1:
        raise ValueError(f"the smoothing must lie strictly between 0 and 1, found {smoothing}")
    if added < 0:
        raise ValueError(f"what is added to frequencies cannot be negative, found {added}")
    counts = collection.counts.tocoo()
    frequencies = np.asarray(collection.counts.sum(axis=0), dtype=np.float64)
    share = (frequencies + added) / (frequencies.sum() + added)
    document_lengths = collection.lengths[counts.row]
    gain = (1 - smoothing) * counts.data / document_lengths / (smoothing * share[counts.col])
    return _product(queries, counts, np.log1p(gain))


def _product(queries: Sparse, counts: Any, values: Floats) -> Floats:
    """Scores of queries over documents whose terms have the values in the place of the counts."""
    if queries.ndim != 2 or queries.shape[1] != counts.shape[1]:
        raise ValueError(
            f"queries over {counts.shape[1]} terms are wanted, found shape {queries.shape}"
        )
    weights = sparse.csr_array((values, (counts.row, counts.col)), shape=counts.shape)
    return np.asarray((sparse.csr_array(queries) @ weights.T).toarray())


def top(scores: Floats, k: int) -> NDArray[np.intp]:
    """Best k documents of every query; equal scores in the order of the columns (ids, ascending).

    ``scores`` (shaped (queries, documents)): larger is better. Returns column numbers, best first,
    shaped (queries, min(k, documents)).

    Scores that differ by rounding only (relative 1e-12) count as equal, so that the order in which
    a sum was computed cannot change a ranking.

    >>> top(np.array([[0.1, 0.5, 0.5]]), 2)
    array([[1, 2]])
    """
    if k < 1:
        raise ValueError(f"k is at least 1, found {k}")
    size = scores.shape[1]
    if k >= size or size > _MOST_COLUMNS:
        return np.argsort(-_steps(scores), axis=1, kind="stable")[:, :k]
    # All different: ties are broken by column.
    keys = -_steps(scores).astype(np.int64) * size + np.arange(size)
    best = np.argpartition(keys, k - 1, axis=1)[:, :k]
    order = np.argsort(np.take_along_axis(keys, best, axis=1), axis=1)
    return np.take_along_axis(best, order, axis=1)


def _steps(scores: Floats) -> Floats:
    """Scores of each query in whole steps of 1e-12 of the power of ten above its largest."""
    largest = np.abs(scores).max(initial=0.0, axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        digits = 11 - np.floor(np.log10(largest))
    return np.asarray(np.rint(scores * 10.0 ** np.where(np.isfinite(digits), digits, 0.0)))


def unit_mass(queries: Sparse) -> Sparse:
    """Queries scaled so that the weights of each sum to one; empty queries stay empty."""
    mass = np.asarray(queries.sum(axis=1), dtype=np.float64)
    return sparse.csr_array(sparse.diags_array(1 / np.where(mass > 0, mass, 1.0)) @ queries)


def relevance_model(
    collection: Collection, scores: Floats, *, documents: int = 10, terms: int = 10
) -> Sparse:
    r"""Relevance models: the most probable terms of the highest ranked documents.

    .. math:: p(t|R) \propto \sum_{d \in top} \frac{s(q, d)}{\sum_{d'} s(q, d')} \frac{tf_{td}}{|d|}

    ``scores`` (shaped (queries, documents)): of a first stage, BM25 in the paper; documents with a
    score of 0 or less are not feedback. ``documents``, ``terms``: how many of the highest ranked
    documents, and of their terms; equal probabilities in alphabetical order. Returns term weights,
    shaped (queries, terms of the collection), that sum to one; empty where no document scores above
    0.

    permutations, section 4.1 (10 terms of 10 documents); Lavrenko and Croft (2001), RM1, with
    documents weighted by their share of the first-stage score.
    """
    if documents < 1 or terms < 1:
        raise ValueError(
            f"at least one feedback document and term are wanted, found {documents} and {terms}"
        )
    if scores.ndim != 2 or scores.shape[1] != len(collection.documents):
        documents_of = f"scores of {len(collection.documents)} documents"
        raise ValueError(f"{documents_of} are wanted, found shape {scores.shape}")
    best = top(scores, documents)
    weight = np.maximum(np.take_along_axis(scores, best, axis=1), 0.0)
    rows = np.repeat(np.arange(len(scores)), best.shape[1])
    feedback = sparse.csr_array((weight.ravel(), (rows, best.ravel())), shape=scores.shape)
    model = (unit_mass(feedback) @ unit_mass(collection.counts)).tocsr()
    model.sum_duplicates()
    model.eliminate_zeros()
    owner = np.repeat(np.arange(model.shape[0]), np.diff(model.indptr))
    # By query, then by falling probability, rounded so that sums in another order tie alike.
    order = np.lexsort((model.indices, -np.round(model.data, 12), owner))
    place = np.arange(len(order)) - model.indptr[owner]
    best_terms = np.sort(order[place < terms])
    coordinates = (owner[best_terms], model.indices[best_terms])
    cut = sparse.csr_array((model.data[best_terms], coordinates), shape=model.shape)
    return unit_mass(cut)


def rm3(
    collection: Collection,
    queries: Sparse,
    *,
    documents: int = 10,
    terms: int = 10,
    original_weight: float = 0.6,
    **settings: Any,
) -> Sparse:
    r"""Queries expanded by RM3: the original mixed with the relevance model of its BM25 ranking.

    .. math:: q' = \lambda\, q / |q| + (1 - \lambda)\, p(\cdot | R)

    ``queries`` (shaped (queries, terms)): non-negative term weights. ``original_weight``: lambda, 0
    to 1. The paper does not give it; 0.6 is the default of the engine that it used. ``**settings``:
    of the first-stage `bm25`. Returns expanded queries of the same shape, to be scored by any
    ranking function; one that retrieves nothing keeps its weights.

    permutations, section 4.1; Abdul-Jaleel et al. (2004).
    """
    if not 0 <= original_weight <= 1:
        raise ValueError(f"original_weight is between 0 and 1, found {original_weight}")
    model = relevance_model(
        collection, bm25(collection, queries, **settings), documents=documents, terms=terms
    )
    return sparse.csr_array(original_weight * unit_mass(queries) + (1 - original_weight) * model)
