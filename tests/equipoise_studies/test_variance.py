"""Guards MD0 to MD3, Tukey's test, tiers: statsmodels and SciPy as second opinion, edge cases."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy import stats
from statsmodels.stats.anova import anova_lm
from statsmodels.stats.multicomp import pairwise_tukeyhsd

from equipoise.orders.variance import (
    OVER_CONVERSATIONS,
    anova,
    anova_from_sums,
    tiers,
    tukey_hsd,
)
from random_scores import random_scores


@pytest.mark.parametrize("missing", [0, 4])
def test_md0_agrees_with_statsmodels(missing: int) -> None:
    scores = random_scores(1, [1] * 8, 4, missing)
    ours = anova(scores, alpha=1.1).set_index("source")
    theirs = anova_lm(smf.ols("value ~ C(topic) + C(run)", scores).fit(), typ=1)
    for source, term in [("topic", "C(topic)"), ("model", "C(run)"), ("Error", "Residual")]:
        expected = theirs.loc[term]
        np.testing.assert_allclose(
            ours.loc[source, ["SS", "DF"]].astype(float), expected[["sum_sq", "df"]], rtol=1e-9
        )
        if source != "Error":
            np.testing.assert_allclose(
                ours.loc[source, ["F", "p"]].astype(float), expected[["F", "PR(>F)"]], rtol=1e-8
            )


# the formulas that each design adds, in turn; b: the order, v: the utterance within its topic
TERMS = {
    "MD1": ["C(topic)", "C(b)", "C(run)", "C(topic):C(run)"],
    "MD2": ["C(topic)", "C(v)", "C(b)", "C(run)", "C(topic):C(run)", "C(b):C(run)"],
    "MD3": ["C(topic)", "C(v)", "C(b)", "C(run)", "C(topic):C(run)", "C(topic):C(permutation)"],
}


def by_utterance(seed: int, sizes: list[int], models: int, missing: int) -> pd.DataFrame:
    """Scores of every model on every utterance of the topics' permutations; some rows are out."""
    rng = np.random.default_rng(seed)
    each = random_scores(seed, sizes, models).drop(columns="value")
    lengths = {f"t{number}": 2 + number % 2 for number in range(len(sizes))}
    table = pd.concat([each.assign(utterance=str(u)) for u in range(3)])
    table = table[table["utterance"].astype(int) < table["topic"].map(lengths)].reset_index(
        drop=True
    )
    table["value"] = rng.normal(size=len(table)) + table["run"].map({"m0": 0.5}).fillna(0.0)
    return table.iloc[np.sort(rng.permutation(len(table))[missing:])].reset_index(drop=True)


@pytest.mark.filterwarnings("ignore:The design matrix is rank-deficient")
@pytest.mark.parametrize("design", ["MD1", "MD2", "MD3"])
@pytest.mark.parametrize("interaction", [False, True])
@pytest.mark.parametrize(
    ("sizes", "missing"), [([3, 3, 3, 3], 0), ([2, 4, 1, 3], 5), ([4, 2, 3], 9)]
)
def test_sums_of_squares_agree_with_statsmodels(
    design: Any, interaction: bool, sizes: list[int], missing: int
) -> None:
    scores = (by_utterance if design != "MD1" else random_scores)(
        len(sizes) + missing, sizes, 3, missing
    )
    utterance = scores["utterance"] if design != "MD1" else ""
    named = scores.assign(b=scores["topic"] + scores["permutation"], v=scores["topic"] + utterance)
    terms = [term for term in TERMS[design] if interaction or term != "C(topic):C(run)"]
    chain = ["1", *(" + ".join(terms[:count]) for count in range(1, len(terms) + 1))]
    fits = [smf.ols(f"value ~ {right}", named).fit() for right in chain]
    ours = anova(scores, design, interaction=interaction)
    expected = [one.ssr - two.ssr for one, two in itertools.pairwise(fits)]
    np.testing.assert_allclose(ours["SS"][:-1], [*expected, fits[-1].ssr], atol=1e-9)
    freedom = [one.df_resid - two.df_resid for one, two in itertools.pairwise(fits)]
    assert ours["DF"][:-1].tolist() == [*freedom, fits[-1].df_resid]
    assert (ours["SS"].iloc[-1], ours["DF"].iloc[-1]) == (
        pytest.approx(fits[0].ssr),
        fits[0].df_resid,
    )


