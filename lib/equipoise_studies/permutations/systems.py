"""Conversational systems that rewrite an utterance with its context and rank by BM25.

An utterance of a conversation is rewritten with what was uttered before it, so its ranking depends
on the order of the conversation. How much of the order a system sees is its *context*:

- ``none``: the utterance alone, or with the first one, which never moves (BM25, DLM, RM3, FU);
- ``previous``: the directly preceding utterance (CU, LP, RM3p, Rewriter);
- ``antecedent``: the nearest earlier utterance that names something (Antecedent);
- ``everything``: the whole chain of earlier rankings (RM3s).

Systems of the first three kinds are ranked once for each pair of utterances, whatever the number of
orders (`context_rankings`); RM3-sequential once for each distinct beginning
(`sequential_rankings`).

References
----------
permutations, section 4.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from equipoise.arrays import Booleans, Floats
from equipoise.orders.conversations import Conversation
from equipoise_studies.systems import lexical
from equipoise_studies.systems.lexical import Collection

Columns = NDArray[np.intp]


class System(NamedTuple):
    """What a ranking depends on, besides the utterance and the first one; its group in Table 2."""

    context: Literal["none", "previous", "antecedent", "everything"]
    family: str


# The systems of section 4.1; Antecedent stands where the paper has coref-SpanBERT (anCB).
SYSTEMS: Mapping[str, System] = {
    "BM25": System("none", "baselines"),  # the utterance alone
    "DLM": System("none", "baselines"),  # the same, by query likelihood with Dirichlet smoothing
    "RM3": System("none", "baselines"),  # the utterance expanded from its own BM25 ranking
    "FU": System("none", "concatenation-based"),  # with the first one
    "CU": System("previous", "concatenation-based"),  # with the first one and the previous one
    "LP": System("previous", "concatenation-based"),  # with the previous one, weighted less
    "RM3p": System("previous", "PRF-based"),  # with the RM3 expansion of the previous one
    "RM3s": System("everything", "PRF-based"),  # expanded from the ranking of the previous query
    # with the noun phrase that a pronoun refers to
    "Antecedent": System("antecedent", "coreference by rule"),
}

# Beyond the paper: the utterance as a language model rewrites it, told the first one and the
# previous one.
REWRITER = "Rewriter"
_ALL_SYSTEMS: Mapping[str, System] = {**SYSTEMS, REWRITER: System("previous", "language model")}


def context_of(system: str) -> str:
    """What the ranking of a system depends on."""
    if system not in _ALL_SYSTEMS:
        raise ValueError(f"no system named {system!r}; there are {', '.join(_ALL_SYSTEMS)}")
    return _ALL_SYSTEMS[system].context


def chosen_systems(antecedent: bool, *, depending: bool = False) -> list[str]:
    """The systems, with or without Antecedent; ``depending``: only those that see the order."""
    names = []
    for name, system in SYSTEMS.items():
        if system.context == "antecedent" and not antecedent:
            continue
        if system.context == "none" and depending:
            continue
        names.append(name)
    return names


@dataclass(frozen=True)
class Settings:
    """Parameters of the systems; the defaults are the paper's.

    ``variant``: what the paper says of CU, LP and RM3p, or what the authors' public program does
    (`context_rankings`). ``k1``, ``b``: of BM25, for every system but DLM. ``mu``: of the Dirichlet
    smoothing of DLM. ``current_weight``: lambda of LP, the weight of the current utterance, in the
    program of the previous one. ``documents``, ``terms``: feedback documents and terms of RM3.
    ``original_weight``: of the query itself in RM3; the paper does not give it, 0.6 is the default
    of its engine. ``depth``: how many of the best documents are kept: at least the cut-off of the
    measure.
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

    def __post_init__(self) -> None:
        for name in ("current_weight", "original_weight"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is between 0 and 1, found {getattr(self, name)}")
        if self.variant not in ("paper", "program"):
            raise ValueError(f"variant is 'paper' or 'program', found {self.variant!r}")

    def of_the_program(self) -> Settings:
        """The same as the authors' program has it: RM3 takes its engine's three documents there."""
        return replace(self, variant="program", documents=_PROGRAM_DOCUMENTS)


_PROGRAM_DOCUMENTS = 3

PAPER = Settings()


@dataclass(frozen=True, eq=False)
class ByContext:
    """Something of each utterance, for each utterance that can be its context, and without one.

    ``after`` (shaped (n + 1, n, ...)): entry v, u: of utterance u with context v; in the last row,
    without a context. ``provides`` (shaped (n,)): which utterances can be a context: u takes the
    nearest earlier one. All True means the previous utterance.
    """

    after: NDArray[Any]
    provides: Booleans

    def of(self, orders: ArrayLike) -> NDArray[Any]:
        """What the utterance at each position of each order has, shaped (orders, n, ...)."""
        stacked = np.asarray(orders, dtype=np.intp)
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
    settings: Settings = PAPER,
    allowed: Booleans | None = None,
) -> ByContext:
    r"""Best documents of a system whose context is at most one utterance, for all pairs at once.

    With :math:`u_j` the current, :math:`u_1` the first and :math:`u_{j-1}` the previous utterance
    as term counts, and :math:`\bar u` for weights scaled to sum to one, the queries are

    .. math::
        FU: u_j + u_1, \quad CU: u_j + u_1 + u_{j-1}, \quad
        LP: \lambda u_j + (1 - \lambda) u_{j-1}, \quad RM3p: \bar u_j + RM3(u_{j-1})

    The first utterance of a conversation is ranked as it is: a factor common to all weights changes
    no ranking. In CU the first utterance enters once where it is the previous one too. RM3p adds
    distributions, because the length of an expansion means nothing.

    So the paper. The variant "program" is what its authors' public program does: CU has the first
    utterance twice where it is the previous one too; LP gives lambda to the *previous* utterance;
    RM3p mixes the RM3 expansions of both utterances, lambda to that of the previous one.

    ``allowed`` (shaped (n, documents)): documents that may be ranked for each utterance, the others
    come last. Returns column numbers of documents.
    """
    if context_of(system) == "everything":
        raise ValueError(
            f"no system {system!r} with a context of one utterance: it sees the whole conversation"
        )
    size = len(conversation.texts)
    before, current = np.indices((size + 1, size)).reshape(2, -1)
    provides = np.ones(size, dtype=bool)
    if system == "Antecedent":
        queries, provides = _antecedent_queries(collection, conversation, before, current)
    elif system == REWRITER:
        queries = _rewritten_queries(collection, conversation, before, current)
    else:
        bags = collection.queries([*conversation.texts, ""])  # row n is no utterance
        queries = _pair_queries(collection, bags, system, settings, before, current)
    scores = _scored(collection, queries, system, settings)
    best = _best(scores, settings.depth, None if allowed is None else allowed[current])
    return ByContext(best.reshape(size + 1, size, -1), provides)


