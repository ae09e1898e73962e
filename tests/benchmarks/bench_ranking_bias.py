"""Speed of the bias measures, as a ratio to the plain transcription in the same run.

The plain side works on a part of the input and is scaled by its share; each ratio stands in the
benchmark's extra information, and falls below its floor only if the vectorised side has become
slow.
"""

import math
import subprocess
import sys
from collections.abc import Iterator, Sequence
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
import pytest

from equipoise.measures.rank_overlap import rbo
from equipoise.measures.ranking_bias import (
    TermGroups,
    count_terms,
    fairr,
    ideal_fairr,
    neutrality,
    nfairr,
    score_ranking_bias,
    texfair,
)

pytestmark = pytest.mark.benchmark(timer=process_time)
CUTOFFS = [5, 10, 20]


def plain_texfair(magnitudes: Sequence[Sequence[float]], lengths: Sequence[int], k: int) -> float:
    exposure, shown, whole = [0.0, 0.0], 0.0, 0.0
    for r in range(min(k, len(lengths))):
        weight = 1 / math.log(r + 2)
        whole += weight
        if sum(magnitudes[r]) > 0:
            shown += weight
        for g in (0, 1):
            exposure[g] += magnitudes[r][g] / lengths[r] * weight
    total = sum(exposure)
    return 1 - (sum(abs(e / total - 0.5) for e in exposure) if total else 0.0) * shown / whole


def plain_neutrality(magnitudes: Sequence[float]) -> float:
    total = sum(magnitudes)
    return 1.0 if total <= 1 else 1 - sum(abs(m / total - 0.5) for m in magnitudes)


def plain_nfairr(omega: Sequence[float], k: int) -> float:
    def discounted(values: Sequence[float]) -> float:
        return sum(value / math.log2(r + 2) for r, value in enumerate(values[:k]))

    return discounted(omega) / discounted(sorted(omega, reverse=True))


def test_scoring_1000_queries_of_1000_documents_at_3_cut_offs(benchmark: Any) -> None:
    rng = np.random.default_rng(1)
    magnitudes = rng.poisson(0.7, (1000, 1000, 2)).astype(float)
    lengths = rng.integers(20, 100, (1000, 1000))

    def vectorised() -> tuple[Any, Any]:
        omega = neutrality(magnitudes)
        return nfairr(fairr(omega, CUTOFFS), ideal_fairr(omega, CUTOFFS)), texfair(
            magnitudes, lengths, CUTOFFS
        )

    ours = benchmark.pedantic(vectorised, rounds=5, warmup_rounds=1)
    part = 20
    lists, sizes = magnitudes[:part].tolist(), lengths[:part].tolist()
    start = process_time()
    plain = [
        ([plain_nfairr(omega, k) for k in CUTOFFS], [plain_texfair(m, n, k) for k in CUTOFFS])
        for m, n in zip(lists, sizes, strict=True)
        for omega in [[plain_neutrality(d) for d in m]]
    ]
    taken = (process_time() - start) * 1000 / part
    for measure in (0, 1):
        assert ours[measure][:part] == pytest.approx(np.array([row[measure] for row in plain]))
    ratio = taken / benchmark.stats.stats.min
    benchmark.extra_info["times as fast as the transcription"] = round(ratio, 1)
    print(f"\nTED and NFaiRR: {ratio:.1f} times as fast as the transcription")
    assert ratio > 10


def passages(number: int, rng: np.random.Generator) -> Iterator[tuple[str, str]]:
    """Passages of about 56 words, with gendered words among them, one at a time."""
    words = np.array(
        [f"word{n}" for n in range(20_000)] + ["he", "she", "her", "him", "man", "woman"] * 300
    )
    for start in range(0, number, 10_000):
        chosen = words[rng.integers(0, words.size, (10_000, 56))]
        for n, row in enumerate(chosen[: number - start]):
            yield str(start + n), " ".join(row)


TERMS = [f"term{n}" for n in range(320)] + ["he", "she", "her", "him", "man", "woman"]


