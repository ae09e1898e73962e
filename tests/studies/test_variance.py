"""Guards models MD0 and MD1, Tukey's test and tiers: statsmodels and SciPy as the second opinion, edge cases."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.anova import anova_lm
from statsmodels.stats.multicomp import pairwise_tukeyhsd

from equipoise.studies.permutations.variance import anova, anova_from_sums, tiers, tukey_hsd
from random_scores import random_scores


@pytest.mark.parametrize("missing", [0, 4])
def test_md0_agrees_with_statsmodels(missing: int) -> None:
    scores = random_scores(1, [1] * 8, 4, missing)
    ours = anova(scores, alpha=1.1).set_index("source")
    theirs = anova_lm(smf.ols("value ~ C(topic) + C(run)", scores).fit(), typ=1)
    for source, term in [("topic", "C(topic)"), ("model", "C(run)"), ("Error", "Residual")]:
        expected = theirs.loc[term]
        np.testing.assert_allclose(ours.loc[source, ["SS", "DF"]].astype(float), expected[["sum_sq", "df"]], rtol=1e-9)
        if source != "Error":
            np.testing.assert_allclose(ours.loc[source, ["F", "p"]].astype(float), expected[["F", "PR(>F)"]], rtol=1e-8)


def test_balanced_md1_agrees_with_statsmodels() -> None:
    scores = random_scores(2, [4] * 5, 3)
    ours = anova(scores, permutation="permutation").set_index("source")
    theirs = anova_lm(smf.ols("value ~ C(topic) + C(topic):C(permutation) + C(run)", scores).fit(), typ=1)
    terms = {"topic": "C(topic)", "permutation(topic)": "C(topic):C(permutation)", "model": "C(run)"}
    for source, term in terms.items():
        columns = ["sum_sq", "df", "F", "PR(>F)"]
        np.testing.assert_allclose(ours.loc[source, ["SS", "DF", "F", "p"]].astype(float), theirs.loc[term, columns])
    assert ours["SS"][:-1].sum() == pytest.approx(ours.loc["Total", "SS"])
    assert ours["DF"][:-1].sum() == ours.loc["Total", "DF"]


@settings(deadline=None, max_examples=15)
@given(
    sizes=st.lists(st.integers(1, 4), min_size=2, max_size=4),
    models=st.integers(2, 4),
    missing=st.integers(0, 3),
    seed=st.integers(0, 50),
)
def test_unbalanced_md1_agrees_with_nested_regressions(sizes: list[int], models: int, missing: int, seed: int) -> None:
    scores = random_scores(seed, sizes, models, missing)
    scores["block"] = scores["topic"] + "-" + scores["permutation"]
    if scores["topic"].nunique() < 2 or scores["run"].nunique() < 2:
        return
    chain = ["value ~ 1", "value ~ C(topic)", "value ~ C(block)", "value ~ C(block) + C(run)"]
    fits = [smf.ols(formula, scores).fit() for formula in chain]
    if fits[-1].df_resid < 1:
        with pytest.raises(ValueError, match="residual degrees of freedom"):
            anova(scores, permutation="permutation")
        return
    ours = anova(scores, permutation="permutation")
    expected = [one.ssr - two.ssr for one, two in itertools.pairwise(fits)]
    np.testing.assert_allclose(ours["SS"][:3], expected, atol=1e-9)
    np.testing.assert_allclose(ours["SS"][3], fits[-1].ssr, atol=1e-9)
    freedom = [one.df_resid - two.df_resid for one, two in itertools.pairwise(fits)]
    assert ours["DF"][:4].tolist() == [*freedom, fits[-1].df_resid]


def test_a_random_nested_factor_tests_the_topics_against_itself() -> None:
    scores = random_scores(3, [3] * 4, 3)
    table: Any = anova(scores, permutation="permutation", topic_against="permutation").set_index("source")
    expected = table.loc["topic", "MS"] / table.loc["permutation(topic)", "MS"]
    assert table.loc["topic", "F"] == pytest.approx(expected)
    assert table.loc["topic", "p"] == pytest.approx(stats.f.sf(expected, 3, 8))
    with pytest.raises(ValueError, match="needs the source"):
        anova(random_scores(3, [1] * 4, 3), topic_against="permutation")


def test_omega_squared_is_given_for_significant_factors_only() -> None:
    table: Any = anova(random_scores(4, [1] * 12, 3)).set_index("source")
    n, surplus = 36, table.loc["topic", "DF"] * (table.loc["topic", "F"] - 1)
    assert table.loc["topic", "p"] < 0.05
    assert table.loc["topic", "omega_squared"] == pytest.approx(surplus / (surplus + n))
    assert table.loc[table["p"] >= 0.05, "omega_squared"].isna().all()


def test_anova_refuses_what_it_cannot_fit() -> None:
    scores = random_scores(5, [1] * 3, 2)
    with pytest.raises(ValueError, match="columns run wanted, found"):
        anova(scores.rename(columns={"run": "system"}))
    with pytest.raises(ValueError, match="not finite"):
        anova(scores.assign(value=np.nan))
    with pytest.raises(ValueError, match="the scores have a cell twice: topic 't0', run 'm0'"):
        anova(pd.concat([scores, scores.iloc[:1]]))
    with pytest.raises(ValueError, match="at least two systems"):
        anova(scores[scores["run"] == "m0"])
    with pytest.raises(ValueError, match="residual degrees of freedom"):
        anova(scores[scores["topic"] == "t0"])
    with pytest.raises(ValueError, match="residual degrees of freedom"):
        anova_from_sums(pd.DataFrame({"source": ["topic"], "SS": [1.0], "DF": [1]}), 5)


def test_tukey_agrees_with_scipy_and_statsmodels() -> None:
    rng = np.random.default_rng(6)
    sizes = {"a": 6, "b": 9, "c": 7}
    scores = pd.DataFrame(
        [(run, rng.normal(loc)) for loc, (run, size) in enumerate(sizes.items()) for _ in range(size)],
        columns=["run", "value"],
    )
    samples = [scores.loc[scores["run"] == run, "value"].to_numpy() for run in sizes]
    freedom = len(scores) - 3
    residual = sum(((sample - sample.mean()) ** 2).sum() for sample in samples)
    table = pd.DataFrame({"source": ["Error"], "MS": [residual / freedom], "DF": [freedom]})
    ours = tukey_hsd(scores, table)
    theirs = stats.tukey_hsd(*samples)
    interval = theirs.confidence_interval()
    rows: Any = ours.itertuples()
    for row in rows:
        i, j = list(sizes).index(row.a), list(sizes).index(row.b)
        assert row.difference == pytest.approx(theirs.statistic[i, j])
        assert row.p == pytest.approx(theirs.pvalue[i, j], abs=1e-9)
        assert (row.low, row.high) == pytest.approx((interval.low[i, j], interval.high[i, j]), rel=1e-6)
    second = pairwise_tukeyhsd(scores["value"], scores["run"])
    np.testing.assert_array_equal(ours["different"], second.reject)
    np.testing.assert_allclose(ours["difference"], -second.meandiffs)


def test_tiers_place_every_system_once() -> None:
    scores = pd.DataFrame({"run": ["a", "b", "c", "d"], "value": [0.1, 0.5, 0.4, 0.15]})
    names = sorted(scores["run"])
    alike = [{"b", "c"}, {"a", "d"}, {"c", "d"}]  # c and d do not differ, but d differs from b, the head of the tier
    pairs = pd.DataFrame(itertools.combinations(names, 2), columns=["a", "b"])
    pairs["different"] = [{a, b} not in alike for a, b in zip(pairs["a"], pairs["b"], strict=True)]
    assert tiers(scores, pairs)[["run", "tier"]].to_numpy().tolist() == [["b", 1], ["c", 1], ["d", 2], ["a", 2]]
    with pytest.raises(ValueError, match="no comparison of d with a"):
        tiers(scores, pairs[~((pairs["a"] == "a") & (pairs["b"] == "d"))])
