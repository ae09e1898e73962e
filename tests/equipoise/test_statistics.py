"""Guards paired tests, corrections and intervals: statsmodels and SciPy, and edge cases."""

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
from equipoise.statistics.intervals import bootstrap_intervals
from equipoise.statistics.pairs import exchanged
from random_scores import random_scores


@given(p=st.lists(st.floats(0, 1), min_size=1, max_size=8))
@pytest.mark.parametrize("method", ["bonferroni", "holm"])
def test_corrections_agree_with_statsmodels(method: Any, p: list[float]) -> None:
    np.testing.assert_allclose(corrected(p, method), multipletests(p, method=method)[1], atol=1e-12)


def test_corrections_refuse_what_is_no_probability() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        corrected([0.5, np.nan])
    with pytest.raises(ValueError, match="bonferroni, holm or none"):
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
        assert row.effect == pytest.approx(
            (wide[row.a] - wide[row.b]).mean() / (wide[row.a] - wide[row.b]).std()
        )


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
    drawn = compare_pairs(
        scores, baseline="m0", test="permutation", resamples=200, rng=np.random.default_rng(0)
    )
    assert drawn["p"][0] == pytest.approx(expected, abs=0.15)


def test_pairs_refuse_what_cannot_be_paired() -> None:
    scores = random_scores(9, [1] * 4, 3)
    with pytest.raises(ValueError, match="1 scores are missing: run m0 has no score for topic t0"):
        compare_pairs(scores.iloc[1:])
    with pytest.raises(ValueError, match="scored twice"):
        compare_pairs(pd.concat([scores, scores.iloc[:1]]))
    with pytest.raises(ValueError, match="unknown system 'm9', must be one of m0, m1, m2"):
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
    with pytest.raises(ValueError, match="must be finite"):
        bootstrap_interval([1.0, np.nan], rng)


def test_many_bootstrap_intervals_are_scipys_of_each_mean() -> None:
    rng = np.random.default_rng(11)
    columns = [rng.choice([0, 1 / 3, 0.5, 1], units) for units in (40, 7, 40, 2, 40)]
    columns += [np.full(40, 0.1), np.array([0.5]), np.append(columns[0][1:], np.nan)]
    found = bootstrap_intervals(columns, 5, level=0.9, resamples=2500)
    for column, ends in zip(columns[:5], found, strict=False):
        theirs = stats.bootstrap(
            (column,),
            np.mean,
            confidence_level=0.9,
            n_resamples=2500,
            method="percentile",
            batch=1000,
            rng=5,
        ).confidence_interval
        assert tuple(ends) == (theirs.low, theirs.high)
    assert found[5].tolist() == [0.1, 0.1]
    assert np.isnan(found[6:]).all()


@pytest.mark.parametrize("units", [2, 9, 11, 12, 70, 500])
def test_signs_are_exchanged_as_scipy_exchanges_them(units: int) -> None:
    gaps = np.random.default_rng(units).choice([-1, -0.5, -1 / 3, 0, 0.25, 1 / 3, 0.7], (units, 3))
    theirs = stats.permutation_test(
        (gaps, np.zeros_like(gaps)),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=2500,
        batch=1000,
        rng=8,
    )
    assert exchanged(gaps, np.random.default_rng(8), 2500).tolist() == theirs.pvalue.tolist()