def peak_memory(number: int) -> float:
    """Count terms of a generated collection in its own process; its peak MB, as Linux tells it."""
    code = (
        "import re, runpy, sys, numpy as np\n"
        "bench = runpy.run_path(sys.argv[1])\n"
        "passages = bench['passages'](int(sys.argv[2]), np.random.default_rng(2))\n"
        "counts = bench['count_terms'](passages, bench['TERMS'])\n"
        "assert counts.counts.shape[0] == int(sys.argv[2])\n"
        "print(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1])\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, __file__, str(number)],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(run.stdout) / 1e3


def test_counting_terms_of_1000000_passages(benchmark: Any) -> None:
    """Documents per second, the making of the passages taken away."""
    number = 1_000_000
    start = process_time()
    made = sum(1 for _ in passages(number, np.random.default_rng(2)))
    making = process_time() - start
    assert made == number
    counts = benchmark.pedantic(
        lambda: count_terms(passages(number, np.random.default_rng(2)), TERMS), rounds=1
    )
    benchmark.extra_info["documents per second"] = round(
        number / (benchmark.stats.stats.min - making)
    )
    assert counts.counts.shape == (number, len(TERMS))


def test_memory_of_counting_1000000_passages(benchmark: Any) -> None:
    """Ten times the passages may add their counts and ids to the memory, not their texts."""
    peaks = benchmark.pedantic(
        lambda: [peak_memory(number) for number in (100_000, 1_000_000)], rounds=1
    )
    benchmark.extra_info["times the peak memory for ten times the passages"] = round(
        peaks[1] / peaks[0], 1
    )
    benchmark.extra_info["peak MB of 100000 and 1000000 passages"] = [round(peak) for peak in peaks]
    texts = sum(len(text) for _, text in passages(10_000, np.random.default_rng(2))) * 100 / 1e6
    benchmark.extra_info["MB of text"] = round(texts)
    assert peaks[1] - peaks[0] < texts / 2


def plain_rbo(first: list[int], second: list[int], p: float) -> float:
    depth, a, b, common, total = len(first), set(), set(), 0, 0.0
    for d, (x, y) in enumerate(zip(first, second, strict=True), start=1):
        if x == y:
            common += 1
        else:
            common += (x in b) + (y in a)
            a.add(x)
            b.add(y)
        total += (1 - p) * p ** (d - 1) * common / d
    return total + p**depth * common / depth


def test_rbo_of_100000_pairs_of_100(benchmark: Any) -> None:
    rng = np.random.default_rng(3)
    order = np.argsort(rng.random((100_000, 150)), axis=1)
    first, second = order[:, :100], np.argsort(rng.random((100_000, 150)), axis=1)[:, :100]
    ours = benchmark.pedantic(lambda: rbo(first, second, 0.9), rounds=3, warmup_rounds=1)
    part = 2000
    lists = list(zip(first[:part].tolist(), second[:part].tolist(), strict=True))
    start = process_time()
    plain = [plain_rbo(a, b, 0.9) for a, b in lists]
    taken = (process_time() - start) * 100_000 / part
    assert ours[:part] == pytest.approx(plain)
    ratio = taken / benchmark.stats.stats.min
    benchmark.extra_info["times as fast as the loop"] = round(ratio, 1)
    place = np.broadcast_to(np.arange(100), first.shape)
    marked = np.zeros((1000, 150), dtype=np.int64)
    rows = np.arange(1000)[:, np.newaxis]

    def floor() -> None:
        for begin in range(0, 100_000, 1000):
            marked[rows, first[begin : begin + 1000]] = place[:1000]
            np.cumsum(marked[rows, second[begin : begin + 1000]], axis=1)

    taken_by_floor = []
    for _ in range(3):
        start = process_time()
        floor()
        taken_by_floor.append(process_time() - start)
    bare = min(taken_by_floor)
    benchmark.extra_info[
        "times the floor: to mark the items of one list, look up the others, and sum"
    ] = benchmark.stats.stats.min / bare
    print(
        f"\nRBO: {ratio:.1f} times as fast as the loop, "
        f"{benchmark.stats.stats.min / bare:.1f} times the floor"
    )
    assert ratio > 8


def test_the_tidy_table_of_a_whole_run(benchmark: Any) -> None:
    rng = np.random.default_rng(4)
    documents = list(passages(20_000, rng))
    groups = TermGroups.from_pairs(
        [("he", "m"), ("him", "m"), ("man", "m"), ("she", "f"), ("her", "f"), ("woman", "f")]
    )
    counts = count_terms(documents, groups.terms)
    runs = pd.DataFrame(
        {
            "run": "r",
            "topic": np.repeat([f"t{n}" for n in range(1000)], 100),
            "document": [
                str(d) for _ in range(1000) for d in rng.choice(20_000, 100, replace=False)
            ],
            "rank": np.tile(np.arange(1, 101), 1000),
        }
    )
    table = benchmark.pedantic(
        lambda: score_ranking_bias(runs, counts, groups, cutoffs=CUTOFFS), rounds=3
    )
    assert len(table) == 1001 * 6 * len(CUTOFFS)
