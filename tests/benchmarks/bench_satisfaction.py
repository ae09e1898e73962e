"""Robustness curve: exact against drawing test sets; scores of many sets against scikit-learn.

Each pair runs in one session on one machine; what counts is the ratio.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, precision_recall_fscore_support

from equipoise_studies.satisfaction.accuracy import SCORES, binary_scores
from equipoise_studies.satisfaction.robustness import robustness_curve
from timed import best_of

CORRECT, SIZE = np.array([789, 19, 14]), np.array([811, 40, 524])
RATIOS = np.arange(1, 21) * 0.05


def drawn(draws: int) -> np.ndarray:
    """Mean scores of drawn test sets, one draw after another, as the thesis does with one."""
    rng = np.random.default_rng(1)
    main, extra = np.arange(SIZE[0]) < CORRECT[0], np.arange(SIZE[2]) < CORRECT[2]
    found = np.zeros((len(RATIOS), len(SCORES)))
    for place, ratio in enumerate(RATIOS):
        wanted = min(SIZE[2], round(ratio * SIZE[0] / max(1 - ratio, 1e-9)) - SIZE[1])
        kept = (
            SIZE[0]
            if wanted < SIZE[2]
            else min(SIZE[0], round((SIZE[1] + SIZE[2]) * (1 - ratio) / ratio))
        )
        for _ in range(draws):
            satisfied = rng.choice(main, kept, replace=False).sum()
            right = CORRECT[1] + rng.choice(extra, max(wanted, 0), replace=False).sum()
            found[place] += binary_scores(satisfied, kept, right, SIZE[1] + max(wanted, 0))
    return found / draws


def test_exact_curve_against_a_hundred_drawn_test_sets(benchmark: Any) -> None:
    curve = benchmark.pedantic(
        lambda: robustness_curve(CORRECT, SIZE, RATIOS), rounds=5, warmup_rounds=1
    )
    assert curve[..., 0] == pytest.approx(drawn(100), abs=0.02)
    ratio = best_of(lambda: drawn(5), 2) * 20 / benchmark.stats.stats.min
    benchmark.extra_info["times as fast as a hundred drawn test sets"] = round(ratio, 1)
    print(f"\nexact curve: {ratio:.1f} times as fast as the mean of 100 drawn test sets")
    assert ratio > 2


def test_scores_of_a_thousand_sets(benchmark: Any) -> None:
    rng = np.random.default_rng(2)
    truth, said = rng.random((2, 1000, 1400)) < 0.3

    def ours() -> np.ndarray:
        counts = (~truth & ~said, ~truth, truth & said, truth)
        return binary_scores(*(labels.sum(axis=-1) for labels in counts))

    scores = benchmark.pedantic(ours, rounds=5)

    def theirs(sets: int) -> list[list[float]]:
        options = {"average": "macro", "labels": [False, True], "zero_division": 0}
        return [
            [accuracy_score(t, p), *precision_recall_fscore_support(t, p, **options)[:3]]
            for t, p in zip(truth[:sets], said[:sets], strict=True)
        ]

    assert scores[:20, :4] == pytest.approx(np.array(theirs(20)))
    ratio = best_of(lambda: theirs(20)) * 50 / benchmark.stats.stats.min
    benchmark.extra_info["times as fast as scikit-learn"] = round(ratio, 1)
    print(f"\nscores of 1,000 sets: {ratio:.0f} times as fast as scikit-learn, set by set")
    assert ratio > 5
