"""Conversational systems under permuted conversations: each scored on every order asked for.

An `Experiment` joins a collection, conversations and judgements. Systems whose context is one
utterance are ranked and scored once for each pair of utterances; any order is then a look-up, and
the mean, minimum and maximum over *all* valid orders are exact. RM3-sequential, which depends on
everything uttered before, is scored order by order.

References
----------
permutations, sections 3.1 and 4.3; section 5 for what it leaves to future work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from equipoise.arrays import Booleans, Floats
from equipoise.measures.effectiveness import effectiveness
from equipoise.orders.conversations import Conversation
from equipoise_studies.permutations.scoring import (
    grades,
    optimistic,
    score_alternatives,
)
from equipoise_studies.permutations.systems import (
    PAPER,
    SYSTEMS,
    ByContext,
    Columns,
    Settings,
    context_of,
    context_rankings,
    script_rankings,
    sequential_rankings,
)
from equipoise_studies.systems.lexical import Collection, bm25, top

# Relevance level of a nugget by CAsT grade: 1 and 2 are partly relevant, 3 and 4 highly.
_RELEVANCE_LEVELS = {1: 1, 2: 1, 3: 2, 4: 2}
_ORDERS_AT_ONCE = 5000  # bounds the memory


@dataclass(frozen=True, eq=False)
class Experiment:
    """A collection, conversations and judgements, on which systems are scored under any order.

    ``qrels`` (columns query, document, grade): every utterance needs some. ``measure``: any that
    ir_measures knows; nDCG@3 in the paper. ``unjudged``: what becomes of documents without a
    judgement: "not relevant", as in the paper; "left out" of the rankings (condensed lists); or
    "relevant", each of the highest grade, an upper bound of nDCG. ``exhaustive``: the most orders
    of a conversation to score one by one where no formula helps.
    """

    collection: Collection
    conversations: Sequence[Conversation]
    qrels: pd.DataFrame
    settings: Settings = PAPER
    measure: str = "nDCG@3"
    unjudged: Literal["not relevant", "left out", "relevant"] = "not relevant"
    exhaustive: int = 50_000
    # by system and topic: rankings and scores by context, and scores of every order
    _by_context: dict[tuple[str, str], tuple[ByContext, ByContext]] = field(
        default_factory=dict, init=False, repr=False
    )
    _of_every_order: dict[tuple[str, str], Floats] = field(
        default_factory=dict, init=False, repr=False
    )

    def __post_init__(self) -> None:
        topics = [conversation.topic for conversation in self.conversations]
        repeated = sorted({topic for topic in topics if topics.count(topic) > 1})
        if repeated:
            raise ValueError(f"topics {', '.join(repeated)} come twice")

    def _contexts(self, conversation: Conversation, system: str) -> tuple[ByContext, ByContext]:
        """Rankings and scores of a system for every pair of utterances, made once."""
        key = system, conversation.topic
        if key not in self._by_context:
            allowed = self._allowed(conversation)
            best = context_rankings(self.collection, conversation, system, self.settings, allowed)
            scores = self._score(np.array(conversation.queries), best.after)
            self._by_context[key] = best, ByContext(scores, best.provides)
        return self._by_context[key]

    def _allowed(self, conversation: Conversation) -> Booleans | None:
        """Documents that may be ranked for each utterance: the judged, if others are left out."""
        if self.unjudged != "left out":
            return None
        return grades(conversation.queries, self.collection.documents, self.qrels) >= 0

    def _score(self, queries: NDArray[np.object_], rankings: Columns) -> Floats:
        """Scores of rankings, shaped (..., depth); queries broadcast to the leading axes."""
        query_of_ranking = np.broadcast_to(queries, rankings.shape[:-1]).ravel().tolist()
        stacked = rankings.reshape(-1, rankings.shape[-1])
        score = optimistic if self.unjudged == "relevant" else score_alternatives
        values = score(
            query_of_ranking, stacked, self.collection.documents, self.qrels, self.measure
        )
        return values.reshape(rankings.shape[:-1])

    def rankings(self, conversation: Conversation, system: str, orders: ArrayLike) -> Columns:
        """Places in ``collection.documents`` of the best documents, shaped (orders, n, depth)."""
        if context_of(system) != "everything":
            best, _ = self._contexts(conversation, system)
            return best.of(orders)
        allowed = self._allowed(conversation)
        texts = conversation.texts
        return sequential_rankings(self.collection, texts, orders, self.settings, allowed)

    def utterance_scores(
        self, conversation: Conversation, system: str, orders: ArrayLike
    ) -> Floats:
        """Score for the utterance at each position of each order, shaped (orders, n)."""
        if context_of(system) != "everything":
            _, scores = self._contexts(conversation, system)
            return scores.of(orders)
        stacked = np.asarray(orders, dtype=np.intp)
        queries = np.array(conversation.queries)
        parts = []
        for start in range(0, len(stacked), _ORDERS_AT_ONCE):
            part = stacked[start : start + _ORDERS_AT_ONCE]
            best = self.rankings(conversation, system, part)
            parts.append(self._score(queries[part], best))
        return np.concatenate(parts)

    def script_scores(self, queries: Sequence[str], texts: Sequence[str], system: str) -> Floats:
        """Score for each utterance in the order in which they stand: (n,); of `script_rankings`."""
        best = script_rankings(self.collection, texts, system, self.settings)
        return self._score(np.array(queries), best)

    def _conversation_scores(
        self, conversation: Conversation, system: str, orders: ArrayLike
    ) -> Floats:
        """Mean over the utterances.

        They are added up in the order of the script, so that equal scores have equal means.
        """
        key = system, conversation.topic
        if key in self._of_every_order:
            return self._of_every_order[key][conversation.structure.rank(orders)]
        values = self.utterance_scores(conversation, system, orders)
        position = np.argsort(np.asarray(orders, dtype=np.intp), axis=1)
        means: Floats = np.take_along_axis(values, position, axis=1).mean(axis=1)
        return means

    def every_order(self, conversation: Conversation, system: str) -> Floats:
        """Score for every valid order, by rank; refused where there are more than `exhaustive`."""
        key = system, conversation.topic
        if key not in self._of_every_order:
            orders = conversation.structure.orders(self.exhaustive)
            self._of_every_order[key] = self._conversation_scores(conversation, system, orders)
        return self._of_every_order[key]

    def every(self, systems: Sequence[str]) -> dict[str, Floats]:
        """Scores on every valid order, by topic, shaped (orders, systems), where these are few."""
        scores_by_topic = {}
        for conversation in self.conversations:
            if conversation.structure.count <= self.exhaustive:
                scores = [self.every_order(conversation, system) for system in systems]
                scores_by_topic[conversation.topic] = np.stack(scores, axis=1)
        return scores_by_topic

    def _utterances(self) -> pd.DataFrame:
        rows = []
        for conversation in self.conversations:
            for query in conversation.queries:
                rows.append((query, conversation.topic))
        return pd.DataFrame(rows, columns=["query", "topic"])

    def fixed_scores(self, texts: Mapping[str, str]) -> pd.DataFrame:
        """Score of BM25 for texts by query that no order changes, such as those resolved by hand.

        Returns columns query, topic, value.
        """
        table = self._utterances()
        missing = [query for query in table["query"] if query not in texts]
        if missing:
            raise ValueError(f"no text for {', '.join(missing)}")
        bags = self.collection.queries([texts[query] for query in table["query"]])
        scores = bm25(self.collection, bags, k1=self.settings.k1, b=self.settings.b)
        best = top(scores, self.settings.depth)
        return table.assign(value=self._score(table["query"].to_numpy(), best))

    def ceiling(self) -> pd.DataFrame:
        """Score of the best ranking of the collection for each utterance: query, topic, value.

        It is below 1 where passages with high grades are not in the collection.
        """
        retrievable = self.qrels["document"].isin(self.collection.documents)
        perfect = self.qrels[retrievable].rename(columns={"grade": "score"})
        best = effectiveness(perfect, self.qrels, by=(), measures={self.measure: self.measure})
        # an utterance without a document here has no ranking, and scores 0
        table = self._utterances().merge(best[["query", "value"]], how="left", on="query")
        return table.fillna({"value": 0.0})

    def scores(
        self, orders: Mapping[str, ArrayLike], systems: Sequence[str] = tuple(SYSTEMS)
    ) -> pd.DataFrame:
        """Mean score of each system on each conversation under each of its orders.

        ``orders``: by topic, shaped (orders, n); row 0 is the script (`sampled_orders`). Returns
        columns run, topic, permutation, value; permutation is the row of the order.
        """
        parts = []
        for system, conversation in product(systems, self.conversations):
            topic = conversation.topic
            values = self._conversation_scores(conversation, system, orders[topic])
            part = pd.DataFrame({"permutation": np.arange(len(values)), "value": values})
            part.insert(0, "run", system)
            part.insert(1, "topic", topic)
            parts.append(part)
        return pd.concat(parts, ignore_index=True)

    def scores_by_utterance(
        self, orders: Mapping[str, ArrayLike], systems: Sequence[str]
    ) -> pd.DataFrame:
        """Score for each utterance: columns run, topic, permutation, utterance, value."""
        parts = []
        for system, conversation in product(systems, self.conversations):
            stacked = np.asarray(orders[conversation.topic], dtype=np.intp)
            permutation, _ = np.indices(stacked.shape)
            values = self.utterance_scores(conversation, system, stacked)
            part = pd.DataFrame({"permutation": permutation.ravel()})
            part["utterance"] = np.array(conversation.queries)[stacked].ravel()
            part["value"] = values.ravel()
            part.insert(0, "run", system)
            part.insert(1, "topic", conversation.topic)
            parts.append(part)
        return pd.concat(parts, ignore_index=True)

    def answers(
        self,
        orders: Mapping[str, ArrayLike],
        words: Mapping[str, int],
        passages: pd.DataFrame,
        systems: Sequence[str] = tuple(SYSTEMS),
    ) -> pd.DataFrame:
        """Conversations in which a system answers with its best passage, as a nugget table.

        Words are counted over the whole conversation, utterances included. A relevant answer is one
        nugget: all words of the passage, its level after the grade. Any other answer is a turn
        without a relevant nugget.

        ``words``: number of words of each utterance, by query. ``passages``: columns document,
        source, words. An unjudged passage has level 0. Returns a frame for
        `equipoise.nuggets.nugget_table`: topic is topic#permutation, entity the passage, SOURCE an
        attribute set whose groups are the sources, sorted.

        gfrc2 defines its measures on such tables. CAsT annotates no groups: the attribute is where
        a passage is from.
        """
        passages = passages.set_index("document").reindex(self.collection.documents)
        if passages["words"].isna().any():
            raise ValueError(f"no length of passage {passages.index[passages['words'].isna()][0]}")
        # a membership vector as text: 1 for the passage's source, 0 for the others
        memberships = pd.get_dummies(passages["source"]).astype(int).astype(str)
        answer_columns = pd.DataFrame(
            {"length": passages["words"].astype(int), "SOURCE": memberships.agg(" ".join, axis=1)}
        )
        parts = []
        for system, conversation in product(systems, self.conversations):
            stacked = np.asarray(orders[conversation.topic], dtype=np.intp)
            permutation, turn = np.indices(stacked.shape)
            queries = np.array(conversation.queries)[stacked].ravel()
            best = self.rankings(conversation, system, stacked)[..., 0].ravel()
            part = pd.DataFrame({"query": queries, "turn": turn.ravel() + 1})
            part["run"] = system
            part["topic"] = [f"{conversation.topic}#{number}" for number in permutation.ravel()]
            part["asked"] = part["query"].map(dict(words))
            part["entity"] = passages.index[best]
            parts.append(part)
        table = pd.concat(parts, ignore_index=True).join(answer_columns, on="entity")
        judged = self.qrels.rename(columns={"document": "entity"})
        table = table.merge(judged, how="left", on=["query", "entity"])
        table["level"] = table["grade"].map(_RELEVANCE_LEVELS).fillna(0).astype(int)
        spoken = table["asked"] + table["length"]
        table["end"] = spoken.groupby([table["run"], table["topic"]]).cumsum()
        table["start"] = table["end"] - table["length"] + 1
        table = table.astype(str)
        table.loc[table["level"] == "0", ["start", "end", "entity", "SOURCE"]] = ""
        return table[["run", "topic", "turn", "start", "end", "level", "entity", "SOURCE"]]

    def exact(self, systems: Sequence[str] = tuple(SYSTEMS)) -> pd.DataFrame:
        """Mean, standard deviation and extremes over all valid orders of each conversation.

        Where the context is the previous utterance, the mean follows from adjacency probabilities
        and the extremes from dynamic programming: no order is drawn or listed. The other systems
        are scored on every order, where there are not too many.

        Returns columns run, topic, orders, mean, sd, minimum, maximum, how: how is "adjacency",
        "enumeration", or "too many orders" (then the values are missing).

        Beyond the paper: the distribution over permutations without sampling them.
        """
        rows = []
        for system, conversation in product(systems, self.conversations):
            structure = conversation.structure
            row = {"run": system, "topic": conversation.topic, "orders": structure.count}
            if context_of(system) in ("none", "previous"):
                # Each utterance adds its share of the mean, with each utterance before it; the last
                # row is without one.
                _, scores = self._contexts(conversation, system)
                shares = scores.after / structure.size
                spread = structure.score_range(shares[:-1], shares[-1])
                row |= {"mean": spread.mean, "sd": spread.sd}
                row |= {"minimum": spread.minimum, "maximum": spread.maximum, "how": "adjacency"}
            elif structure.count <= self.exhaustive:
                values = self.every_order(conversation, system)
                row |= {"mean": values.mean(), "sd": values.std()}
                row |= {"minimum": values.min(), "maximum": values.max(), "how": "enumeration"}
            else:
                row |= dict.fromkeys(["mean", "sd", "minimum", "maximum"], np.nan)
                row["how"] = "too many orders"
            rows.append(row)
        return pd.DataFrame(rows)