def script_rankings(
    collection: Collection, texts: Sequence[str], system: str, settings: Settings = PAPER
) -> Columns:
    """Best documents for each utterance, in the order in which they stand alone: (n, depth).

    For long sessions, of which not every pair of utterances can be ranked; not for Antecedent and
    Rewriter, whose records are of single conversations.
    """
    size = len(texts)
    if context_of(system) == "everything":
        return sequential_rankings(collection, texts, [range(size)], settings)[0]
    if system in ("Antecedent", REWRITER):
        raise ValueError(f"{system} has no record of neighbours across conversations")
    current = np.arange(size)
    before = np.where(current > 0, current - 1, size)  # row n is no utterance
    bags = collection.queries([*texts, ""])
    queries = _pair_queries(collection, bags, system, settings, before, current)
    return _best(_scored(collection, queries, system, settings), settings.depth, None)


def _scored(collection: Collection, queries: Any, system: str, settings: Settings) -> Floats:
    if system == "DLM":
        return lexical.query_likelihood(collection, queries, mu=settings.mu)
    return lexical.bm25(collection, queries, k1=settings.k1, b=settings.b)


def _pair_queries(
    collection: Collection,
    bags: Any,
    system: str,
    settings: Settings,
    before: Columns,
    current: Columns,
) -> Any:
    """Queries of a system that combines the utterance with the first and the previous one.

    ``bags``: of the utterances, the last row empty. ``before``, ``current``: of each pair the rows.
    """
    nothing = bags.shape[0] - 1
    of_the_program = settings.variant == "program"
    weight = settings.current_weight
    if of_the_program:
        weight = 1 - weight  # the program weighs the previous utterance

    if system == "FU":
        return bags[current] + bags[np.where(current > 0, 0, nothing)]
    if system == "CU":
        # The first utterance has no context, nor has one without a previous utterance; where the
        # previous one is the first, the paper counts it once.
        adds_first = (current > 0) & (before < nothing)
        if not of_the_program:
            adds_first &= before > 0
        return bags[current] + bags[before] + bags[np.where(adds_first, 0, nothing)]
    if system == "LP":
        return weight * bags[current] + (1 - weight) * bags[before]
    if system in ("RM3", "RM3p"):
        expanded = lexical.rm3(
            collection,
            bags,
            original_weight=settings.original_weight,
            documents=settings.documents,
            terms=settings.terms,
            k1=settings.k1,
            b=settings.b,
        )
        if system == "RM3":
            return expanded[current]
        if of_the_program:
            return weight * expanded[current] + (1 - weight) * expanded[before]
        return lexical.unit_mass(bags[current]) + expanded[before]
    return bags[current]


