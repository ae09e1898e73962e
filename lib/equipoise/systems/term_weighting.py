"""BM25 and the Jelinek-Mercer language model as sparse term weights of documents.

Both score a document by a sum over the query's terms of a weight that only the document and the collection decide, and
that is zero where the term does not stand in the document. So a collection becomes one sparse matrix, and scoring all
queries against all documents one product with their term counts (`equipoise.systems.tilde.exact_match`).

References
----------
Robertson, S. and Zaragoza, H. (2009): The Probabilistic Relevance Framework: BM25 and Beyond. FnTIR 3 (4).
Zhai, C. and Lafferty, J. (2001): A study of smoothing methods for language models. SIGIR.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["bm25_weights", "counts_of", "jelinek_mercer_weights", "vocabulary_of"]

Floats = NDArray[np.float64]


def vocabulary_of(texts: Sequence[Sequence[str]]) -> dict[str, int]:
    """Number of each distinct term of tokenised texts, terms ascending.

    Parameters
    ----------
    texts : sequence of sequence of str
        Terms of each text.

    Returns
    -------
    dict from str to int

    Examples
    --------
    >>> vocabulary_of([["b", "a"], ["b"]])
    {'a': 0, 'b': 1}
    """
    return {term: number for number, term in enumerate(sorted({term for text in texts for term in text}))}


def counts_of(texts: Sequence[Sequence[str]], vocabulary: dict[str, int]) -> sparse.csr_array:
    """Term counts of tokenised texts; terms that are not in the vocabulary are left out.

    Parameters
    ----------
    texts : sequence of sequence of str
        Terms of each text.
    vocabulary : dict from str to int
        As `vocabulary_of` makes it, of the documents.

    Returns
    -------
    csr_array, shaped (texts, terms)
        Of float64.

    Examples
    --------
    >>> counts_of([["b", "b", "x"]], {"a": 0, "b": 1}).toarray()
    array([[0., 2.]])
    """
    rows = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    places = np.fromiter((vocabulary.get(term, -1) for text in texts for term in text), dtype=np.int64, count=rows.size)
    known = places >= 0
    shape = (len(texts), len(vocabulary))
    counts = sparse.coo_array((np.ones(known.sum()), (rows[known], places[known])), shape=shape).tocsr()
    counts.sum_duplicates()
    return counts


def _lengths(counts: sparse.csr_array) -> tuple[Floats, Floats]:
    """Length of every document, and of the document that each stored count belongs to."""
    lengths: Floats = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
    return lengths, np.repeat(lengths, np.diff(counts.indptr))


def bm25_weights(counts: sparse.csr_array, *, k: float = 2.75, b: float = 1.0) -> sparse.csr_array:
    r"""BM25 weights, in the form of today's search engines.

    .. math::
        w(d, t) = \ln \Bigl( 1 + \frac{N - n_t + 0.5}{n_t + 0.5} \Bigr)
        \frac{tf}{tf + k \, (1 - b + b \, |d| / \overline{|d|})}

    Parameters
    ----------
    counts : csr_array, shaped (documents, terms)
        Term counts.
    k, b : float
        Saturation and length normalisation; the defaults are what the thesis tuned for papers.

    Returns
    -------
    csr_array, shaped (documents, terms)
        Without the factor k + 1 of the older form, which changes no ranking. Document lengths are exact; Lucene stores
        them with few bits, which is not imitated.

    Raises
    ------
    ValueError
        If k is negative, b lies outside 0 to 1, or there is no document.

    Notes
    -----
    thesis section 2.2.1.

    Examples
    --------
    >>> weights = bm25_weights(counts_of([["a"], ["a", "b"]], {"a": 0, "b": 1}), k=1.0, b=0.0)
    >>> weights.toarray().round(4)
    array([[0.0912, 0.    ],
           [0.0912, 0.3466]])
    """
    if k < 0 or not 0 <= b <= 1:
        raise ValueError(f"BM25 needs k of at least 0 and b between 0 and 1, found k = {k} and b = {b}")
    if counts.shape[0] == 0:
        raise ValueError("BM25 needs a collection of at least one document")
    present = np.bincount(counts.indices, minlength=counts.shape[1])
    idf = np.log1p((counts.shape[0] - present + 0.5) / (present + 0.5))
    each, own = _lengths(counts)
    mean = each.mean()
    norm = k * (1.0 - b + b * own / (mean if mean > 0 else 1.0))
    data = idf[counts.indices] * counts.data / (counts.data + norm)
    return sparse.csr_array((data, counts.indices, counts.indptr), shape=counts.shape)


def jelinek_mercer_weights(counts: sparse.csr_array, *, smoothing: float = 0.1, added: float = 1.0) -> sparse.csr_array:
    r"""Query-likelihood weights under Jelinek-Mercer smoothing, relative to the collection's own model.

    .. math::
        w(d, t) = \ln \Bigl( 1 + \frac{(1 - \lambda) \, tf / |d|}{\lambda \, P(t | C)} \Bigr), \quad
        P(t | C) = \frac{cf_t + a}{|C| + a}

    A query's sum of these ranks documents as its log-likelihood does: the two differ by a sum over the query's terms that
    no document changes.

    Parameters
    ----------
    counts : csr_array, shaped (documents, terms)
        Term counts.
    smoothing : float
        Weight of the collection, strictly between 0 and 1; 0.1 is Elasticsearch's default, which the thesis does not
        say to have changed.
    added : float
        Added to the collection frequencies: 1 in Lucene (default), 0 in the textbook.

    Returns
    -------
    csr_array, shaped (documents, terms)
        In nats.

    Raises
    ------
    ValueError
        If the smoothing lies outside (0, 1), or `added` is negative.

    Notes
    -----
    thesis section 2.2.1; Zhai and Lafferty (2001).

    Examples
    --------
    >>> weights = jelinek_mercer_weights(counts_of([["a"], ["a", "b"]], {"a": 0, "b": 1}), smoothing=0.5, added=0)
    >>> weights.toarray().round(4)
    array([[0.9163, 0.    ],
           [0.5596, 0.9163]])
    """
    if not 0 < smoothing < 1:
        raise ValueError(f"the smoothing must lie strictly between 0 and 1, found {smoothing}")
    if added < 0:
        raise ValueError(f"what is added to frequencies cannot be negative, found {added}")
    frequencies = np.asarray(counts.sum(axis=0), dtype=np.float64).ravel()
    model = (frequencies + added) / (frequencies.sum() + added)
    _, own = _lengths(counts)
    data = np.log1p((1.0 - smoothing) * counts.data / own / (smoothing * model[counts.indices]))
    return sparse.csr_array((data, counts.indices, counts.indptr), shape=counts.shape)
