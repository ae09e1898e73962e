"""Scripted conversations with their valid orders, and orders drawn from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import pandas as pd

from equipoise.orders.class_structures import ClassStructure
from equipoise.orders.structures import GraphStructure, Orders, Structure


@dataclass(frozen=True, eq=False)
class Conversation:
    """A scripted conversation, its utterances in the order of the script, and its valid orders.

    ``antecedents``: of each utterance the phrase that a later pronoun could refer to, and whether
    it has a pronoun itself; empty where they were not looked for (`read_antecedents`).
    ``rewrites``: what a language model makes of an utterance, by the previous and the current one;
    empty likewise (`read_rewrites`).
    """

    topic: str
    queries: tuple[str, ...]
    texts: tuple[str, ...]
    structure: Structure
    antecedents: tuple[tuple[str, bool], ...] = ()
    rewrites: Mapping[tuple[int, int], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not len(self.queries) == len(self.texts) == self.structure.size:
            found = (
                f"{len(self.queries)} ids, {len(self.texts)} texts,"
                f" a structure of {self.structure.size} utterances"
            )
            raise ValueError(f"topic {self.topic}: {found}")


def conversations(
    table: pd.DataFrame, *, pt_behind_ft: Literal["ft", "se"] = "ft"
) -> list[Conversation]:
    """Conversations, in the order of first appearance, from a table of classed utterances.

    ``table``: as `judged_conversations` gives it.
    """
    scripted, problems = [], []
    for topic, turns in table.groupby("topic", sort=False):
        ordered = turns.sort_values("turn", kind="stable")
        antecedents = ordered.reindex(columns=["phrase", "anaphoric"]).dropna()
        # All conversations are looked at, so that one message names every problem.
        try:
            structure = ClassStructure.from_classes(
                ordered["class"].tolist(), pt_behind_ft=pt_behind_ft
            )
            scripted.append(
                Conversation(
                    str(topic),
                    tuple(ordered["query"]),
                    tuple(ordered["text"]),
                    structure,
                    tuple(antecedents.itertuples(index=False, name=None)),
                )
            )
        except ValueError as error:
            problems.append(f"topic {topic}: {error}")
    if problems:
        raise ValueError("; ".join(problems))
    return scripted


def with_dependencies(
    scripted: Sequence[Conversation], dependencies: pd.DataFrame
) -> list[Conversation]:
    """The conversations with graphs: an utterance may stand anywhere behind what it needs.

    ``dependencies`` (columns query, depends_on, as ids): a line for each dependency. The first
    utterance stays first. Where several utterances would have to be together in the paper's
    classes, here they need not.
    """
    # A dependency names queries; a graph has numbers of utterances.
    place_of_query = {}
    for conversation in scripted:
        for number, query in enumerate(conversation.queries):
            place_of_query[query] = conversation.topic, number
    edges: dict[str, list[tuple[int, int]]] = {conversation.topic: [] for conversation in scripted}
    problems = []
    for query, depends_on in dependencies[["query", "depends_on"]].itertuples(index=False):
        topic, later = place_of_query.get(query, ("", -1))
        topic_before, earlier = place_of_query.get(depends_on, ("", -1))
        if topic and topic == topic_before:
            edges[topic].append((earlier, later))
        else:
            problems.append(f"{query} on {depends_on}")
    if problems:
        raise ValueError(f"no dependency within a conversation at hand: {', '.join(problems)}")
    graphs = []
    for conversation in scripted:
        graph = _graph(conversation, edges[conversation.topic])
        graphs.append(replace(conversation, structure=graph))
    return graphs


def _graph(conversation: Conversation, edges: list[tuple[int, int]]) -> GraphStructure:
    try:
        return GraphStructure(conversation.structure.size, edges)
    except ValueError as error:
        raise ValueError(f"topic {conversation.topic}: {error}") from None


def sampled_orders(scripted: Sequence[Conversation], size: int, seed: int) -> dict[str, Orders]:
    """Different orders of each conversation by topic, row 0 the order of the script, a valid one.

    ``size``: how many orders besides the script; all of them where there are fewer. Every
    conversation draws from a stream of its own, so that leaving one out does not move the others.
    """
    orders = {}
    for conversation in scripted:
        structure = conversation.structure
        script = np.arange(structure.size)[None, :]
        if not structure.is_valid(script).all():
            raise ValueError(
                f"topic {conversation.topic}:"
                " the order of the script is not valid in its own structure"
            )
        # A stream of its own: leaving a conversation out does not move the others.
        stream = np.random.default_rng([seed, *conversation.topic.encode()])
        n_drawn = min(size, structure.count - 1)
        drawn = structure.sample(n_drawn, stream, distinct=True, exclude=script)
        orders[conversation.topic] = np.concatenate([script, drawn])
    return orders
