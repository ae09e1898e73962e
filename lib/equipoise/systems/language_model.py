"""The language model of thesis chapter 2: query likelihood under Jelinek-Mercer smoothing.

References
----------
Zhai, C. and Lafferty, J. (2001): A study of smoothing methods for language models. SIGIR.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from equipoise.systems.lexical import Collection

__all__ = ["jelinek_mercer"]

Floats = NDArray[np.float64]
Sparse = Any  # scipy.sparse.csr_array of float64: SciPy ships no types


def jelinek_mercer(collection: Collection, queries: Sparse, *, smoothing: float = 0.1, added: float = 1.0) -> Floats:
    r"""Log-likelihood of queries under Jelinek-Mercer smoothing, less what does not depend on the document.

    .. math::
        s(q, d) = \sum_t q_t \ln \Bigl( 1 + \frac{(1 - \lambda) \, tf_{td} / |d|}{\lambda \, p(t | C)} \Bigr), \quad
        p(t | C) = \frac{cf_t + a}{|C| + a}

    Parameters
    ----------
    collection : Collection
        The documents; cf counts a term in all of them, \|C\| is the number of all their terms.
    queries : csr_array, shaped (queries, terms)
        Non-negative term weights.
    smoothing : float
        Weight of the collection, strictly between 0 and 1; 0.1 is Elasticsearch's default, which the thesis does not
        say to have changed.
    added : float
        Added to the collection frequencies: 1 in Lucene (default), 0 in the textbook.

    Returns
    -------
    ndarray, shaped (queries, documents)
        In nats; 0 where no term is shared.

    Raises
    ------
    ValueError
        If the smoothing lies outside (0, 1), `added` is negative, or the queries have another vocabulary.

    Notes
    -----
    thesis section 2.2.1; Zhai and Lafferty (2001).

    Examples
    --------
    >>> collection = Collection.from_texts({"d1": "tiger", "d2": "tiger shark"})
    >>> jelinek_mercer(collection, collection.queries(["tiger", "shark"]), smoothing=0.5, added=0).round(4)
    array([[0.9163, 0.5596],
           [0.    , 0.9163]])
    """
    if not 0 < smoothing < 1:
        raise ValueError(f"the smoothing must lie strictly between 0 and 1, found {smoothing}")
    if added < 0:
        raise ValueError(f"what is added to frequencies cannot be negative, found {added}")
    if queries.ndim != 2 or queries.shape[1] != collection.counts.shape[1]:
        raise ValueError(f"queries over {collection.counts.shape[1]} terms are wanted, found shape {queries.shape}")
    counts = collection.counts.tocoo()
    frequencies = np.asarray(collection.counts.sum(axis=0), dtype=np.float64)
    share = (frequencies + added) / (frequencies.sum() + added)
    gain = np.log1p((1 - smoothing) * counts.data / collection.lengths[counts.row] / (smoothing * share[counts.col]))
    weights = sparse.csr_array((gain, (counts.row, counts.col)), shape=counts.shape)
    scores: Floats = (sparse.csr_array(queries) @ weights.T).toarray()
    return scores