def _antecedent_queries(
    collection: Collection, conversation: Conversation, before: Columns, current: Columns
) -> tuple[Any, Booleans]:
    """Utterances with a pronoun with the phrase of their context; who can be a context."""
    if not conversation.antecedents:
        raise ValueError(
            "Antecedent needs the antecedents of the utterances: read_antecedents reads them"
        )
    phrases = [phrase for phrase, _ in conversation.antecedents]
    anaphoric = np.array([has_pronoun for _, has_pronoun in conversation.antecedents])
    nothing = len(phrases)
    utterance_bags = collection.queries([*conversation.texts, ""])
    phrase_bags = collection.queries([*phrases, ""])
    added = np.where(anaphoric[current], before, nothing)
    provides = ~anaphoric & (np.array(phrases) != "")
    return utterance_bags[current] + phrase_bags[added], provides


def _rewritten_queries(
    collection: Collection, conversation: Conversation, before: Columns, current: Columns
) -> Any:
    """What the language model wrote; the utterance itself where it was not asked."""
    if not conversation.rewrites:
        raise ValueError(
            f"{REWRITER} needs the rewrites of the utterances: read_rewrites reads them"
        )
    texts = []
    for pair in zip(before.tolist(), current.tolist(), strict=True):
        texts.append(conversation.rewrites.get(pair, conversation.texts[pair[1]]))
    return collection.queries(texts)


def _best(scores: Floats, depth: int, allowed: Booleans | None) -> Columns:
    """Best documents of every query, of those that are allowed."""
    if allowed is not None:
        lowest = scores.min(axis=1, keepdims=True) - 1
        scores = np.where(allowed, scores, lowest)
    return lexical.top(scores, depth)


def sequential_rankings(
    collection: Collection,
    texts: Sequence[str],
    orders: ArrayLike,
    settings: Settings = PAPER,
    allowed: Booleans | None = None,
) -> Columns:
    r"""Best documents by RM3-sequential along orders, column numbers, shaped (orders, n, depth).

    .. math:: q_1 = \bar u_1, \quad q_j = \lambda \bar u_j + (1 - \lambda)\, p(\cdot | R_{j-1})

    with :math:`R_{j-1}` the BM25 ranking of :math:`q_{j-1}`, so that a ranking depends on
    everything uttered before it. Orders that begin alike share their rankings. ``texts``: the
    utterances of a conversation. ``allowed``: of `context_rankings`.
    """
    stacked = np.asarray(orders, dtype=np.intp)
    size = len(texts)
    if stacked.ndim != 2 or stacked.shape[1] != size:
        raise ValueError(f"orders of {size} utterances are wanted, found shape {stacked.shape}")
    bags = lexical.unit_mass(collection.queries(texts))
    rankings = []
    # Orders that begin alike have the same number, and one row of feedback models.
    beginning = np.zeros(len(stacked), dtype=np.intp)
    models = sparse.csr_array((1, bags.shape[1]))
    for position in range(size):
        steps, beginning = np.unique(beginning * size + stacked[:, position], return_inverse=True)
        before, current = np.divmod(steps, size)
        weight = 1.0 if position == 0 else settings.original_weight
        queries = weight * bags[current] + (1 - weight) * models[before]
        scores = lexical.bm25(collection, queries, k1=settings.k1, b=settings.b)
        best = _best(scores, settings.depth, None if allowed is None else allowed[current])
        rankings.append(best[beginning])
        if position < size - 1:
            models = lexical.relevance_model(
                collection, scores, documents=settings.documents, terms=settings.terms
            )
    return np.stack(rankings, axis=1)
