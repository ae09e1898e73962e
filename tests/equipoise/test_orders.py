"""Guards what permutations say of systems; ``tests/studies`` holds `preference` to plain loops."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from equipoise.measures.orders import preference, ranking_stability


def test_more_permutations_come_nearer_to_the_true_ranking() -> None:
    rng = np.random.default_rng(4)
    rows = [
        (f"r{run}", topic, permutation, run * 0.05 + rng.normal(scale=0.3))
        for run in range(4)
        for topic in ("1", "2")
        for permutation in range(400)
    ]
    scores = pd.DataFrame(rows, columns=["run", "topic", "permutation", "value"])
    table = ranking_stability(scores, [1, 20, 399], np.random.default_rng(5), repeats=200)
    assert table["permutations"].tolist() == [1, 20, 399]
    assert table["tau"].is_monotonic_increasing
    assert table["tau"].iloc[-1] == table["same"].iloc[-1] == table["best"].iloc[-1] == 1.0
    assert table["tau"].iloc[0] < 0.6
    backwards = pd.Series({f"r{run}": -float(run) for run in range(4)})
    turned = ranking_stability(
        scores, [399], np.random.default_rng(5), repeats=5, reference=backwards
    )
    assert turned["tau"].tolist() == [-1.0]


def test_refuses_what_cannot_be_ranked() -> None:
    scores = pd.DataFrame(
        {"run": list("aabb"), "topic": "1", "permutation": [0, 1, 0, 1], "value": [5.0, 1, 3, 1]}
    )
    rng = np.random.default_rng(0)
    with pytest.raises(
        ValueError, match="topic 1: every system needs one score for the same permutations"
    ):
        preference(scores.iloc[1:])
    with pytest.raises(ValueError, match="topics 1 have no permutation besides the script"):
        ranking_stability(scores[scores["permutation"] == 0], [1], rng)
    with pytest.raises(ValueError, match="at least two systems"):
        ranking_stability(scores[scores["run"] == "a"], [1], rng)
    with pytest.raises(ValueError, match="the reference has no b"):
        ranking_stability(scores, [1], rng, reference=pd.Series({"a": 1.0}))
    with pytest.raises(ValueError, match="each a whole number from 1"):
        ranking_stability(scores, [0], rng)
    with pytest.raises(ValueError, match="repeats is 0"):
        ranking_stability(scores, [1], rng, repeats=0)
