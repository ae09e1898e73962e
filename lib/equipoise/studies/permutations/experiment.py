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

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from equipoise.arrays import Floats
from equipoise.studies.permutations.conversations import Conversation
from equipoise.studies.permutations.scoring import score_alternatives
from equipoise.studies.permutations.systems import (
    PAPER,
    SYSTEMS,
    ByContext,
    Columns,
    Settings,
    context_of,
    context_rankings,
    sequential_rankings,
)
from equipoise.systems.lexical import Collection, bm25, top

# relevance level of a nugget by CAsT grade: 1 and 2 are partly relevant, 3 and 4 highly
_RELEVANCE_LEVELS = {1: 1, 2: 1, 3: 2, 4: 2}
_ORDERS_AT_ONCE = 5000


@dataclass(frozen=True, eq=False)
class Experiment:
    """A collection, conversations and judgements, on which systems are scored under any order.

    ``qrels`` (columns query, document, grade): every utterance needs some. ``measure``: any that ir_measures knows;
    nDCG@3 in the paper.
    """

    collection: Collection
    conversations: Sequence[Conversation]
    qrels: pd.DataFrame
    settings: Settings = PAPER
    measure: str = "nDCG@3"
    _known: dict[tuple[str, str], tuple[ByContext, ByContext]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        topics = [conversation.topic for conversation in self.conversations]
        doubled = sorted({topic for topic in topics if topics.count(topic) > 1})
        if doubled:
            raise ValueError(f"topics {', '.join(doubled)} come twice")

    def _contexts(self, conversation: Conversation, system: str) -> tuple[ByContext, ByContext]:
        """Rankings and scores of a system for every pair of utterances, made once."""
        if (system, conversation.topic) not in self._known:
            best = context_rankings(self.collection, conversation, system, self.settings)
            values = self._score(np.array(conversation.queries), np.concatenate([best.alone[None], best.after]))
            scores = ByContext(values[0], values[1:], best.provides)
            self._known[system, conversation.topic] = best, scores
        return self._known[system, conversation.topic]

    def _score(self, queries: NDArray[np.object_], rankings: Columns) -> Floats:
        """Scores of rankings, shaped (..., depth), of the queries that broadcast to the leading axes."""
        asked = np.broadcast_to(queries, rankings.shape[:-1]).ravel().tolist()
        stacked = rankings.reshape(-1, rankings.shape[-1])
        values = score_alternatives(asked, stacked, self.collection.documents, self.qrels, self.measure)
        return values.reshape(rankings.shape[:-1])

    def rankings(self, conversation: Conversation, system: str, orders: ArrayLike) -> Columns:
        """Places, in ``collection.documents``, of the best documents of a system, shaped (orders, n, depth)."""
        if context_of(system) != "everything":
            return self._contexts(conversation, system)[0].of(orders)
        return sequential_rankings(self.collection, conversation, orders, self.settings)

    def utterance_scores(self, conversation: Conversation, system: str, orders: ArrayLike) -> Floats:
        """Score of a system for the utterance at each position of each order, shaped (orders, n)."""
        if context_of(system) != "everything":
            return self._contexts(conversation, system)[1].of(orders)
        stacked, queries = np.asarray(orders, dtype=np.intp), np.array(conversation.queries, dtype=object)
        parts = [stacked[start : start + _ORDERS_AT_ONCE] for start in range(0, len(stacked), _ORDERS_AT_ONCE)]
        return np.concatenate([self._score(queries[some], self.rankings(conversation, system, some)) for some in parts])

    def _conversation_scores(self, conversation: Conversation, system: str, orders: ArrayLike) -> Floats:
        """Mean over the utterances, added up in the order of the script, so that equal scores have equal means."""
        values = self.utterance_scores(conversation, system, orders)
        script = np.argsort(np.asarray(orders, dtype=np.intp), axis=1)
        means: Floats = np.take_along_axis(values, script, axis=1).mean(axis=1)
        return means

    def _utterances(self) -> pd.DataFrame:
        pairs = [(query, one.topic) for one in self.conversations for query in one.queries]
        return pd.DataFrame(pairs, columns=["query", "topic"])

    def fixed_scores(self, texts: Mapping[str, str]) -> pd.DataFrame:
        """Score of BM25 for texts by query that do not depend on the order, such as utterances resolved by hand.

        Returns columns query, topic, value.
        """
        table = self._utterances()
        missing = [query for query in table["query"] if query not in texts]
        if missing:
            raise ValueError(f"no text for {', '.join(missing)}")
        bags = self.collection.queries([texts[query] for query in table["query"]])
        ranked = top(bm25(self.collection, bags, k1=self.settings.k1, b=self.settings.b), self.settings.depth)
        return table.assign(value=self._score(table["query"].to_numpy(), ranked))

    def ceiling(self) -> pd.DataFrame:
        """Score that the best ranking of the collection would reach for each utterance: columns query, topic, value.

        It is below 1 where passages with high grades are not in the collection.
        """
        table, documents = self._utterances(), list(self.collection.documents)
        here = self.qrels[self.qrels["document"].isin(documents)]
        grades = here.pivot_table(index="query", columns="document", values="grade", aggfunc="max")
        held = grades.reindex(index=table["query"], columns=documents).fillna(0).to_numpy()
        return table.assign(value=self._score(table["query"].to_numpy(), top(held, self.settings.depth)))

    def scores(self, orders: Mapping[str, ArrayLike], systems: Sequence[str] = tuple(SYSTEMS)) -> pd.DataFrame:
        """Mean score of each system on each conversation under each of its orders.

        ``orders``: by topic, shaped (orders, n); row 0 is the script (`sampled_orders`). Returns columns run, topic,
        permutation, value; permutation is the row of the order.
        """
        parts = {
            (system, one.topic): pd.Series(self._conversation_scores(one, system, orders[one.topic]))
            for system in systems
            for one in self.conversations
        }
        return pd.concat(parts, names=["run", "topic", "permutation"]).rename("value").reset_index()

    def answers(
        self, orders: Mapping[str, ArrayLike], passages: pd.DataFrame, systems: Sequence[str] = tuple(SYSTEMS)
    ) -> pd.DataFrame:
        """Conversations in which a system answers every utterance with its best passage, as a nugget table.

        Words are counted over the whole conversation, utterances included. A relevant answer is one nugget: all words
        of the passage, its level after the grade. Any other answer is a turn without a relevant nugget.

        ``passages``: of `read_passages`. An unjudged passage has level 0. Returns a frame for
        `equipoise.nuggets.nugget_table`: topic is topic#permutation, entity the passage, SOURCE an attribute set whose
        groups are the sources, sorted.

        gfrc2 defines its measures on such tables. CAsT annotates no groups: the attribute is where a passage is from.
        """
        table = passages.set_index("document").reindex(self.collection.documents)
        if table["text"].isna().any():
            raise ValueError(f"no text for passage {table.index[table['text'].isna()][0]}")
        length = table["text"].str.split().str.len().to_numpy(dtype=np.int64)
        shares = pd.get_dummies(table["source"]).astype(int).astype(str).agg(" ".join, axis=1).to_numpy()
        names = np.array(self.collection.documents, dtype=object)
        level = self.qrels.set_index(["query", "document"])["grade"].map(_RELEVANCE_LEVELS)
        parts = []
        for system in systems:
            for conversation in self.conversations:
                stacked = np.asarray(orders[conversation.topic], dtype=np.intp)
                count, size = stacked.shape
                best = self.rankings(conversation, system, stacked)[..., 0]
                asked = np.array([len(text.split()) for text in conversation.texts])[stacked]
                end = np.cumsum(asked + length[best], axis=1)
                part = {
                    "run": system,
                    "topic": np.repeat([f"{conversation.topic}#{number}" for number in range(count)], size),
                    "turn": np.tile(np.arange(1, size + 1), count),
                    "start": (end - length[best] + 1).ravel(),
                    "end": end.ravel(),
                    "query": np.array(conversation.queries, dtype=object)[stacked].ravel(),
                    "entity": names[best].ravel(),
                    "SOURCE": shares[best].ravel(),
                }
                parts.append(pd.DataFrame(part))
        table = pd.concat(parts, ignore_index=True)
        places = pd.MultiIndex.from_frame(table[["query", "entity"]])
        table["level"] = level.reindex(places).fillna(0).to_numpy(dtype=np.int64)
        table = table.astype(str)
        table.loc[table["level"] == "0", ["start", "end", "entity", "SOURCE"]] = ""
        return table[["run", "topic", "turn", "start", "end", "level", "entity", "SOURCE"]]

    def exact(self, systems: Sequence[str] = tuple(SYSTEMS), *, limit: int = 50_000) -> pd.DataFrame:
        """Mean, standard deviation, minimum and maximum of each system over all valid orders of each conversation.

        Where the context is the previous utterance, the mean follows from adjacency probabilities and the extremes from
        dynamic programming: no order is drawn or listed. The other systems are scored on every order, up to a limit.

        Returns columns run, topic, orders, mean, sd, minimum, maximum, how: how is "adjacency", "enumeration", or
        "too many orders" (then the values are missing).

        Beyond the paper: the distribution over permutations without sampling them.
        """
        rows: list[tuple[object, ...]] = []
        for system in systems:
            for conversation in self.conversations:
                structure, size = conversation.structure, len(conversation.queries)
                key = (system, conversation.topic, structure.count)
                if context_of(system) in ("none", "previous"):
                    scores = self._contexts(conversation, system)[1]
                    found = structure.score_range(scores.after / size, scores.alone / size)
                    rows.append((*key, found.mean, found.sd, found.minimum, found.maximum, "adjacency"))
                elif structure.count <= limit:
                    values = self._conversation_scores(conversation, system, structure.orders(limit))
                    rows.append((*key, values.mean(), values.std(), values.min(), values.max(), "enumeration"))
                else:
                    rows.append((*key, *[np.nan] * 4, "too many orders"))
        columns = ["run", "topic", "orders", "mean", "sd", "minimum", "maximum", "how"]
        return pd.DataFrame(rows, columns=columns)
