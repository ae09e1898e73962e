"""Conversational systems under permuted conversations: every system scored on every order that is asked for.

An `Experiment` joins a collection, conversations and judgements. Systems whose context is one utterance are ranked
and scored once for each pair of utterances; any order is then a look-up, and the mean, minimum and maximum over *all*
valid orders are exact. RM3-sequential, which depends on everything uttered before, is scored order by order.

References
----------
permutations, sections 3.1 and 4.3; section 5 for what it leaves to future work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from equipoise.arrays import Floats
from equipoise.measures.orders import ContextScores, nearest_context, score_alternatives
from equipoise.studies.permutations.rewriters import SYSTEMS, ContextRankings, Conversation, Settings
from equipoise.studies.permutations.rewriters import context_rankings as rank_contexts
from equipoise.studies.permutations.rewriters import sequential_rankings as rank_sequences
from equipoise.studies.permutations.structures import Orders
from equipoise.systems.lexical import Collection, bm25, top

RELEVANCE_LEVELS: Mapping[int, int] = MappingProxyType({1: 1, 2: 1, 3: 2, 4: 2})
"""Relevance level of a nugget by CAsT grade: 1 and 2 are partly relevant, 3 and 4 highly."""

_ORDERS_AT_ONCE = 5000


def sampled_orders(conversations: Sequence[Conversation], size: int, seed: int) -> dict[str, Orders]:
    """Draw different orders of each conversation, behind the order of the script.

    ``conversations``: Their scripts must be valid orders. ``size``: how many orders besides the script; all of them
    where there are fewer. ``seed``: Seed; every conversation draws from a stream of its own, so that leaving one
    out does not move the others. Returns By topic, orders shaped (1 + up to size, n); row 0 is the script.

    permutations, section 4.3: 100 different orders, and the original one.
    """
    orders = {}
    for conversation in conversations:
        structure = conversation.structure
        script = np.arange(structure.size)[None, :]
        if not structure.is_valid(script).all():
            raise ValueError(f"topic {conversation.topic}: the order of the script is not valid in its own structure")
        stream = np.random.default_rng([seed, *conversation.topic.encode()])
        drawn = structure.sample(min(size, structure.count - 1), stream, distinct=True, exclude=script)
        orders[conversation.topic] = np.concatenate([script, drawn])
    return orders


def by_order(scores: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Scores of the conversations of `Experiment.answers`, by topic and permutation again.

    ``scores`` (columns run, topic, measure, value): Tidy scores of a nugget table whose topics are named
    topic#permutation. ``measure``: which measure to keep; only rows of a whole conversation, or of one attribute
    set. Returns DataFrame, columns run, topic, permutation, value.
    """
    chosen = scores[scores["measure"] == measure].reset_index(drop=True)
    parts = chosen["topic"].str.extract(r"^(?P<topic>.+)#(?P<permutation>\d+)$")
    if chosen.empty or parts.isna().to_numpy().any():
        raise ValueError(f"scores of {measure} for topics named topic#permutation are wanted")
    parts["permutation"] = parts["permutation"].astype(int)
    return pd.concat([chosen[["run"]], parts, chosen[["value"]]], axis=1)


