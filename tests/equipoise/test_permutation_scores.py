"""Guards what permutations say of systems: plain loops, statsmodels and SciPy as second opinion."""

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

from equipoise.permutations.scores import (
    conversation_spread,
    largest_leads,
    preference,
    ranking_stability,
    score_matrix,
)
from equipoise.permutations.variance import anova, anova_from_sums, honest_difference, tiers
from random_scores import random_scores


def scores_of(seed: int, sizes: list[int], systems: int) -> pd.DataFrame:
    """Scores of every system on every permutation of the topics."""
    return random_scores(seed, sizes, systems).astype({"permutation": int})


def rounded_scores(seed: int, sizes: dict[str, int], runs: int) -> pd.DataFrame:
    """Scores with one decimal, so that some are equal."""
    rng = np.random.default_rng(seed)
    rows = [
        (f"r{run}", topic, permutation, round(float(rng.random()), 1))
        for run in range(runs)
        for topic, size in sizes.items()
        for permutation in range(size)
    ]
    return pd.DataFrame(rows, columns=["run", "topic", "permutation", "value"])


@settings(deadline=None, max_examples=20)
@given(
    seed=st.integers(0, 99),
    sizes=st.dictionaries(st.sampled_from(["31", "32", "4"]), st.integers(1, 4), min_size=1),
    runs=st.integers(2, 3),
)
def test_tables_agree_with_plain_loops(seed: int, sizes: dict[str, int], runs: int) -> None:
    scores = rounded_scores(seed, sizes, runs)
    known: dict[tuple[str, str, int], float] = scores.set_index(["run", "topic", "permutation"])[
        "value"
    ].to_dict()
    names = [f"r{run}" for run in range(runs)]

    def over(run: str, topic: str) -> list[float]:
        return [known[run, topic, permutation] for permutation in range(sizes[topic])]

    leads = largest_leads(scores)
    wins = preference(scores).set_index(["topic", "a", "b"])
    spread = conversation_spread(scores).set_index(["topic", "permutation"])
    for number, topic in enumerate(sizes):
        means = np.mean([over(run, topic) for run in names], axis=0)
        for permutation, mean in enumerate(means):
            row = spread.loc[(topic, permutation)]
            assert row["value"] == pytest.approx(mean)
            assert row["rank"] == pytest.approx((means > mean + 1e-12).mean())
        for (i, a), (j, b) in itertools.product(enumerate(names), repeat=2):
            if a == b:
                others = [over(other, topic) for other in names if other != a]
                gaps = np.subtract(over(a, topic), np.mean(others, axis=0))
            else:
                gaps = np.subtract(over(a, topic), over(b, topic))
                row = wins.loc[(topic, a, b)]
                assert row["wins"] == pytest.approx((gaps > 1e-12).mean())
                assert row["ties"] == pytest.approx((np.abs(gaps) <= 1e-12).mean())
            assert leads[number, i, j] == pytest.approx(max(gaps))


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


def test_rejects_incomplete_tables() -> None:
    scores = pd.DataFrame(
        {"run": list("aabb"), "topic": "1", "permutation": [0, 1, 0, 1], "value": [5.0, 1, 3, 1]}
    )
    rng = np.random.default_rng(0)
    incomplete = "topic 1: every system must have one score for the same permutations"
    for table in (
        scores.iloc[1:],
        scores[scores["permutation"] > 0],
        pd.concat([scores, scores.iloc[:1]]),
        scores.assign(value=[np.nan, 1, 3, 1]),
    ):
        with pytest.raises(ValueError, match=incomplete):
            score_matrix(table)
    with pytest.raises(ValueError, match="permutation"):
        score_matrix(scores.drop(columns="permutation"))
    with pytest.raises(ValueError, match="topic 1: a permutation other than the original order"):
        ranking_stability(scores[scores["permutation"] == 0], [1], rng)
    alone = scores[scores["run"] == "a"]
    for function in (largest_leads, anova, lambda table: ranking_stability(table, [1], rng)):
        with pytest.raises(ValueError, match="at least two systems"):
            function(alone[alone["permutation"] == 0])
    with pytest.raises(ValueError, match="the reference has no b"):
        ranking_stability(scores, [1], rng, reference=pd.Series({"a": 1.0}))


# --- analysis of variance -------------------------------------------------------------------------

TERMS = {
    "topic": "C(topic)",
    "permutation(topic)": "C(topic):C(permutation)",
    "model": "C(run)",
    "topic x model": "C(topic):C(run)",
}


