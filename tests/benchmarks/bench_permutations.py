"""Speed of the permutation study, as ratios against plain references run side by side.

Each benchmark times our function with pytest-benchmark and the reference a few times in the same
process; what counts is the ratio, which is printed. The assertions ask for a modest factor, far
below what is measured.
"""

from __future__ import annotations

import random
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from statsmodels.stats.anova import anova_lm

from equipoise.permutations.structures import ClassStructure
from equipoise.permutations.variance import anova
from timed import best_of

pytestmark = pytest.mark.benchmark(timer=process_time)
TWELVE = [
    "SE",
    "FT",
    "FT",
    "SE",
    "PT",
    "PT",
    "FT",
    "SE",
    "PT",
    "FT",
    "SE",
    "PT",
]  # 10,080 valid permutations


def shuffled_blocks(structure: ClassStructure, size: int) -> list[list[int]]:
    """Draw permutations in plain Python: shuffle the blocks, then the followers of each."""
    drawn = []
    for _ in range(size):
        blocks = [list(block) for block in structure.blocks[1:]]
        random.shuffle(blocks)
        order: list[int] = []
        for head, *followers in [list(structure.blocks[0]), *blocks]:
            random.shuffle(followers)
            order += [head, *followers]
        drawn.append(order)
    return drawn


def scores_of(topics: int, permutations: int, systems: int) -> pd.DataFrame:
    """Random scores of every system on every permutation of every topic."""
    rng = np.random.default_rng(1)
    index = pd.MultiIndex.from_product(
        [[f"t{t}" for t in range(topics)], range(permutations), [f"s{s}" for s in range(systems)]],
        names=["topic", "permutation", "run"],
    )
    return pd.DataFrame({"value": rng.random(len(index))}, index=index).reset_index()


def test_a_million_permutations_of_twelve_utterances(benchmark: Any) -> None:
    structure = ClassStructure.from_classes(TWELVE)
    permutations = benchmark.pedantic(
        lambda: structure.sample(1_000_000, np.random.default_rng(0)), rounds=3, warmup_rounds=1
    )
    assert permutations.shape == (1_000_000, 12)
    plain = best_of(lambda: shuffled_blocks(structure, 20_000)) * 50
    ratio = plain / benchmark.stats.stats.min
    benchmark.extra_info["times as fast as shuffling in plain Python"] = ratio
    print(f"\na million permutations: {ratio:.1f} times as fast as shuffling in plain Python")
    assert ratio > 5


def test_md1_of_180_000_scores(benchmark: Any) -> None:
    scores = scores_of(20, 1000, 9)
    table = benchmark.pedantic(lambda: anova(scores, "MD1"), rounds=3, warmup_rounds=1)
    assert table["DF"].tolist() == [19, 19_980, 8, 159_992, 179_999]
    small = scores_of(8, 15, 4)  # a size that statsmodels can do: 123 columns of dummies
    formula = "value ~ C(topic) + C(topic):C(permutation) + C(run)"
    theirs = best_of(lambda: anova_lm(smf.ols(formula, small).fit(), typ=1))
    ours = best_of(lambda: anova(small, "MD1"))
    benchmark.extra_info["times as fast as statsmodels, on 480 scores"] = theirs / ours
    print(f"\nMD1: {theirs / ours:.1f} times as fast as statsmodels on 480 scores")
    assert theirs / ours > 2


def test_exact_extremes_against_every_permutation(benchmark: Any) -> None:
    rng = np.random.default_rng(4)
    structure = ClassStructure.from_classes(["SE", *["FT"] * 8])  # 40,320, as conversation 54
    scores = rng.random((10, 9))

    def every_permutation() -> tuple[float, float]:
        permutations = structure.permutations()
        pairs = scores[permutations[:, :-1], permutations[:, 1:]].sum(axis=1)
        totals = scores[-1, permutations[:, 0]] + pairs
        return float(totals.min()), float(totals.max())

    exact = benchmark(lambda: structure.spread(scores))
    assert (exact.minimum, exact.maximum) == pytest.approx(every_permutation())
    ratio = best_of(every_permutation, 5) / benchmark.stats.stats.min
    benchmark.extra_info["times as fast as scoring all 40,320 permutations"] = ratio
    print(f"\nexact extremes: {ratio:.1f} times as fast as scoring all 40,320 permutations")
    assert ratio > 5