@dataclass(frozen=True, eq=False)
class Experiment:
    """A collection, conversations and judgements, on which systems are scored under any order.

    ``collection``: what is ranked. ``conversations``: of different topics. ``qrels`` (columns query, document,
    grade): Judgements; every utterance needs some. ``settings``: Parameters of the systems. ``measure``: any
    measure that ir_measures knows; nDCG@3 in the paper. ``depth``: how many documents to rank: at least the cut-off
    of the measure.

    permutations, section 4.3.
    """

    collection: Collection
    conversations: Sequence[Conversation]
    qrels: pd.DataFrame
    settings: Settings = field(default_factory=Settings)
    measure: str = "nDCG@3"
    depth: int = 3
    _known: dict[str, dict[str, tuple[ContextRankings, ContextScores]]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        topics = [conversation.topic for conversation in self.conversations]
        doubled = sorted({topic for topic in topics if topics.count(topic) > 1})
        if doubled:
            raise ValueError(f"topics {', '.join(doubled)} come twice")

    def _contexts(self, system: str) -> dict[str, tuple[ContextRankings, ContextScores]]:
        """Rankings and scores of a system for every pair of utterances, by topic; made once."""
        if system in self._known:
            return self._known[system]
        ranked = [
            rank_contexts(self.collection, c, system, depth=self.depth, settings=self.settings)
            for c in self.conversations
        ]
        queries: list[str] = []
        rankings = []
        for conversation, contexts in zip(self.conversations, ranked, strict=True):
            queries += [*conversation.queries, *conversation.queries * len(conversation.queries)]
            rankings += [contexts.alone, contexts.after.reshape(-1, contexts.after.shape[-1])]
        values = self._score(queries, np.concatenate(rankings))
        made, start = {}, 0
        for conversation, contexts in zip(self.conversations, ranked, strict=True):
            size = len(conversation.queries)
            alone = values[start : start + size]
            after = values[start + size : start + size + size**2].reshape(size, size)
            start += size + size**2
            made[conversation.topic] = (contexts, ContextScores(alone, after, contexts.provides))
        self._known[system] = made
        return made

    def _score(self, queries: Sequence[str], rankings: NDArray[np.intp]) -> Floats:
        return score_alternatives(queries, rankings, self.collection.documents, self.qrels, self.measure)

    def rankings(self, conversation: Conversation, system: str, orders: ArrayLike) -> NDArray[np.intp]:
        """Best documents of a system for the utterance at each position of each order.

        ``conversation``: one of the experiment's. ``system``: A name in `SYSTEMS`. ``orders`` (shaped (orders,
        n)): Valid orders. Returns ndarray of int, shaped (orders, n, depth): Places in
        ``collection.documents``.
        """
        stacked = np.asarray(orders, dtype=np.intp)
        if _context(system) == "everything":
            return rank_sequences(self.collection, conversation, stacked, depth=self.depth, settings=self.settings)
        contexts = self._contexts(system)[conversation.topic][0]
        before = nearest_context(stacked, contexts.provides)
        found = contexts.after[np.maximum(before, 0), stacked]
        return np.where((before < 0)[..., None], contexts.alone[stacked], found)

    def utterance_scores(self, conversation: Conversation, system: str, orders: ArrayLike) -> Floats:
        """Score of a system for the utterance at each position of each order.

        Returns ndarray, shaped (orders, n).
        """
        stacked = np.asarray(orders, dtype=np.intp)
        if _context(system) != "everything":
            return self._contexts(system)[conversation.topic][1].of(stacked)
        parts = []
        queries = np.array(conversation.queries, dtype=object)
        for start in range(0, len(stacked), _ORDERS_AT_ONCE):
            some = stacked[start : start + _ORDERS_AT_ONCE]
            ranked = self.rankings(conversation, system, some)
            values = self._score(queries[some].ravel().tolist(), ranked.reshape(-1, ranked.shape[-1]))
            parts.append(values.reshape(some.shape))
        return np.concatenate(parts)

    def _conversation_scores(self, conversation: Conversation, system: str, orders: ArrayLike) -> Floats:
        """Mean over the utterances, added up in the order of the script, so that equal scores have equal means."""
        values = self.utterance_scores(conversation, system, orders)
        script = np.argsort(np.asarray(orders, dtype=np.intp), axis=1)
        means: Floats = np.take_along_axis(values, script, axis=1).mean(axis=1)
        return means

    def fixed_scores(self, texts: Mapping[str, str]) -> pd.DataFrame:
        """Score BM25 for texts that do not depend on the order, such as utterances resolved by hand.

        ``texts``: Text by query; every utterance needs one. Returns DataFrame, columns query, topic, value.
        """
        queries = [query for conversation in self.conversations for query in conversation.queries]
        topics = [conversation.topic for conversation in self.conversations for _ in conversation.queries]
        missing = [query for query in queries if query not in texts]
        if missing:
            raise ValueError(f"no text for {', '.join(missing)}")
        bags = self.collection.queries([texts[query] for query in queries])
        ranked = top(bm25(self.collection, bags, k1=self.settings.k1, b=self.settings.b), self.depth)
        return pd.DataFrame({"query": queries, "topic": topics, "value": self._score(queries, ranked)})

    def ceiling(self) -> pd.DataFrame:
        """Score that the best ranking of the collection would reach for each utterance.

        It is below 1 where passages with high grades are not in the collection.

        Returns DataFrame, columns query, topic, value.
        """
        queries = [query for conversation in self.conversations for query in conversation.queries]
        topics = [conversation.topic for conversation in self.conversations for _ in conversation.queries]
        here = self.qrels[self.qrels["document"].isin(set(self.collection.documents))]
        grades = here.pivot_table(index="query", columns="document", values="grade", aggfunc="max", fill_value=0)
        held = grades.reindex(index=queries, columns=list(self.collection.documents), fill_value=0)
        ranked = top(held.to_numpy(dtype=np.float64), self.depth)
        return pd.DataFrame({"query": queries, "topic": topics, "value": self._score(queries, ranked)})

    def scores(self, orders: Mapping[str, ArrayLike], systems: Sequence[str] = tuple(SYSTEMS)) -> pd.DataFrame:
        """Mean score of each system on each conversation under each of its orders.

        ``orders``: By topic, orders shaped (orders, n); row 0 is the script (`sampled_orders`). ``systems``:
        names in `SYSTEMS`. Returns DataFrame, columns run, topic, permutation, value: value is the mean of the
        measure over the utterances; permutation is the row of the order.
        """
        parts = []
        for system in systems:
            for conversation in self.conversations:
                values = self._conversation_scores(conversation, system, orders[conversation.topic])
                numbers = np.arange(len(values))
                parts.append(
                    pd.DataFrame({"run": system, "topic": conversation.topic, "permutation": numbers, "value": values})
                )
        return pd.concat(parts, ignore_index=True)

    def answers(
        self,
        orders: Mapping[str, ArrayLike],
        passages: pd.DataFrame,
        systems: Sequence[str] = tuple(SYSTEMS),
        *,
        levels: Mapping[int, int] = RELEVANCE_LEVELS,
    ) -> pd.DataFrame:
        """Conversations in which a system answers every utterance with its best passage, as a nugget table.

        Words are counted over the whole conversation, utterances included. A relevant answer is one nugget: all words
        of the passage, its level after the grade. Any other answer is a turn without a relevant nugget.

        ``orders``: By topic, orders shaped (orders, n). ``passages`` (columns document, text, source): of
        `equipoise.studies.permutations.data.read_passages`. ``systems``: names in `SYSTEMS`. ``levels``: Relevance
        level of a nugget by grade; a grade that is missing, and an unjudged passage, is level 0. Returns DataFrame,
        columns run, topic, turn, start, end, level, entity and SOURCE: A nugget table for
        `equipoise.files.nugget_table`; topic is topic#permutation, entity the passage, SOURCE an attribute set
        made from the column source, whose groups are the sources, sorted.

        gfrc2 defines its measures on such tables. CAsT annotates no groups: the attribute is where a passage is from.
        """
        table = passages.set_index("document").reindex(self.collection.documents)
        if table["text"].isna().any():
            raise ValueError(f"no text for passage {table.index[table['text'].isna()][0]}")
        length = table["text"].str.split().str.len().to_numpy(dtype=np.int64)
        groups = sorted(set(table["source"]))
        shares = np.array([" ".join("1" if group == one else "0" for group in groups) for one in table["source"]])
        grade = self.qrels.set_index(["query", "document"])["grade"]
        grades = grade[grade.isin(list(levels))].map(dict(levels)).to_dict()
        parts = []
        for system in systems:
            for conversation in self.conversations:
                stacked = np.asarray(orders[conversation.topic], dtype=np.intp)
                count, size = stacked.shape
                best = self.rankings(conversation, system, stacked)[..., 0]
                asked = np.array([len(text.split()) for text in conversation.texts])[stacked]
                end = np.cumsum(asked + length[best], axis=1)
                names = np.array(self.collection.documents, dtype=object)[best].ravel()
                queries = np.array(conversation.queries, dtype=object)[stacked].ravel()
                level = np.array([grades.get(pair, 0) for pair in zip(queries, names, strict=True)])
                relevant = level > 0
                topics = [f"{conversation.topic}#{number}" for number in range(count)]
                parts.append(
                    pd.DataFrame(
                        {
                            "run": system,
                            "topic": np.repeat(np.array(topics, dtype=object), size),
                            "turn": np.tile(np.arange(1, size + 1), count).astype(str),
                            "start": np.where(relevant, (end - length[best] + 1).ravel().astype(str), ""),
                            "end": np.where(relevant, end.ravel().astype(str), ""),
                            "level": level.astype(str),
                            "entity": np.where(relevant, names, ""),
                            "SOURCE": np.where(relevant, shares[best.ravel()], ""),
                        }
                    )
                )
        return pd.concat(parts, ignore_index=True)

    def exact(self, systems: Sequence[str] = tuple(SYSTEMS), *, limit: int = 50_000) -> pd.DataFrame:
        """Mean, standard deviation, minimum and maximum of each system over all valid orders of each conversation.

        Where the context is the previous utterance, the mean follows from adjacency probabilities and the extremes from
        dynamic programming: no order is drawn or listed. The other systems are scored on every order, up to a limit.

        ``systems``: names in `SYSTEMS`. ``limit``: the most orders of a conversation to list for systems that
        need it. Returns DataFrame, columns run, topic, orders, mean, sd, minimum, maximum, how: how is
        "adjacency", "enumeration", or "too many orders" (then the values are missing).

        Beyond the paper: the distribution over permutations without sampling them.
        """
        rows = []
        for system in systems:
            context = _context(system)
            for conversation in self.conversations:
                structure, size = conversation.structure, len(conversation.queries)
                known: tuple[float, float, float, float]
                if context in ("none", "previous"):
                    scores = self._contexts(system)[conversation.topic][1]
                    found = structure.score_range(scores.after / size, scores.alone / size)
                    known, how = (found.mean, found.sd, found.minimum, found.maximum), "adjacency"
                elif structure.count <= limit:
                    values = self._conversation_scores(conversation, system, structure.orders(limit))
                    known = (float(values.mean()), float(values.std()), float(values.min()), float(values.max()))
                    how = "enumeration"
                else:
                    known, how = (np.nan, np.nan, np.nan, np.nan), "too many orders"
                rows.append((system, conversation.topic, structure.count, *known, how))
        columns = ["run", "topic", "orders", "mean", "sd", "minimum", "maximum", "how"]
        return pd.DataFrame(rows, columns=columns)


def _context(system: str) -> str:
    if system not in SYSTEMS:
        raise ValueError(f"no system named {system!r}; there are {', '.join(SYSTEMS)}")
    return SYSTEMS[system].context
