"""GFRC and GFRC2 of 1,000,000 nuggets in 100,000 conversations: against a reference and a floor.

Ratios are taken within one run, on one core; seconds mean nothing outside it.
"""

from __future__ import annotations

import os
import tracemalloc
from time import process_time
from typing import Any

import numpy as np
import pytest

from equipoise.measures.gfrc import gfrc
from equipoise.measures.gfrc2 import gfrc2
from equipoise.nuggets import NuggetTable

pytestmark = pytest.mark.benchmark(timer=process_time)
plain = pytest.importorskip("plain_gfrc")

CONVERSATIONS, NUGGETS_EACH = 100_000, 10
REFERENCE_SHARE = (
    50  # the plain reference scores every 50th conversation; its time grows with their number alone
)


def table_bytes(nuggets: NuggetTable) -> int:
    arrays = [
        nuggets.conversation,
        nuggets.turn,
        nuggets.start,
        nuggets.end,
        nuggets.level,
        *nuggets.memberships.values(),
    ]
    return sum(array.nbytes for array in arrays) + int(
        nuggets.conversations.memory_usage(deep=True).sum()
    )


@pytest.fixture(scope="module")
def table() -> tuple[NuggetTable, Any]:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    nuggets, sets = plain.random_table(CONVERSATIONS, NUGGETS_EACH, seed=1)
    return nuggets, sets


def score(nuggets: NuggetTable, sets: Any) -> None:
    gfrc(nuggets, sets)
    gfrc2(nuggets, sets)


def test_vectorised(benchmark: Any, table: tuple[NuggetTable, Any]) -> None:
    nuggets, sets = table
    benchmark.pedantic(score, args=(nuggets, sets), rounds=5, warmup_rounds=1)
    ours = benchmark.stats.stats.min

    few, _ = plain.random_table(CONVERSATIONS // REFERENCE_SHARE, NUGGETS_EACH, seed=2)
    conversations = plain.conversations(few)
    begin = process_time()
    for conversation in conversations:
        plain.gfrc(conversation, sets)
        plain.gfrc2(conversation, sets)
    reference = (process_time() - begin) * REFERENCE_SHARE

    membership = np.concatenate([array.ravel() for array in nuggets.memberships.values()]) + 0.5
    floor = np.inf
    for _ in range(5):
        begin = process_time()
        np.log(membership)
        floor = min(floor, process_time() - begin)

    tracemalloc.start()
    score(nuggets, sets)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    results = {
        "times as fast as the plain reference": reference / ours,
        "times the logarithms of the membership table": ours / floor,
        "times the size of the nugget table, peak memory": peak / table_bytes(nuggets),
    }
    benchmark.extra_info.update(results)
    print("".join(f"\n{name}: {value:.1f}" for name, value in results.items()))
    assert results["times as fast as the plain reference"] > 10
    assert results["times the size of the nugget table, peak memory"] < 6


def test_growth_with_the_number_of_conversations(
    benchmark: Any, table: tuple[NuggetTable, Any]
) -> None:
    nuggets, sets = table
    tenth, _ = plain.random_table(CONVERSATIONS // 10, NUGGETS_EACH, seed=3)
    benchmark.pedantic(score, args=(nuggets, sets), rounds=5, warmup_rounds=1)
    small = np.inf
    for _ in range(5):
        begin = process_time()
        score(tenth, sets)
        small = min(small, process_time() - begin)
    growth = benchmark.stats.stats.min / small
    benchmark.extra_info["times the time for ten times the conversations"] = growth
    assert growth < 40  # linear, but for what falls out of the cache; 100 would be quadratic
