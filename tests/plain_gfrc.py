"""GFRC and GFRC2 of one conversation at a time, as the papers write them: a second opinion."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from equipoise.attributes import AttributeSet, attribute_sets
from equipoise.nuggets import NuggetTable


@dataclass
class Nugget:
    turn: int
    start: int
    end: int
    level: int
    membership: dict[str, list[float]]


def conversations(nuggets: NuggetTable) -> list[list[Nugget]]:
    every: list[list[Nugget]] = [[] for _ in range(len(nuggets.conversations))]
    memberships = {name: array.tolist() for name, array in nuggets.memberships.items()}
    rows = zip(
        nuggets.conversation.tolist(),
        nuggets.turn.tolist(),
        nuggets.start.tolist(),
        nuggets.end.tolist(),
        nuggets.level.tolist(),
        strict=True,
    )
    for row, (conversation, turn, start, end, level) in enumerate(rows):
        membership = {name: array[row] for name, array in memberships.items()}
        every[conversation].append(Nugget(turn, start, end, level, membership))
    return every


def jsd(p: Sequence[float], q: Sequence[float]) -> float:
    total = 0.0
    for a, b in zip(p, q, strict=True):
        middle = (a + b) / 2
        if a > 0:
            total += a * math.log2(a / middle) / 2
        if b > 0:
            total += b * math.log2(b / middle) / 2
    return total


def rnod(p: Sequence[float], q: Sequence[float]) -> float:
    n = len(p)
    weighted = [
        sum(abs(i - j) * (p[j] - q[j]) ** 2 for j in range(n)) for i in range(n) if q[i] > 0
    ]
    return math.sqrt(sum(weighted) / len(weighted) / (n - 1))


def similarity(p: Sequence[float], attribute: AttributeSet) -> float:
    return 1 - (rnod if attribute.kind == "ordinal" else jsd)(p, attribute.target.tolist())


def mean(vectors: Sequence[Sequence[float]]) -> list[float]:
    return [sum(column) / len(vectors) for column in zip(*vectors, strict=True)]


def gfrc(
    conversation: Sequence[Nugget],
    attributes: dict[str, AttributeSet],
    patience: float = 1250,
    cumulative: bool = False,
    uniform: bool = False,
) -> list[float]:
    """R, GF of each attribute set, their mean, GFRC."""
    gains = {1: 0.5, 2: 1.0}
    relevant = [nugget for nugget in conversation if nugget.level > 0]
    r = (
        2
        / (patience + 1)
        * sum(max(0.0, 1 - (n.end - 1) / patience) * gains[n.level] for n in relevant)
    )
    fairness = []
    for name, attribute in attributes.items():
        scores = []
        for turn in range(1, max(nugget.turn for nugget in conversation) + 1):
            own = [n.membership[name] for n in relevant if n.turn == turn]
            so_far = [n.membership[name] for n in relevant if n.turn <= turn]
            if own:
                scores.append(similarity(mean(so_far if cumulative else own), attribute))
            elif uniform:
                scores.append(
                    similarity([1 / len(attribute.groups)] * len(attribute.groups), attribute)
                )
        fairness.append(sum(scores) / len(scores) if scores else 0.0)
    overall = sum(fairness) / len(fairness)
    alpha = 1 / (len(fairness) + 1)
    return [r, *fairness, overall, alpha * r + (1 - alpha) * overall]


def gfrc2(
    conversation: Sequence[Nugget], attributes: dict[str, AttributeSet], patience: float = 1000
) -> list[float]:
    """EGNP, EGF of each attribute set, GFRC2."""
    seen: list[Nugget] = []
    totals = [0.0] * (1 + len(attributes))
    for nugget in conversation:
        if nugget.level == 0:
            continue
        seen.append(nugget)
        if nugget.end > patience:
            continue
        graded = sum(n.level * (n.end - n.start + 1) for n in seen)
        others = nugget.end - sum(n.end - n.start + 1 for n in seen)
        totals[0] += graded / (others + graded) / patience
        for index, (name, attribute) in enumerate(attributes.items(), start=1):
            totals[index] += (
                similarity(mean([n.membership[name] for n in seen]), attribute) / patience
            )
    return [*totals, sum(totals) / len(totals)]


def random_sets() -> dict[str, AttributeSet]:
    return attribute_sets(
        {
            "RATINGS": {"kind": "ordinal", "groups": ["1", "2", "3", "4"], "target": "uniform"},
            "ORIGIN": {
                "kind": "nominal",
                "groups": list("abcdefgh"),
                "target": [116, 53, 4, 73, 47, 95, 38, 48],
            },
        }
    )


def random_table(
    conversation_count: int, nuggets_each: int, seed: int
) -> tuple[NuggetTable, dict[str, AttributeSet]]:
    """A random nugget table, most of it relevant, of conversations with two or three turns."""
    rng = np.random.default_rng(seed)
    rows = conversation_count * nuggets_each
    conversation = np.repeat(np.arange(conversation_count), nuggets_each)
    length = rng.integers(1, 5, size=(conversation_count, nuggets_each))
    gap = rng.integers(1, 40, size=(conversation_count, nuggets_each))
    end = np.cumsum(gap + length, axis=1)
    start = end - length + 1
    turn = np.sort(rng.integers(1, 4, size=(conversation_count, nuggets_each)), axis=1)
    sets = random_sets()
    memberships = {}
    for name, attribute in sets.items():
        memberships[name] = np.eye(len(attribute.groups))[
            rng.integers(len(attribute.groups), size=rows)
        ]
        halves = rng.random(rows) < 0.3
        memberships[name][halves] = (
            memberships[name][halves] + np.roll(memberships[name][halves], 1, axis=1)
        ) / 2
    table = NuggetTable(
        pd.DataFrame(
            {"run": [f"run-{i}" for i in range(conversation_count)], "topic": "T"}, dtype="str"
        ),
        conversation,
        turn.ravel(),
        start.ravel(),
        end.ravel(),
        rng.integers(0, 3, size=rows),
        memberships,
    )
    return table, sets


def frame(nuggets: NuggetTable) -> pd.DataFrame:
    """The table as a data frame in the columns of the file format."""
    table = nuggets.conversations.take(nuggets.conversation).reset_index(drop=True)
    table = table.assign(
        turn=nuggets.turn, start=nuggets.start, end=nuggets.end, level=nuggets.level
    )
    for name, array in nuggets.memberships.items():
        table[name] = [" ".join(map(repr, row)) for row in array.tolist()]
    return table
