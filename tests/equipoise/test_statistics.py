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

from equipoise.statistics import compare_pairs, corrected, mean_interval
from equipoise.statistics.intervals import intervals_of_means
from equipoise.statistics.pairs import exchanged
from equipoise_compendium import project
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


@given(
    values=st.lists(st.floats(-10, 10), min_size=1, max_size=40), level=st.sampled_from([0.8, 0.95])
)
def test_the_interval_of_a_mean_depends_on_the_number_of_units(
    values: list[float], level: float
) -> None:
    """None below 10 units, SciPy's by Student's t below 30, its percentile bootstrap from 30 on."""
    found = mean_interval(values, np.random.default_rng(3), level=level, resamples=199)
    if len(values) < 10:
        expected: Any = (np.nan, np.nan)
    elif max(values) == min(values):
        expected = (values[0], values[0])
    elif len(values) < 30:
        expected = stats.ttest_1samp(values, 0).confidence_interval(level)
    else:
        expected = stats.bootstrap(
            (values,),
            np.mean,
            confidence_level=level,
            n_resamples=199,
            method="percentile",
            rng=np.random.default_rng(3),
        ).confidence_interval
    assert found == pytest.approx(tuple(expected), rel=1e-9, abs=1e-9, nan_ok=True)
    with pytest.raises(ValueError, match="must be finite"):
        mean_interval([*values, np.nan], np.random.default_rng(3))


def test_many_bootstrap_intervals_are_scipys_of_each_mean() -> None:
    rng = np.random.default_rng(11)
    columns = [rng.choice([0, 1 / 3, 0.5, 1], units) for units in (40, 70, 40, 30, 40)]
    columns += [np.full(40, 0.1), np.array([0.5]), np.append(columns[0][1:], np.nan)]
    found = intervals_of_means(columns, 5, level=0.9, resamples=2500)
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
        assert ends == pytest.approx((theirs.low, theirs.high), rel=1e-12)
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
    values, zeros = np.column_stack([gaps, np.zeros(units)]), np.full(3, 3)
    p, low, high = exchanged(values, np.arange(3), zeros, np.random.default_rng(8), 2500)
    assert p.tolist() == theirs.pvalue.tolist()
    # Just inside of its interval a difference is not rejected, just outside it is.
    for end, outwards in ((low, -1), (high, 1)):
        for step, is_rejected in ((-1e-6, False), (1e-6, True)):
            shifted = values.copy()
            shifted[:, :3] -= np.where(np.isfinite(end), end + outwards * step, 0)
            again, *_ = exchanged(shifted, np.arange(3), zeros, np.random.default_rng(8), 2500)
            assert ((again <= 0.05) == is_rejected)[np.isfinite(end)].all()


def test_the_stated_coverage_is_that_of_the_simulation() -> None:
    table = pd.read_csv(project.root() / "data" / "outputs" / "intervals" / "coverage.csv")
    guide = (project.root() / "lib" / "equipoise_cli" / "guide" / "compare.md").read_text()
    shares = table.set_index(["interval", "units"])["coverage"].sort_index()
    t, percentile = shares.loc["t", [10, 20]], shares.loc["percentile", 30]
    assert f"mean in {t.min():.0%} to {t.max():.0%} of the samples" in guide
    assert f"percentile bootstrap, {percentile.min():.0%} to {percentile.max():.0%}" in guide
    # Why fewer units have none, and why the bootstrap begins at 30.
    assert shares.loc["t", 5].max() < 0.9
    assert (shares.loc["t", 10].to_numpy() > shares.loc["percentile", 10].to_numpy()).all()
