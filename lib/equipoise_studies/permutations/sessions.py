"""Conversations held one behind the other in one session, in which an earlier one can leak."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from equipoise.orders.conversations import Conversation
from equipoise_compendium.claims import Evidence
from equipoise_studies.permutations.claims import interval
from equipoise_studies.permutations.experiment import Experiment

ALONE = -1
"""Number of the session of a conversation that has one of its own."""


def session_of(scripts: Sequence[Conversation]) -> tuple[list[str], list[str]]:
    """Queries and texts of conversations one behind the other: nothing says where one ends."""
    queries: list[str] = []
    texts: list[str] = []
    for script in scripts:
        queries += script.queries
        texts += script.texts
    return queries, texts


def session_scores(
    experiment: Experiment, systems: Sequence[str], sessions: int, rng: np.random.Generator
) -> pd.DataFrame:
    """Score for each utterance, its conversation alone and in sessions of all of them.

    ``sessions``: how many, the conversations of each in random order. Returns columns run, session
    (`ALONE` or its number), query, value.
    """
    scripts = experiment.conversations
    numbered = [(ALONE, session_of([script])) for script in scripts]
    for number in range(sessions):
        in_random_order = [scripts[place] for place in rng.permutation(len(scripts))]
        numbered.append((number, session_of(in_random_order)))
    parts = []
    for system in systems:
        for number, (queries, texts) in numbered:
            part = pd.DataFrame({"run": system, "session": number, "query": queries})
            part["value"] = experiment.script_scores(queries, texts, system)
            parts.append(part)
    return pd.concat(parts, ignore_index=True)


def changes_in_session(scores: pd.DataFrame, topics: pd.Series) -> pd.DataFrame:
    """Mean score in sessions of all conversations minus that alone: a row a topic, a column a run.

    ``scores``: of `session_scores`. ``topics``: the conversation of each query.
    """
    table = scores.assign(topic=scores["query"].map(topics), alone=scores["session"] == ALONE)
    means = table.pivot_table(index="topic", columns=["alone", "run"], values="value", sort=False)
    return means[False] - means[True]


def leaks(changes: pd.DataFrame) -> Evidence:
    """What one session for all topics changes, mean of the systems; of `changes_in_session`."""
    statement = "score in one session for all conversations minus that alone, mean of the systems"
    return Evidence(statement, *interval(changes.mean(axis=1).to_numpy()), n=len(changes))