@pytest.mark.filterwarnings("ignore:The design matrix is rank-deficient")
@pytest.mark.parametrize(
    ("design", "interaction", "sizes"),
    [
        ("MD0", False, [1] * 8),
        ("MD1", False, [4, 4, 4]),
        ("MD1", False, [2, 4, 1, 3]),
        ("MD1", True, [4, 4, 4]),
        ("MD1", True, [2, 4, 2, 3]),
    ],
)
def test_anova_agrees_with_statsmodels(design: Any, interaction: bool, sizes: list[int]) -> None:
    scores = scores_of(len(sizes), sizes, 3)
    ours = anova(scores, design, interaction=interaction, alpha=1.1).set_index("source")
    sources = [source for source in TERMS if source in ours.index]
    # in turn, so that statsmodels, too, takes each term after those before it
    named = scores.assign(cell=scores["topic"] + scores["permutation"].astype(str))
    chain = ["1"]
    for source in sources:
        chain.append(f"{chain[-1]} + {TERMS[source].replace('C(topic):C(permutation)', 'C(cell)')}")
    fits = [smf.ols(f"value ~ {right}", named).fit() for right in chain]
    squares = [one.ssr - two.ssr for one, two in itertools.pairwise(fits)]
    freedom = [one.df_resid - two.df_resid for one, two in itertools.pairwise(fits)]
    np.testing.assert_allclose(ours.loc[sources, "SS"], squares, atol=1e-9)
    assert ours.loc[sources, "DF"].tolist() == freedom
    assert ours.loc["Error", ["SS", "DF"]].tolist() == pytest.approx(
        [fits[-1].ssr, fits[-1].df_resid]
    )
    assert ours.loc["Total", ["SS", "DF"]].tolist() == pytest.approx([fits[0].ssr, len(scores) - 1])
    # each factor against the residual, the systems against their interaction where it is taken out
    tested_by = {"model": "topic x model" if interaction else "Error"}
    for source in sources:
        denominator = ours.loc[tested_by.get(source, "Error")]
        ratio = ours.loc[source, "MS"] / denominator["MS"]
        assert ours.loc[source, "F"] == pytest.approx(ratio)
        p = stats.f.sf(ratio, ours.loc[source, "DF"], denominator["DF"])
        assert ours.loc[source, "p"] == pytest.approx(p)
        surplus = ours.loc[source, "DF"] * (ratio - 1)
        omega_squared = surplus / (surplus + len(scores))
        assert ours.loc[source, "omega_squared"] == pytest.approx(omega_squared)
        assert ours.loc[source, "eta_squared"] == pytest.approx(
            ours.loc[source, "SS"] / fits[0].ssr
        )


@pytest.mark.filterwarnings("ignore:The design matrix is rank-deficient")
def test_balanced_md1_has_the_f_of_statsmodels() -> None:
    scores = scores_of(2, [4] * 5, 3)
    formula = "value ~ C(topic) + C(topic):C(permutation) + C(run)"
    theirs = anova_lm(smf.ols(formula, scores).fit(), typ=1)
    ours = anova(scores, "MD1").set_index("source")
    for source in ("topic", "permutation(topic)", "model"):
        expected = theirs.loc[TERMS[source], ["sum_sq", "df", "F", "PR(>F)"]]
        np.testing.assert_allclose(ours.loc[source, ["SS", "DF", "F", "p"]].astype(float), expected)


def test_omega_squared_is_given_for_significant_factors_only() -> None:
    table = anova(scores_of(4, [1] * 12, 3)).set_index("source")
    assert table.loc["topic", "p"] < 0.05
    assert table.loc["topic", "omega_squared"] > 0
    assert table.loc[table["p"] >= 0.05, "omega_squared"].isna().all()
    with pytest.raises(ValueError, match="residual degrees of freedom"):
        anova(scores_of(5, [1], 2))
    with pytest.raises(ValueError, match="residual degrees of freedom"):
        anova_from_sums(pd.DataFrame({"source": ["topic"], "SS": [1.0], "DF": [1]}), 5)


def test_the_honest_difference_is_that_of_scipys_test() -> None:
    rng = np.random.default_rng(6)
    samples = [rng.normal(loc, size=8) for loc in range(3)]
    theirs = stats.tukey_hsd(*samples)
    residual = sum(((sample - sample.mean()) ** 2).sum() for sample in samples)
    ours = honest_difference(residual / 21, 21, 3, 8)
    low, high = theirs.confidence_interval()
    assert ours == pytest.approx((high[0, 1] - low[0, 1]) / 2, rel=1e-5)
    differ = np.abs(theirs.statistic) >= ours
    np.testing.assert_array_equal(differ, theirs.pvalue < 0.05)


def test_tiers_place_every_system_once() -> None:
    means = pd.Series({"a": 0.10, "b": 0.50, "c": 0.42, "d": 0.18, "e": 0.36})
    # c and e do not differ, but e differs from b, the head of the tier
    assert tiers(means, 0.1).to_dict() == {"b": 1, "c": 1, "e": 2, "d": 3, "a": 3}
    assert tiers(means, 0.07).to_dict() == {"b": 1, "c": 2, "e": 2, "d": 3, "a": 4}
    # Without residuals the difference is 0, and only equal means are alike.
    assert tiers(pd.Series({"a": 0.1, "b": 0.2, "c": 0.1}), 0.0).to_dict() == {
        "b": 1,
        "a": 2,
        "c": 2,
    }
    with pytest.raises(ValueError, match="every system must have a mean, got none for b"):
        tiers(pd.Series({"a": 0.1, "b": np.nan}), 0.1)
