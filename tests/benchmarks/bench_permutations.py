"""Speed of the permutation study, as ratios against plain references run side by side.

Each benchmark times our function with pytest-benchmark and the reference a few times in the same
process; what counts is the ratio, which is printed. The assertions ask for a modest factor, far
below what is measured.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from statsmodels.stats.anova import anova_lm

from equipoise.orders.class_structures import ClassStructure
from equipoise.orders.variance import anova
from timed import best_of

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
]  # 10,080 valid orders


def shuffled_blocks(structure: ClassStructure, size: int) -> list[list[int]]:
    """Draw orders one by one in plain Python: shuffle the blocks, then the followers of each."""
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


def test_a_million_orders_of_twelve_utterances(benchmark: Any) -> None:
    structure = ClassStructure.from_classes(TWELVE)
    orders = benchmark.pedantic(
        lambda: structure.sample(1_000_000, np.random.default_rng(0)), rounds=3, warmup_rounds=1
    )
    assert orders.shape == (1_000_000, 12)
    plain = best_of(lambda: shuffled_blocks(structure, 20_000)) * 50
    ratio = plain / benchmark.stats.stats.min
    benchmark.extra_info["times as fast as shuffling in plain Python"] = ratio
    print(f"\na million orders: {ratio:.1f} times as fast as shuffling in plain Python")
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


def test_the_interaction_of_180_000_scores(benchmark: Any) -> None:
    scores = scores_of(20, 1000, 9)
    table = benchmark.pedantic(
        lambda: anova(scores, "MD1", interaction=True), rounds=3, warmup_rounds=1
    )
    assert table["DF"].tolist() == [19, 19_980, 8, 152, 159_840, 179_999]
    formula = "value ~ C(topic) + C(topic):C(permutation) + C(run) + C(topic):C(run)"
    ratio = 0.0
    for topics in (
        10,
        20,
    ):  # sizes that statsmodels can do, the second that of the study: 1,064 columns of dummies
        small = scores_of(topics, 48, 5)
        theirs = best_of(
            partial(lambda held: anova_lm(smf.ols(formula, held).fit(), typ=1), small), 2
        )
        ratio = theirs / best_of(partial(anova, small, "MD1", interaction=True))
        benchmark.extra_info[f"times as fast as statsmodels, on {len(small):,} scores"] = ratio
        print(
            f"\nthe interaction: {ratio:.1f} times as fast as statsmodels on {len(small):,} scores"
        )
    assert ratio > 50


def test_exact_means_against_ten_thousand_samples(benchmark: Any) -> None:
    structure = ClassStructure.from_classes(TWELVE)
    rng = np.random.default_rng(2)
    pairs, first = rng.random((12, 12)), rng.random(12)

    def sampled() -> float:
        orders = structure.sample(10_000, np.random.default_rng(3))
        return float(
            (first[orders[:, 0]] + pairs[orders[:, :-1], orders[:, 1:]].sum(axis=1)).mean()
        )

    exact = benchmark(lambda: structure.mean_score(pairs, first))
    assert exact == pytest.approx(sampled(), abs=0.05)
    ratio = best_of(sampled, 5) / benchmark.stats.stats.min
    benchmark.extra_info["times as fast as the mean of 10,000 sampled orders"] = ratio
    print(f"\nexact mean: {ratio:.1f} times as fast as the mean of 10,000 sampled orders")
    assert ratio > 3


def test_exact_extremes_against_every_order(benchmark: Any) -> None:
    rng = np.random.default_rng(4)
    names = ["SE", *["FT"] * 8]  # 40,320 orders, as conversation 54 of CAsT 2019
    pairs, first = rng.random((9, 9)), rng.random(9)

    def every_order() -> tuple[float, float]:
        orders = ClassStructure.from_classes(names).orders()
        totals = first[orders[:, 0]] + pairs[orders[:, :-1], orders[:, 1:]].sum(axis=1)
        return float(totals.min()), float(totals.max())

    exact = benchmark(lambda: ClassStructure.from_classes(names).score_range(pairs, first))
    assert (exact.minimum, exact.maximum) == pytest.approx(every_order())
    ratio = best_of(every_order, 5) / benchmark.stats.stats.min
    benchmark.extra_info["times as fast as scoring all 40,320 orders"] = ratio
    print(f"\nexact extremes: {ratio:.1f} times as fast as scoring all 40,320 orders")
    assert ratio > 15
