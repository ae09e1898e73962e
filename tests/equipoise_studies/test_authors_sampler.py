"""Guards the authors' sampler: a loop that follows its source, conversations it depends on."""

from __future__ import annotations

import random

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2_contingency

from equipoise.orders.class_structures import ClassStructure
from equipoise.orders.conversations import Conversation, conversations, with_dependencies
from equipoise_studies.permutations.authors_sampler import authors_sample, distinct_orders

CLASSES = ["SE", "FT", "SE", "PT", "PT", "FT", "PT"]


def walked(names: list[str], stream: random.Random) -> tuple[int, ...]:
    """One order, as ValidPermutations.py picks it from open utterances, the first one in front."""
    owner = [
        max(v for v in range(u + 1) if names[v] != "PT") if name != "FT" else 0
        for u, name in enumerate(names)
    ]
    children: dict[int, list[int]] = {}
    for u, v in enumerate(owner):
        if u != v:
            children.setdefault(v, []).append(u)
    choices, stack, order = (
        [u for u, v in enumerate(owner) if u == v],
        list[list[int]](),
        list[int](),
    )
    while choices:
        picked = choices.pop(stream.randrange(len(choices)))
        order.append(picked)
        if picked == 0:
            (stack[-1] if stack else choices).extend(children.get(0, []))
        elif picked in children:
            stack.insert(0, choices)
            choices = list(children[picked])
        if not choices and stack:
            choices = stack.pop()
    return (0, *(u for u in order if u != 0))


def test_draws_as_the_program_does_and_so_not_uniformly() -> None:
    structure, stream = ClassStructure.from_classes(CLASSES), random.Random(1)  # noqa: S311 - nothing secret
    loop = structure.rank([walked(CLASSES, stream) for _ in range(20_000)])
    ours = structure.rank(authors_sample(structure, CLASSES, 20_000, np.random.default_rng(2)))
    table = np.array([np.bincount(ranks, minlength=structure.count) for ranks in (loop, ours)])
    assert chi2_contingency(table[:, table.any(axis=0)]).pvalue > 0.01
    uniform = structure.rank(structure.sample(20_000, np.random.default_rng(3)))
    table[0] = np.bincount(uniform, minlength=structure.count)
    assert chi2_contingency(table).pvalue < 1e-6


def test_counts_are_given_where_the_printed_one_is_another() -> None:
    judged = pd.DataFrame({"topic": ["1"] * 7 + ["2"] * 3, "turn": [*range(7), *range(3)]})
    judged["class"] = [*CLASSES, "SE", "FT", "FT"]
    judged["query"] = judged["text"] = judged["topic"] + "_" + judged["turn"].astype(str)
    made = conversations(judged)
    printed = pd.DataFrame({"Conv. id": ["1", "2"], "unique perm.": ["11", "2"]})
    table = distinct_orders(made, judged, printed, 2000, 3, 5)
    assert table.iloc[0].tolist() == ["1", 12, 11, 12, 12, "False"]
    assert len(table) == 1
    few = distinct_orders(made, judged, printed, 4, 50, 5).iloc[0]
    assert few["lowest"] < few["highest"] <= 4


def test_dependencies_let_utterances_stand_apart() -> None:
    queries = ("1_1", "1_2", "1_3", "1_4")
    made = [
        Conversation("1", queries, queries, ClassStructure.from_classes(["SE", "SE", "PT", "SE"]))
    ]
    (free,) = with_dependencies(made, pd.DataFrame({"query": ["1_3"], "depends_on": ["1_2"]}))
    assert (made[0].structure.count, free.structure.count) == (2, 3)
    assert free.structure.is_valid([[0, 1, 3, 2]]).all()
    assert not free.structure.is_valid([[0, 2, 1, 3]]).any()
    with pytest.raises(ValueError, match="no dependency within a conversation at hand: 1_3 on 2_1"):
        with_dependencies(made, pd.DataFrame({"query": ["1_3"], "depends_on": ["2_1"]}))
