"""Conversational systems that rewrite an utterance with its context and rank passages.

An utterance is rewritten with earlier utterances of its conversation, so its ranking depends on the
permutation. The *context* of a system is the part of the permutation that it uses:

- ``none``: the utterance alone, or with the first one, which never moves (BM25, DLM, RM3, FU);
- ``previous``: the directly preceding utterance (CU, LP, RM3p, Rewriter);
- ``antecedent``: the nearest earlier utterance that names something (Antecedent);
- ``everything``: the whole chain of earlier rankings (RM3s).

Systems of the first three kinds are ranked once for each pair of utterances (`context_rankings`),
RM3s once for each distinct beginning of a permutation (`sequential_rankings`).

References
----------
permutations, section 4.1. Robertson and Zaragoza (2009), The Probabilistic Relevance Framework:
BM25 and Beyond. Zhai and Lafferty (2001) for the smoothing. Lavrenko and Croft (2001), Abdul-Jaleel
et al. (2004) for RM3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from equipoise.arrays import Booleans, Floats
from equipoise.permutations.structures import Structure

Columns = NDArray[np.intp]  # numbers of documents in the collection
Sparse = Any  # scipy.sparse.csr_array of float64: SciPy ships no types


class System(NamedTuple):
    """The context of a ranking, besides the utterance and the first one; its group in Table 2."""

    context: Literal["none", "previous", "antecedent", "everything"]
    family: str


SYSTEMS: Mapping[str, System] = {
    "BM25": System("none", "baselines"),  # the utterance alone
    "DLM": System("none", "baselines"),  # the same, by query likelihood with Dirichlet smoothing
    "RM3": System("none", "baselines"),  # the utterance expanded from its own BM25 ranking
    "FU": System("none", "concatenation-based"),  # with the first one
    "CU": System("previous", "concatenation-based"),  # with the first one and the previous one
    "LP": System("previous", "concatenation-based"),  # with the previous one, weighted less
    "RM3p": System("previous", "PRF-based"),  # with the RM3 expansion of the previous one
    "RM3s": System("everything", "PRF-based"),  # expanded from the ranking of the previous query
    # our substitute for coref-SpanBERT (anCB): with the noun phrase that a pronoun refers to
    "Antecedent": System("antecedent", "coreference by rule"),
    # beyond the paper: a language model rewrites the utterance, given the first and previous ones
    "Rewriter": System("previous", "language model"),
}


@dataclass(frozen=True)
class Settings:
    """Parameters of the systems; the defaults are the paper's.

    ``variant``: CU, LP and RM3p as in the paper, or as in the authors' public program
    (`context_rankings`). ``k1``, ``b``: of BM25, for every system except DLM. ``mu``: of the
    Dirichlet smoothing of DLM. ``current_weight``: lambda of LP, the weight of the current
    utterance, in the program of the previous one. ``documents``, ``terms``: feedback documents and
    terms of RM3. ``original_weight``: of the query itself in RM3; the paper does not give it, 0.6
    is the default of its engine. ``depth``: ranks that are kept, the cut-off of the measure.
    """

    variant: Literal["paper", "program"] = "paper"
    k1: float = 1.2
    b: float = 0.75
    mu: float = 2500.0
    current_weight: float = 0.6
    documents: int = 10
    terms: int = 10
    original_weight: float = 0.6
    depth: int = 3


@dataclass(frozen=True, eq=False)
class Conversation:
    """A scripted conversation in its original order, with its valid permutations.

    ``texts``: terms with blanks between them. ``phrases``: of each utterance the phrase that a
    later pronoun could refer to, "" for none. ``anaphoric``: whether it has such a pronoun itself.
    ``rewrites``: what the language model makes of an utterance, by the previous and the current
    one.
    """

    topic: str
    queries: tuple[str, ...]
    texts: tuple[str, ...]
    structure: Structure
    phrases: tuple[str, ...] = ()
    anaphoric: tuple[bool, ...] = ()
    rewrites: Mapping[tuple[int, int], str] = field(default_factory=dict)


# --- ranking functions ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Collection:
    """Documents as term counts, shaped (documents, terms), sorted by id.

    Queries are rows of a sparse matrix over the same terms, with any non-negative weights.
    """

    documents: tuple[str, ...]
    counts: Sparse
    vectorizer: Any

    @classmethod
    def from_texts(cls, texts: Mapping[str, str]) -> Collection:
        """Count the terms of documents, given by id as terms with blanks between them."""
        documents = tuple(sorted(texts))
        vectorizer = CountVectorizer(analyzer=str.split, dtype=np.float64)
        counts = vectorizer.fit_transform([texts[name] for name in documents])
        return cls(documents, sparse.csr_array(counts), vectorizer)

    @property
    def lengths(self) -> Floats:
        """Number of terms of each document, shaped (documents,)."""
        return np.asarray(self.counts.sum(axis=1), dtype=np.float64)

    def queries(self, texts: Sequence[str]) -> Sparse:
        """Count query terms, shaped (queries, terms), without terms that no document has."""
        return sparse.csr_array(self.vectorizer.transform(texts))


def bm25(collection: Collection, queries: Sparse, *, k1: float = 1.2, b: float = 0.75) -> Floats:
    r"""Compute BM25 scores of all documents for many queries, shaped (queries, documents).

    .. math::
        s(q, d) = \sum_t q_t\, idf_t \frac{tf_{td} (k_1 + 1)}
        {tf_{td} + k_1 (1 - b + b\, |d| / \overline{|d|})}

    The idf is log(1 + (N - n + 0.5) / (n + 0.5)), as in Lucene, never negative. The score is linear
    in the query's weights.

    permutations, section 4.1 (k1 = 1.2, b = 0.75).
    """
    counts, lengths = collection.counts.tocoo(), collection.lengths
    n_documents = np.bincount(counts.col, minlength=counts.shape[1])
    idf = np.log1p((len(lengths) - n_documents + 0.5) / (n_documents + 0.5))
    norm = k1 * (1 - b + b * lengths / lengths.mean())
    values = idf[counts.col] * counts.data * (k1 + 1) / (counts.data + norm[counts.row])
    return _product(queries, counts, values)


def query_likelihood(collection: Collection, queries: Sparse, *, mu: float = 2500.0) -> Floats:
    r"""Compute the log-likelihood of queries under Dirichlet-smoothed document models.

    .. math::
        s(q, d) = \sum_t q_t \log\frac{tf_{td} + \mu\, p(t|C)}{|d| + \mu} - \sum_t q_t \log p(t|C)

    p(t|C) is the share of t among all terms of the collection. Returns natural logarithms, shaped
    (queries, documents); larger is better.

    permutations, section 4.1 (mu = 2500); Zhai and Lafferty (2001).
    """
    counts = collection.counts.tocoo()
    share = np.asarray(collection.counts.sum(axis=0)) / collection.counts.sum()
    scores = _product(queries, counts, np.log1p(counts.data / (mu * share[counts.col])))
    mass = np.asarray(queries.sum(axis=1), dtype=np.float64)
    return scores + np.outer(mass, np.log(mu / (collection.lengths + mu)))


def _product(queries: Sparse, counts: Any, values: Floats) -> Floats:
    """Multiply queries with documents whose terms have these values in place of the counts."""
    weights = sparse.csr_array((values, (counts.row, counts.col)), shape=counts.shape)
    return np.asarray((sparse.csr_array(queries) @ weights.T).toarray())


def top(scores: Floats, k: int) -> Columns:
    """Return the top k documents of every query; equal scores by column (ids, ascending).

    ``scores`` (shaped (queries, documents)). Returns shape (queries, min(k, documents)).

    Scores that differ by rounding only (relative 1e-12) count as equal, so that the order in which
    a sum was computed cannot change a ranking.

    >>> top(np.array([[0.1, 0.5, 0.5]]), 2)
    array([[1, 2]])
    """
    size = scores.shape[1]
    k = min(k, size)
    # Scores in whole steps of 1e-12 of the power of ten above the largest of the query.
    largest = np.abs(scores).max(initial=0.0, axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        digits = 11 - np.floor(np.log10(largest))
    steps = np.rint(scores * 10.0 ** np.where(np.isfinite(digits), digits, 0.0))
    # All different: ties are broken by column.
    keys = -steps.astype(np.int64) * size + np.arange(size)
    best = np.argpartition(keys, k - 1, axis=1)[:, :k]
    order = np.argsort(np.take_along_axis(keys, best, axis=1), axis=1)
    return np.take_along_axis(best, order, axis=1)


def unit_mass(queries: Sparse) -> Sparse:
    """Scale queries so that the weights of each sum to one; empty queries stay empty."""
    mass = np.asarray(queries.sum(axis=1), dtype=np.float64)
    return sparse.csr_array(sparse.diags_array(1 / np.where(mass > 0, mass, 1.0)) @ queries)


def relevance_model(
    collection: Collection, scores: Floats, *, documents: int = 10, terms: int = 10
) -> Sparse:
    r"""Estimate relevance models: the most probable terms of the top documents.

    .. math:: p(t|R) \propto \sum_{d \in top} \frac{s(q, d)}{\sum_{d'} s(q, d')} \frac{tf_{td}}{|d|}

    ``scores`` (shaped (queries, documents)): of a first stage; documents with a score of 0 or less
    are not feedback. Equal probabilities of terms in alphabetical order. Returns weights, shaped
    (queries, terms), that sum to one; empty where no document scores above 0.

    permutations, section 4.1 (10 terms of 10 documents); Lavrenko and Croft (2001), RM1, with
    documents weighted by their share of the first-stage score.
    """
    best = top(scores, documents)
    weight = np.maximum(np.take_along_axis(scores, best, axis=1), 0.0)
    rows = np.repeat(np.arange(len(scores)), best.shape[1])
    feedback = sparse.csr_array((weight.ravel(), (rows, best.ravel())), shape=scores.shape)
    model = (unit_mass(feedback) @ unit_mass(collection.counts)).tocsr()
    model.sum_duplicates()
    model.eliminate_zeros()
    row = np.repeat(np.arange(model.shape[0]), np.diff(model.indptr))
    # By query, then by falling probability, rounded so that sums in another order tie as well.
    order = np.lexsort((model.indices, -np.round(model.data, 12), row))
    rank = np.arange(len(order)) - model.indptr[row]
    best_terms = np.sort(order[rank < terms])
    coordinates = (row[best_terms], model.indices[best_terms])
    return unit_mass(sparse.csr_array((model.data[best_terms], coordinates), shape=model.shape))


def rm3(collection: Collection, queries: Sparse, settings: Settings) -> Sparse:
    r"""Expand queries by RM3: the original and the relevance model of its BM25 ranking.

    .. math:: q' = \lambda\, q / |q| + (1 - \lambda)\, p(\cdot | R)

    permutations, section 4.1; Abdul-Jaleel et al. (2004).
    """
    scores = bm25(collection, queries, k1=settings.k1, b=settings.b)
    model = relevance_model(collection, scores, documents=settings.documents, terms=settings.terms)
    weight = settings.original_weight
    return sparse.csr_array(weight * unit_mass(queries) + (1 - weight) * model)


# --- rankings in context --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ByContext:
    """A value of each utterance by the utterance that is its context, and without a context.

    ``after`` (shaped (n + 1, n, ...)): entry v, u: of utterance u with context v; in the last row,
    without a context. ``provides`` (shaped (n,)): which utterances can be a context: u takes the
    nearest earlier one. All True means the previous utterance.
    """

    after: NDArray[Any]
    provides: Booleans

    def along(self, permutations: ArrayLike) -> NDArray[Any]:
        """Return the value of the utterance at each position, shaped (permutations, n, ...)."""
        stacked = np.asarray(permutations, dtype=np.intp)
        positions = np.arange(stacked.shape[1])
        # Of each position the last one up to it whose utterance provides a context, -1 for none;
        # moved by one, as an utterance is no context of itself.
        providing = np.where(self.provides[stacked], positions, -1)
        nearest = np.roll(np.maximum.accumulate(providing, axis=1), 1, axis=1)
        nearest[:, 0] = -1
        before = np.where(nearest < 0, -1, np.take_along_axis(stacked, nearest, axis=1))
        return self.after[before, stacked]


def context_rankings(
    collection: Collection,
    conversation: Conversation,
    system: str,
    settings: Settings,
    allowed: Booleans | None = None,
) -> ByContext:
    r"""Rank with a system whose context is at most one utterance, for all pairs at once.

    With :math:`u_j` the current, :math:`u_1` the first and :math:`u_{j-1}` the previous utterance
    as term counts, and :math:`\bar u` for weights scaled to sum to one, the queries are

    .. math::
        FU: u_j + u_1, \quad CU: u_j + u_1 + u_{j-1}, \quad
        LP: \lambda u_j + (1 - \lambda) u_{j-1}, \quad RM3p: \bar u_j + RM3(u_{j-1})

    The first utterance of a conversation is ranked unchanged. In CU the first utterance enters once
    where it is also the previous one. RM3p adds distributions, because the length of an expansion
    means nothing.

    These are the paper's definitions. In the variant "program" (the authors' public program), CU
    has the first utterance twice where it is also the previous one, and LP gives lambda to the
    *previous* utterance. RM3p mixes the RM3 expansions of both utterances, lambda to the previous.

    ``allowed`` (shaped (n, documents)): documents that may be ranked for each utterance; the others
    come last.
    """
    size = len(conversation.texts)
    before, current = np.indices((size + 1, size)).reshape(2, -1)  # before == size: no context
    provides = np.ones(size, dtype=bool)
    if system == "Antecedent":
        anaphoric = np.array(conversation.anaphoric)
        provides = ~anaphoric & (np.array(conversation.phrases) != "")
        bags = collection.queries(conversation.texts)
        phrases = collection.queries([*conversation.phrases, ""])
        queries = bags[current] + phrases[np.where(anaphoric[current], before, size)]
    elif system == "Rewriter":
        texts = []
        for v, u in zip(before.tolist(), current.tolist(), strict=True):
            # Pairs that never meet were not rewritten.
            texts.append(conversation.rewrites.get((v, u), conversation.texts[u]))
        queries = collection.queries(texts)
    else:
        bags = collection.queries([*conversation.texts, ""])
        queries = _pair_queries(collection, bags, system, settings, before, current)
    if system == "DLM":
        scores = query_likelihood(collection, queries, mu=settings.mu)
    else:
        scores = bm25(collection, queries, k1=settings.k1, b=settings.b)
    best = _best(scores, settings.depth, None if allowed is None else allowed[current])
    return ByContext(best.reshape(size + 1, size, -1), provides)


def _pair_queries(
    collection: Collection,
    bags: Sparse,
    system: str,
    settings: Settings,
    before: Columns,
    current: Columns,
) -> Sparse:
    """Make the queries of a system from the utterance, the first and the previous one.

    ``bags``: utterances, the last row empty. ``before``, ``current``: rows of each pair.
    """
    nothing = bags.shape[0] - 1
    as_program = settings.variant == "program"
    weight = settings.current_weight
    if as_program:
        weight = 1 - weight  # the program weighs the previous utterance

    if system == "FU":
        return bags[current] + bags[np.where(current > 0, 0, nothing)]
    if system == "CU":
        # The first utterance has no context, nor has one without a previous utterance; where the
        # previous one is the first, the paper counts it once.
        adds_first = (current > 0) & (before < nothing)
        if not as_program:
            adds_first &= before > 0
        return bags[current] + bags[before] + bags[np.where(adds_first, 0, nothing)]
    if system == "LP":
        return weight * bags[current] + (1 - weight) * bags[before]
    if system == "RM3":
        return rm3(collection, bags, settings)[current]
    if system == "RM3p":
        expanded = rm3(collection, bags, settings)
        if as_program:
            return weight * expanded[current] + (1 - weight) * expanded[before]
        return unit_mass(bags[current]) + expanded[before]
    return bags[current]


def _best(scores: Floats, depth: int, allowed: Booleans | None) -> Columns:
    """Return the top documents of every query, of those that are allowed."""
    if allowed is not None:
        lowest = scores.min(axis=1, keepdims=True) - 1
        scores = np.where(allowed, scores, lowest)
    return top(scores, depth)


def sequential_rankings(
    collection: Collection,
    conversation: Conversation,
    permutations: ArrayLike,
    settings: Settings,
    allowed: Booleans | None = None,
) -> Columns:
    r"""Rank with RM3-sequential, shaped (permutations, n, depth).

    .. math:: q_1 = \bar u_1, \quad q_j = \lambda \bar u_j + (1 - \lambda)\, p(\cdot | R_{j-1})

    with :math:`R_{j-1}` the BM25 ranking of :math:`q_{j-1}`, so that a ranking depends on
    everything uttered before it. Permutations that begin with the same utterances share their
    rankings. ``allowed``: of `context_rankings`.
    """
    stacked = np.asarray(permutations, dtype=np.intp)
    size = stacked.shape[1]
    bags = unit_mass(collection.queries(conversation.texts))
    rankings = []
    # Permutations with the same beginning have the same number, and one row of feedback models.
    beginning = np.zeros(len(stacked), dtype=np.intp)
    models = sparse.csr_array((1, bags.shape[1]))
    for position in range(size):
        steps, beginning = np.unique(beginning * size + stacked[:, position], return_inverse=True)
        before, current = np.divmod(steps, size)
        weight = 1.0 if position == 0 else settings.original_weight
        queries = weight * bags[current] + (1 - weight) * models[before]
        scores = bm25(collection, queries, k1=settings.k1, b=settings.b)
        best = _best(scores, settings.depth, None if allowed is None else allowed[current])
        rankings.append(best[beginning])
        if position < size - 1:
            models = relevance_model(
                collection, scores, documents=settings.documents, terms=settings.terms
            )
    return np.stack(rankings, axis=1)
