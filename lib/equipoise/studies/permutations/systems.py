"""Conversational systems that rewrite an utterance with its context and rank by BM25.

An utterance of a conversation is rewritten with what was uttered before it, so its ranking depends on the order of the
conversation. How much of the order a system sees is its *context*:

- ``none``: the utterance alone, or with the first one, which never moves (BM25, DLM, RM3, FU);
- ``previous``: the directly preceding utterance (CU, LP, RM3p);
- ``antecedent``: the nearest earlier utterance that names something (Antecedent);
- ``everything``: the whole chain of earlier rankings (RM3s).

Systems of the first three kinds are ranked once for each pair of utterances, whatever the number of orders
(`context_rankings`); RM3-sequential once for each distinct beginning (`sequential_rankings`).

References
----------
permutations, section 4.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from equipoise.arrays import Booleans
from equipoise.studies.permutations.conversations import Conversation
from equipoise.systems import lexical
from equipoise.systems.lexical import Collection, Sparse

Columns = NDArray[np.intp]

_FEEDBACK_BATCH = 4096  # beginnings ranked at once: bounds the memory


class System(NamedTuple):
    """What a system's ranking depends on, besides the utterance and the first one; its group in Table 2."""

    context: Literal["none", "previous", "antecedent", "everything"]
    family: str


# the systems of section 4.1; Antecedent stands where the paper has coref-SpanBERT (anCB)
SYSTEMS: Mapping[str, System] = MappingProxyType(
    {
        "BM25": System("none", "baselines"),  # the utterance alone
        "DLM": System("none", "baselines"),  # the same, by query likelihood with Dirichlet smoothing
        "RM3": System("none", "baselines"),  # the utterance expanded from its own BM25 ranking
        "FU": System("none", "concatenation-based"),  # with the first one
        "CU": System("previous", "concatenation-based"),  # with the first one and the previous one
        "LP": System("previous", "concatenation-based"),  # with the previous one, weighted less
        "RM3p": System("previous", "PRF-based"),  # with the RM3 expansion of the previous one
        "RM3s": System("everything", "PRF-based"),  # expanded from the ranking of the previous query
        "Antecedent": System("antecedent", "coreference by rule"),  # with the noun phrase that a pronoun refers to
    }
)


def context_of(system: str) -> str:
    """What the ranking of a system depends on."""
    if system not in SYSTEMS:
        raise ValueError(f"no system named {system!r}; there are {', '.join(SYSTEMS)}")
    return SYSTEMS[system].context


def chosen_systems(antecedent: bool, *, depending: bool = False) -> list[str]:
    """The systems, with or without Antecedent; ``depending``: only those that depend on the order."""
    left_out = {*([] if antecedent else ["antecedent"]), *(["none"] if depending else [])}
    return [name for name, system in SYSTEMS.items() if system.context not in left_out]