@pytest.mark.filterwarnings("ignore:The design matrix is rank-deficient")
def test_balanced_md1_has_the_f_of_statsmodels() -> None:
    scores = random_scores(2, [4] * 5, 3)
    formula = "value ~ C(topic) + C(topic):C(permutation) + C(run) + C(topic):C(run)"
    theirs = anova_lm(smf.ols(formula, scores).fit(), typ=1)
    ours = anova(scores, "MD1", interaction=True).set_index("source")
    terms = {
        "topic": "C(topic)",
        "permutation(topic)": "C(topic):C(permutation)",
        "model": "C(run)",
    }
    for source, term in {**terms, "topic x model": "C(topic):C(run)"}.items():
        columns = ["sum_sq", "df", "F", "PR(>F)"]
        np.testing.assert_allclose(
            ours.loc[source, ["SS", "DF", "F", "p"]].astype(float), theirs.loc[term, columns]
        )
    among_topics: Any = ours["SS"] / theirs["sum_sq"].sum()
    np.testing.assert_allclose(ours["eta_squared"].dropna(), among_topics[:4])
    np.testing.assert_allclose(
        ours["f_squared"].dropna(), ours["SS"][:4] / theirs.loc["Residual", "sum_sq"]
    )


def test_topic_x_permutation_adds_nothing_to_nested_permutations() -> None:
    table = (
        anova(by_utterance(7, [3, 3], 3, 0), "MD3").set_index("source").loc["topic x permutation"]
    )
    assert (table["SS"], table["DF"]) == (pytest.approx(0, abs=1e-12), 0)
    assert table[["MS", "F", "p"]].isna().all()


def test_a_random_factor_is_tested_against_another() -> None:
    scores = random_scores(3, [3] * 4, 3)
    table: Any = anova(
        scores,
        "MD1",
        interaction=True,
        against={"topic": "permutation(topic)", **OVER_CONVERSATIONS},
    )
    table = table.set_index("source")
    for source, other, freedom in [
        ("topic", "permutation(topic)", (3, 8)),
        ("model", "topic x model", (2, 6)),
    ]:
        expected = table.loc[source, "MS"] / table.loc[other, "MS"]
        assert table.loc[source, "F"] == pytest.approx(expected)
        assert table.loc[source, "p"] == pytest.approx(stats.f.sf(expected, *freedom))
    with pytest.raises(ValueError, match=r"needs the source permutation\(topic\)"):
        anova(random_scores(3, [1] * 4, 3), against={"topic": "permutation(topic)"})


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
        [
            (run, rng.normal(loc))
            for loc, (run, size) in enumerate(sizes.items())
            for _ in range(size)
        ],
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
        assert (row.low, row.high) == pytest.approx(
            (interval.low[i, j], interval.high[i, j]), rel=1e-6
        )
    second = pairwise_tukeyhsd(scores["value"], scores["run"])
    np.testing.assert_array_equal(ours["different"], second.reject)
    np.testing.assert_allclose(ours["difference"], -second.meandiffs)


def test_tiers_place_every_system_once() -> None:
    scores = pd.DataFrame({"run": ["a", "b", "c", "d"], "value": [0.1, 0.5, 0.4, 0.15]})
    names = sorted(scores["run"])
    alike = [
        {"b", "c"},
        {"a", "d"},
        {"c", "d"},
    ]  # c and d do not differ, but d differs from b, the head of the tier
    pairs = pd.DataFrame(itertools.combinations(names, 2), columns=["a", "b"])
    pairs["different"] = [{a, b} not in alike for a, b in zip(pairs["a"], pairs["b"], strict=True)]
    assert tiers(scores, pairs)[["run", "tier"]].to_numpy().tolist() == [
        ["b", 1],
        ["c", 1],
        ["d", 2],
        ["a", 2],
    ]
    with pytest.raises(ValueError, match="no comparison of d with a"):
        tiers(scores, pairs[~((pairs["a"] == "a") & (pairs["b"] == "d"))])
