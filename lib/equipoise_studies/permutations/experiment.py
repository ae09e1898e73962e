"""Scores of conversational systems on permuted conversations.

An `Experiment` joins a collection, conversations and judgements. Systems whose context is one
utterance are scored once for each pair of utterances. Any permutation is then a look-up, and the
mean, minimum and maximum over *all* valid permutations are exact. RM3-sequential, which depends on
all earlier utterances, is scored permutation by permutation.

References
----------
permutations, sections 3.1 and 4.3; section 5 for the future work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from equipoise.arrays import Booleans, Floats, Integers
from equipoise.permutations.structures import ClassStructure, Permutations
from equipoise_studies.permutations.systems import (
    SYSTEMS,
    ByContext,
    Collection,
    Columns,
    Conversation,
    Settings,
    context_rankings,
    sequential_rankings,
)

_AT_ONCE = 5000  # permutations; bounds the memory

Measure = Literal["nDCG", "condensed nDCG", "optimistic nDCG", "share judged"]


@dataclass(frozen=True, eq=False)
class Experiment:
    """A collection, conversations and judgements, on which systems are scored.

    ``qrels`` (columns query, document, grade): every utterance needs some. ``measure``:

    - "nDCG" counts unjudged documents as not relevant, as in the paper.
    - "condensed nDCG" leaves unjudged documents out of the rankings.
    - "optimistic nDCG" counts them as relevant to the highest grade, an upper bound.
    - "share judged" is the share of the documents that have a judgement.

    ``recorded``: scores of every valid permutation by system and topic, which are not computed.
    """

    collection: Collection
    conversations: Sequence[Conversation]
    qrels: pd.DataFrame
    settings: Settings = field(default_factory=Settings)
    measure: Measure = "nDCG"
    recorded: Mapping[tuple[str, str], Floats] = field(default_factory=dict)
    # by system and topic
    _contexts: dict[tuple[str, str], ByContext] = field(default_factory=dict, init=False)
    _scores_of_all: dict[tuple[str, str], Floats] = field(default_factory=dict, init=False)
    # by topic: grades, shaped (n, documents), -1 where not judged, and the ideal gains, (n,)
    _judgements: dict[str, tuple[Integers, Floats]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._scores_of_all.update(self.recorded)
        gain_of_ideal = self.qrels.groupby("query")["grade"].agg(self._ideal_gain)
        for conversation in self.conversations:
            queries = list(conversation.queries)
            unjudged = [query for query in queries if query not in gain_of_ideal.index]
            if unjudged:
                raise ValueError(
                    f"no judgement for {', '.join(unjudged)}: leave these utterances out"
                )
            judged = self.qrels[self.qrels["query"].isin(queries)]
            wide = judged.pivot_table(
                index="query", columns="document", values="grade", aggfunc="first"
            )
            wide = wide.reindex(index=queries, columns=list(self.collection.documents))
            grades = wide.fillna(-1).to_numpy(dtype=np.int64)
            self._judgements[conversation.topic] = grades, gain_of_ideal[queries].to_numpy()

    def _ideal_gain(self, grades: pd.Series) -> float:
        best = np.sort(grades.to_numpy())[::-1][: self.settings.depth]
        return float(discounted(best))

    def _score(
        self, conversation: Conversation, utterances: Permutations, rankings: Columns
    ) -> Floats:
        """Score rankings, shaped (..., depth); utterances broadcast to the leading axes."""
        all_grades, ideal_gains = self._judgements[conversation.topic]
        grades = all_grades[utterances[..., None], rankings]
        if self.measure == "share judged":
            return np.asarray((grades >= 0).mean(axis=-1))
        unjudged_gain = self.qrels["grade"].max() if self.measure == "optimistic nDCG" else 0
        gains = discounted(np.where(grades < 0, unjudged_gain, grades))
        ideal = ideal_gains[utterances]
        scores = np.divide(gains, ideal, out=np.zeros(gains.shape), where=ideal > 0)
        # The ideal ranking can only gain by further judgements.
        return np.minimum(scores, 1.0)

    def _allowed(self, conversation: Conversation) -> Booleans | None:
        """Return which documents may be ranked for each utterance; None for all."""
        if self.measure != "condensed nDCG":
            return None
        return self._judgements[conversation.topic][0] >= 0

    def _scores_by_context(self, conversation: Conversation, system: str) -> ByContext:
        """Score a system for every pair of utterances, once."""
        key = system, conversation.topic
        if key not in self._contexts:
            best = context_rankings(
                self.collection, conversation, system, self.settings, self._allowed(conversation)
            )
            utterances = np.arange(len(conversation.queries))
            scores = self._score(conversation, utterances, best.after)
            self._contexts[key] = ByContext(scores, best.provides)
        return self._contexts[key]

    def utterance_scores(
        self, conversation: Conversation, system: str, permutations: Permutations
    ) -> Floats:
        """Score the utterance at each position, shaped (permutations, n)."""
        if SYSTEMS[system].context != "everything":
            return self._scores_by_context(conversation, system).along(permutations)
        allowed = self._allowed(conversation)
        parts = []
        for start in range(0, len(permutations), _AT_ONCE):
            part = permutations[start : start + _AT_ONCE]
            best = sequential_rankings(self.collection, conversation, part, self.settings, allowed)
            parts.append(self._score(conversation, part, best))
        return np.concatenate(parts)

    def _conversation_scores(
        self, conversation: Conversation, system: str, permutations: Permutations
    ) -> Floats:
        """Average the scores of the utterances.

        They are added in the original order, so that equal scores have equal means.
        """
        values = self.utterance_scores(conversation, system, permutations)
        position = np.argsort(permutations, axis=1)
        return np.asarray(np.take_along_axis(values, position, axis=1).mean(axis=1))

    def scores(
        self, permutations: Mapping[str, Permutations], systems: Sequence[str]
    ) -> pd.DataFrame:
        """Score each system on each conversation under each of its permutations.

        ``permutations``: by topic, row 0 the original order (`sampled_permutations`). Returns
        columns run, topic, permutation, value; permutation is the row.
        """
        parts = []
        for system, conversation in product(systems, self.conversations):
            rows = permutations[conversation.topic]
            values = self._conversation_scores(conversation, system, rows)
            part = pd.DataFrame({"permutation": np.arange(len(values)), "value": values})
            part.insert(0, "run", system)
            part.insert(1, "topic", conversation.topic)
            parts.append(part)
        return pd.concat(parts, ignore_index=True)

    def original_scores(self, systems: Sequence[str]) -> pd.DataFrame:
        """Score the original order: one row per conversation, one column per system."""
        values: dict[str, dict[str, float]] = {}
        for system in systems:
            values[system] = {}
            for conversation in self.conversations:
                order = np.arange(len(conversation.queries))[np.newaxis]
                (score,) = self._conversation_scores(conversation, system, order)
                values[system][conversation.topic] = score
        return pd.DataFrame(values)

    def scores_of_all(self, systems: Sequence[str]) -> dict[str, Floats]:
        """Score every valid permutation by topic, shaped (permutations, systems).

        The original order is the first row.
        """
        scores_by_topic = {}
        for conversation in self.conversations:
            scores = [self._all_scores(conversation, system) for system in systems]
            scores_by_topic[conversation.topic] = np.stack(scores, axis=1)
        return scores_by_topic

    def _all_scores(self, conversation: Conversation, system: str) -> Floats:
        key = system, conversation.topic
        if key not in self._scores_of_all:
            structure = conversation.structure
            if not isinstance(structure, ClassStructure):
                raise TypeError(f"{system} is scored on permutations by classes only")
            self._scores_of_all[key] = self._conversation_scores(
                conversation, system, structure.permutations()
            )
        return self._scores_of_all[key]

    def exact(self, systems: Sequence[str]) -> pd.DataFrame:
        """Compute mean, standard deviation and extremes over all valid permutations.

        Where the context is the previous utterance, the mean follows from adjacency probabilities
        and the extremes from dynamic programming: no permutation is drawn or listed. The other
        systems are scored on every permutation.

        Returns columns run, topic, count (of valid permutations), mean, sd, minimum, maximum, how:
        how is "adjacency" or "enumeration".

        Beyond the paper: the distribution over permutations without sampling.
        """
        rows = []
        for system, conversation in product(systems, self.conversations):
            structure = conversation.structure
            row = {"run": system, "topic": conversation.topic, "count": structure.count}
            if SYSTEMS[system].context in ("none", "previous"):
                # Each utterance contributes its share of the mean.
                shares = self._scores_by_context(conversation, system).after / structure.size
                row |= structure.spread(shares)._asdict() | {"how": "adjacency"}
            else:
                values = self._all_scores(conversation, system)
                row |= {"mean": values.mean(), "sd": values.std()}
                row |= {"minimum": values.min(), "maximum": values.max(), "how": "enumeration"}
            rows.append(row)
        return pd.DataFrame(rows)


def discounted(gains: ArrayLike) -> Floats:
    """Compute the discounted cumulative gain of rankings, shaped (..., ranks)."""
    by_rank = np.moveaxis(np.asarray(gains, dtype=np.float64), -1, 0)
    total = np.zeros(by_rank.shape[1:])
    # Rank by rank, so that equal rankings have equal sums to the last bit.
    for rank, gain in enumerate(by_rank, start=1):
        total = total + gain / np.log2(rank + 1)
    return total