@dataclass(frozen=True)
class Settings:
    """Parameters of the systems; the defaults are the paper's.

    ``k1``, ``b``: of BM25, for every system but DLM. ``mu``: of the Dirichlet smoothing of DLM. ``current_weight``:
    lambda of LP, the weight of the current utterance. ``documents``, ``terms``: feedback documents and terms of RM3.
    ``original_weight``: of the query itself in RM3; the paper does not give it, 0.6 is the default of its engine.
    ``depth``: how many of the best documents are kept: at least the cut-off of the measure.
    """

    k1: float = 1.2
    b: float = 0.75
    mu: float = 2500.0
    current_weight: float = 0.6
    documents: int = 10
    terms: int = 10
    original_weight: float = 0.6
    depth: int = 3

    def __post_init__(self) -> None:
        for name in ("current_weight", "original_weight"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is between 0 and 1, found {getattr(self, name)}")


PAPER = Settings()


@dataclass(frozen=True, eq=False)
class ByContext:
    """Something of each utterance, alone and for each utterance that its context can come from.

    ``alone`` (shaped (n, ...)): without a context. ``after`` (shaped (n, n, ...)): entry v, u: of utterance u with
    context v. ``provides`` (shaped (n,)): which utterances can be a context: u takes the nearest earlier one. All
    True means the previous utterance.
    """

    alone: NDArray[Any]
    after: NDArray[Any]
    provides: Booleans

    def of(self, orders: ArrayLike) -> NDArray[Any]:
        """What the utterance at each position of each order has, shaped (orders, n, ...)."""
        stacked = np.asarray(orders, dtype=np.intp)
        places = np.where(self.provides[stacked], np.arange(stacked.shape[1]), -1)
        nearest = np.maximum.accumulate(places, axis=1)
        before = np.concatenate([np.full((len(stacked), 1), -1), nearest[:, :-1]], axis=1)
        found = self.after[np.take_along_axis(stacked, np.maximum(before, 0), axis=1), stacked]
        lone = before < 0
        found[lone] = self.alone[stacked[lone]]
        return found


def context_rankings(
    collection: Collection, conversation: Conversation, system: str, settings: Settings = PAPER
) -> ByContext:
    r"""Column numbers of the best documents, by a system whose context is at most one utterance, for all pairs at once.

    With :math:`u_j` the current, :math:`u_1` the first and :math:`u_{j-1}` the previous utterance as term counts, and
    :math:`\bar u` for weights scaled to sum to one, the queries are

    .. math::
        FU: u_j + u_1, \quad CU: u_j + u_1 + u_{j-1}, \quad LP: \lambda u_j + (1 - \lambda) u_{j-1}, \quad
        RM3p: \bar u_j + RM3(u_{j-1})

    The first utterance of a conversation is ranked by BM25 without rewriting. In CU the first utterance enters once
    where it is the previous one too. RM3p adds distributions, because the length of an expansion means nothing.
    """
    context = context_of(system)
    if context == "everything":
        raise ValueError(f"no system {system!r} with a context of one utterance: it sees the whole conversation")
    use, size = settings, len(conversation.texts)
    bags = collection.queries(conversation.texts)

    def expanded() -> Sparse:
        rest: dict[str, float] = {"original_weight": use.original_weight, "k1": use.k1, "b": use.b}
        return lexical.rm3(collection, bags, documents=use.documents, terms=use.terms, **rest)

    def best(queries: Sparse) -> Columns:
        return lexical.top(lexical.bm25(collection, sparse.csr_array(queries), k1=use.k1, b=use.b), use.depth)

    if system == "DLM":
        alone = lexical.top(lexical.query_likelihood(collection, bags, mu=use.mu), use.depth)
    elif system == "FU":
        alone = best(bags + _rows(bags, np.where(np.arange(size) > 0, 0, -1)))
    else:
        alone = best(expanded() if system == "RM3" else bags)
    everyone = np.ones(size, dtype=bool)
    if context == "none":
        return ByContext(alone, np.broadcast_to(alone, (size, *alone.shape)), everyone)
    before, current = (grid.ravel() for grid in np.indices((size, size)))
    now, previous = bags[current], bags[before]
    if system == "CU":
        queries = now + previous + _rows(bags, np.where((before > 0) & (current > 0), 0, -1))
    elif system == "LP":
        queries = use.current_weight * now + (1 - use.current_weight) * previous
    elif system == "RM3p":
        queries = lexical.unit_mass(now) + expanded()[before]
    else:
        if not conversation.antecedents:
            raise ValueError("Antecedent needs the antecedents of the utterances: read_antecedents reads them")
        phrases = [phrase for phrase, _ in conversation.antecedents]
        anaphoric = np.array([is_anaphoric for _, is_anaphoric in conversation.antecedents], dtype=bool)
        queries = now + _rows(collection.queries(phrases), np.where(anaphoric[current], before, -1))
        everyone = ~anaphoric & (np.array(phrases) != "")
    return ByContext(alone, best(queries).reshape(size, size, -1), everyone)


def _rows(bags: Sparse, rows: Columns) -> Sparse:
    """Rows of a sparse matrix by number, empty where the number is negative."""
    keep = sparse.diags_array((rows >= 0).astype(np.float64))
    return sparse.csr_array(keep @ bags[np.maximum(rows, 0)])


def sequential_rankings(
    collection: Collection, conversation: Conversation, orders: ArrayLike, settings: Settings = PAPER
) -> Columns:
    r"""Column numbers of the best documents, by RM3-sequential along orders, shaped (orders, n, depth).

    .. math:: q_1 = \bar u_1, \quad q_j = \lambda \bar u_j + (1 - \lambda)\, p(\cdot | R_{j-1})

    with :math:`R_{j-1}` the BM25 ranking of :math:`q_{j-1}`, so that a ranking depends on everything uttered before it.
    Orders that begin alike share their rankings.
    """
    stacked = np.asarray(orders, dtype=np.intp)
    size = len(conversation.texts)
    if stacked.ndim != 2 or stacked.shape[1] != size:
        raise ValueError(f"orders of {size} utterances are wanted, found shape {stacked.shape}")
    use, depth = settings, min(settings.depth, len(collection.documents))
    bags = lexical.unit_mass(collection.queries(conversation.texts))
    rankings = np.empty((*stacked.shape, depth), dtype=np.intp)
    beginning = np.zeros(len(stacked), dtype=np.intp)
    models = sparse.csr_array((1, bags.shape[1]))
    for position in range(size):
        steps, beginning = np.unique(beginning * size + stacked[:, position], return_inverse=True)
        before, current = np.divmod(steps, size)
        weight = use.original_weight if position else 1.0
        best, following = [], []
        for start in range(0, len(steps), _FEEDBACK_BATCH):
            batch = slice(start, start + _FEEDBACK_BATCH)
            queries = sparse.csr_array(weight * bags[current[batch]] + (1 - weight) * models[before[batch]])
            scores = lexical.bm25(collection, queries, k1=use.k1, b=use.b)
            best.append(lexical.top(scores, depth))
            if position < size - 1:
                following.append(lexical.relevance_model(collection, scores, documents=use.documents, terms=use.terms))
        rankings[:, position] = np.concatenate(best)[beginning]
        models = sparse.vstack(following, format="csr") if following else models
    return rankings
