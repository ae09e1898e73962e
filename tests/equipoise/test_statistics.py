"""Guards the paired tests, corrections and intervals: statsmodels and SciPy as the second opinion, edge cases."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from equipoise.statistics import bootstrap_interval, compare_pairs, corrected
from random_scores import random_scores


@given(p=st.lists(st.floats(0, 1), min_size=1, max_size=8))
@pytest.mark.parametrize("method", ["bonferroni", "holm"])
def test_corrections_agree_with_statsmodels(method: Any, p: list[float]) -> None:
    np.testing.assert_allclose(corrected(p, method), multipletests(p, method=method)[1], atol=1e-12)


def test_corrections_refuse_what_is_no_probability() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        corrected([0.5, np.nan])
    with pytest.raises(ValueError, match="bonferroni, holm, none"):
        corrected([0.5], "sidak")  # type: ignore[arg-type]
    assert corrected([0.5, 0.9], "none").tolist() == [0.5, 0.9]


def test_paired_t_agrees_with_scipy() -> None:
    scores = random_scores(7, [1] * 9, 3)
    wide: Any = scores.pivot_table(index="topic", columns="run", values="value")
    ours = compare_pairs(scores, level=0.9)
    assert len(ours) == 3
    rows: Any = ours.itertuples()
    for row in rows:
        theirs = stats.ttest_rel(wide[row.a], wide[row.b])
        interval = theirs.confidence_interval(0.9)
        assert (row.statistic, row.p) == pytest.approx((theirs.statistic, theirs.pvalue))
        assert (row.low, row.high) == pytest.approx((interval.low, interval.high))
        assert row.p_corrected == pytest.approx(min(1, 3 * row.p))
        assert row.effect == pytest.approx((wide[row.a] - wide[row.b]).mean() / (wide[row.a] - wide[row.b]).std())


def test_the_randomisation_test_agrees_with_every_exchange() -> None:
    scores = random_scores(8, [1] * 8, 2)
    wide: Any = scores.pivot_table(index="topic", columns="run", values="value")
    gaps = (wide["m1"] - wide["m0"]).to_numpy()
    signs = np.array(list(itertools.product([1, -1], repeat=8)))
    means = np.abs((signs * gaps).mean(axis=1))
    expected = (means >= abs(gaps.mean()) - 1e-12).mean()
    exact = compare_pairs(scores, baseline="m0", test="permutation", rng=np.random.default_rng(0))
    assert exact["p"].tolist() == pytest.approx([expected])
    assert exact["difference"].tolist() == pytest.approx([gaps.mean()])
    drawn = compare_pairs(scores, baseline="m0", test="permutation", resamples=200, rng=np.random.default_rng(0))
    assert drawn["p"][0] == pytest.approx(expected, abs=0.15)


def test_pairs_refuse_what_cannot_be_paired() -> None:
    scores = random_scores(9, [1] * 4, 3)
    with pytest.raises(ValueError, match="1 scores are missing or not finite: run m0 lacks topic t0"):
        compare_pairs(scores.iloc[1:])
    with pytest.raises(ValueError, match="scored twice"):
        compare_pairs(pd.concat([scores, scores.iloc[:1]]))
    with pytest.raises(ValueError, match="no system named 'm9'; there are m0, m1, m2"):
        compare_pairs(scores, baseline="m9")
    with pytest.raises(ValueError, match="pass rng"):
        compare_pairs(scores, test="permutation")
    with pytest.raises(ValueError, match="at least two systems and two units"):
        compare_pairs(scores[scores["topic"] == "t0"])


def test_bootstrap_interval_covers_the_mean_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(10)
    intervals = [bootstrap_interval(rng.normal(size=30), rng, resamples=400) for _ in range(200)]
    covered = np.mean([low <= 0 <= high for low, high in intervals])
    assert 0.88 < covered < 0.99
    assert bootstrap_interval([2.0, 2.0], rng) == (2.0, 2.0)
    again = [bootstrap_interval([1, 2, 4], np.random.default_rng(3), method="BCa") for _ in range(2)]
    assert again[0] == again[1]
    with pytest.raises(ValueError, match="not finite"):
        bootstrap_interval([1.0, np.nan], rng)
