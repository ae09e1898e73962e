"""Guards comparisons: SciPy, statsmodels, printed examples, plain loops and simulation."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.formula.api import ols
from statsmodels.stats.multitest import multipletests

from equipoise.errors import Note
from equipoise.statistics import (
    compare_pairs,
    compare_systems,
    leaderboard,
    units_to_decide,
)
from equipoise.statistics.pairs import largest_differences, residual_variance
from equipoise_cli.mean_intervals import with_mean_intervals
from equipoise_compendium import project
from random_scores import random_scores

REFERENCES = project.root() / "tests" / "references"


def sakai() -> pd.DataFrame:
    wide = pd.read_csv(REFERENCES / "sakai_table_5.1.csv", dtype={"topic": str})
    return wide.melt("topic", var_name="run", value_name="value")


def tidy(values: Any, measure: str = "M", attribute: str = "") -> pd.DataFrame:
    table = (
        pd.DataFrame(np.asarray(values, dtype=float))
        .rename_axis("topic")
        .rename_axis(columns="run")
    )
    long = table.stack().rename("value").reset_index()  # noqa: PD013
    names = {"run": "r" + long["run"].astype(str), "topic": "t" + long["topic"].astype(str)}
    return long.assign(**names, measure=measure, attribute=attribute)


# --- tests of differences -------------------------------------------------------------------------


def test_effects_and_t_are_those_of_the_book() -> None:
    printed = pd.read_csv(REFERENCES / "sakai_effects.csv")
    tukey = compare_pairs(sakai(), test="tukey", resamples=99, rng=np.random.default_rng(0))
    assert tukey[["a", "b"]].to_numpy().tolist() == printed[["a", "b"]].to_numpy().tolist()
    np.testing.assert_allclose(tukey["effect"], printed["tukey_effect"], atol=5e-5)
    wide = sakai().pivot_table(index="topic", columns="run", values="value").to_numpy()
    np.testing.assert_allclose(residual_variance(wide), printed["residual_variance"], atol=5e-5)
    t = compare_pairs(sakai()).iloc[0]
    np.testing.assert_allclose(
        t[["statistic", "p", "effect"]].astype(float), printed.iloc[0, 2:5].astype(float), atol=5e-4
    )


def test_residual_variance_is_that_of_statsmodels() -> None:
    scores = random_scores(1, [1] * 7, 4)
    wide = scores.pivot_table(index="topic", columns="run", values="value").to_numpy()
    fitted = ols("value ~ C(topic) + C(run)", scores).fit()
    assert residual_variance(wide) == pytest.approx(fitted.mse_resid)


def test_randomised_tukey_agrees_with_every_exchange() -> None:
    """Hand-made: all (3!)^4 ways for three systems to change places over four topics."""
    values = np.random.default_rng(2).normal(size=(4, 3)).round(2)
    every = [
        np.ptp(np.mean(rows, axis=0))
        for rows in itertools.product(*map(itertools.permutations, values.tolist()))
    ]
    assert len(every) == 6**4
    found = compare_pairs(
        tidy(values), test="tukey", resamples=20_000, rng=np.random.default_rng(0)
    )
    for row in found.itertuples():
        exact = np.mean(np.array(every) >= abs(row.difference) - 1e-12)
        assert row.p == pytest.approx(exact, abs=0.012)
        assert row.p_corrected == row.p


def test_randomised_tukey_agrees_with_a_permutation_test_of_scipy() -> None:
    values = np.random.default_rng(3).normal(size=(5, 3)) + np.array([0, 0.5, 1.5])
    whole = stats.permutation_test(
        tuple(values.T),
        lambda *runs: np.ptp(np.mean(runs, axis=-1)),
        permutation_type="samples",
        vectorized=False,
        alternative="greater",
    )
    found = compare_pairs(
        tidy(values), test="tukey", resamples=20_000, rng=np.random.default_rng(1)
    )
    widest = found.loc[found["difference"].abs().idxmax()]
    assert widest["p"] == pytest.approx(whole.pvalue, abs=0.012)


def test_tukey_of_two_systems_is_the_permutation_test() -> None:
    scores = random_scores(4, [1] * 9, 2)
    exact = compare_pairs(scores, test="permutation", rng=np.random.default_rng(0))
    drawn = compare_pairs(scores, test="tukey", resamples=20_000, rng=np.random.default_rng(0))
    assert drawn["p"][0] == pytest.approx(exact["p"][0], abs=0.012)
    assert drawn["difference"][0] == pytest.approx(exact["difference"][0])


def test_tukey_of_many_topics_nears_its_normal_form() -> None:
    values = np.random.default_rng(5).normal(size=(400, 4)) + np.array([0, 0, 0.1, 0.25])
    found = compare_pairs(tidy(values), test="tukey", resamples=4000, rng=np.random.default_rng(0))
    studentised = np.abs(found["difference"]) / np.sqrt(residual_variance(values) / 400)
    normal = stats.studentized_range.sf(studentised, 4, 3 * 399)
    np.testing.assert_allclose(found["p"], normal, atol=0.03)


@pytest.mark.parametrize("test", ["tukey", "bootstrap"])
def test_intervals_say_what_the_test_says(test: Any) -> None:
    """An interval leaves 0 out where p is at most 1 - level; one baseline draws nothing apart."""
    values = np.random.default_rng(6).normal(size=(12, 6)) + np.linspace(0, 2, 6)
    options: Any = {"test": test, "resamples": 499, "level": 0.9, "correction": "none"}
    found = compare_pairs(tidy(values), rng=np.random.default_rng(0), **options)
    apart = (found["low"] > 0) | (found["high"] < 0)
    assert 0 < apart.sum() < len(found)
    assert apart.tolist() == (found["p"] <= 0.1 + 1e-9).tolist()
    for row in found[
        found["p"].between(0.003, 0.9)
    ].itertuples():  # at its own p it leaves 0 out, just above not
        for level, out in ((1 - row.p, True), (1 - row.p + 1e-4, False)):
            again = compare_pairs(
                tidy(values), rng=np.random.default_rng(0), **options | {"level": level}
            )
            low, high = again.loc[row.Index, ["low", "high"]]
            assert (low > 1e-12 or high < -1e-12) == out
    one = compare_pairs(tidy(values), baseline="r0", rng=np.random.default_rng(0), **options)
    assert one["difference"].tolist() == pytest.approx((-found["difference"][:5]).tolist())
    if test == "tukey":
        assert one["p"].tolist() == found["p"][:5].tolist()


def test_wilcoxon_and_holm_agree_with_scipy_and_statsmodels() -> None:
    scores = random_scores(7, [1] * 12, 3)
    wide = scores.pivot_table(index="topic", columns="run", values="value")
    for row in compare_pairs(scores, test="wilcoxon", correction="holm").itertuples():
        theirs = stats.wilcoxon(wide[str(row.a)], wide[str(row.b)])
        assert (row.statistic, row.p) == pytest.approx((theirs.statistic, theirs.pvalue))
    same = compare_pairs(tidy([[1, 1], [2, 2], [4, 4]]), test="wilcoxon").iloc[0]
    assert (same["p"], same["difference"]) == (1, 0)


@given(
    steps=st.lists(st.integers(-4, 4), min_size=2, max_size=10),
    zeros=st.integers(0, 10),
    level=st.sampled_from([0.5, 0.8, 0.95]),
    test=st.sampled_from(["t", "wilcoxon", "permutation", "bootstrap", "tukey"]),
)
def test_p_and_interval_agree_and_ranks_are_exact(
    steps: list[int], zeros: int, level: float, test: Any
) -> None:
    """Scores in tenths, many of them equal: five topics at +0.1 and ten at 0 have p = 2/32."""
    gaps = np.array([*steps, *[0] * zeros])
    scores = tidy(np.column_stack([gaps, np.zeros(len(gaps))]) / 10)
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Note)
        row = compare_pairs(scores, test=test, level=level, resamples=499, rng=rng).iloc[0]
    assert (row["low"] > 0 or row["high"] < 0) <= (
        row["p"] <= 1 - level + 1e-9 or np.isnan(row["p"])
    )
    assert not np.isinf(row[["low", "high"]].astype(float)).any()
    changed = gaps[gaps != 0]
    if test == "wilcoxon" and len(changed):
        ranks = stats.rankdata(np.abs(changed))
        signs = np.array(list(itertools.product([0, 1], repeat=len(changed))))
        sums = signs @ ranks
        smaller = min(ranks[changed > 0].sum(), ranks[changed < 0].sum())
        assert row["statistic"] == smaller
        assert row["p"] == pytest.approx(min(1, 2 * (sums <= smaller).mean()))


def test_wilcoxon_of_many_topics_is_the_normal_approximation_of_scipy() -> None:
    whole = np.random.default_rng(12).integers(0, 10, size=(90, 2))
    theirs = stats.wilcoxon(whole[:, 0] - whole[:, 1])
    row = compare_pairs(tidy(whole / 10), test="wilcoxon").iloc[0]
    assert (row["statistic"], row["p"]) == pytest.approx((theirs.statistic, theirs.pvalue))


def test_the_bootstrap_test_is_near_t_and_calm_where_nothing_moves() -> None:
    values = np.random.default_rng(8).normal(size=(60, 2)) + np.array([0, 0.3])
    t = compare_pairs(tidy(values)).iloc[0]
    drawn = compare_pairs(tidy(values), test="bootstrap", rng=np.random.default_rng(0)).iloc[0]
    assert drawn[["p", "low", "high"]].tolist() == pytest.approx(
        t[["p", "low", "high"]].tolist(), abs=0.05
    )
    equal = compare_pairs(
        tidy([[1, 1], [2, 2], [4, 4]]), test="bootstrap", resamples=99, rng=np.random.default_rng(0)
    )
    assert equal[["p", "low", "high"]].to_numpy().tolist() == [[1, 0, 0]]


def test_no_test_finds_more_than_its_level_where_there_is_nothing() -> None:
    """Five equal systems, 300 times: the share of studies in which tukey finds any difference."""
    rng = np.random.default_rng(9)
    found = 0
    for _ in range(300):
        values = rng.exponential(size=(15, 5)) + rng.normal(size=(15, 1))
        drawn = largest_differences(values, rng, 199)
        found += (drawn >= np.ptp(values.mean(axis=0))).mean() <= 0.05
    assert 0.02 < found / 300 < 0.09


# --- topics ---------------------------------------------------------------------------------------


def test_a_mean_is_no_topic_and_what_lacks_is_named() -> None:
    scores = random_scores(10, [1] * 4, 3)
    means = scores.groupby("run", as_index=False)["value"].mean()
    for empty in ("", None):
        pd.testing.assert_frame_equal(
            compare_pairs(pd.concat([scores, means.assign(topic=empty)])), compare_pairs(scores)
        )
    holes = scores.iloc[1:].copy()
    holes.iloc[-1, -1] = np.nan
    with pytest.raises(
        ValueError,
        match=r"^2 scores .*m0 has no score for topic t0; run m2 has no score for topic t3",
    ):
        compare_pairs(holes)
    with pytest.warns(Note, match="compared over the 2 topics that all have"):
        kept = compare_pairs(holes, unpaired="drop")
    pd.testing.assert_frame_equal(kept, compare_pairs(scores[scores["topic"].isin(["t1", "t2"])]))


# --- leaderboards ---------------------------------------------------------------------------------


def test_intervals_of_means_agree_with_scipy() -> None:
    scores = sakai()
    board, joint = leaderboard(scores), leaderboard(scores, mean_intervals="simultaneous")
    assert board["run"].tolist() == ["a", "b", "c"]
    for (_, row), (_, wider) in zip(board.iterrows(), joint.iterrows(), strict=True):
        values = scores[scores["run"] == row["run"]].sort_values("topic")["value"]
        for found, level in ((row, 0.95), (wider, 1 - 0.05 / 3)):
            expected = stats.ttest_1samp(values, 0).confidence_interval(level)
            assert (found["low"], found["high"]) == pytest.approx((expected.low, expected.high))
            assert values.min() <= found["low"] < found["mean"] < found["high"] <= values.max()


def test_the_interval_of_a_mean_is_the_same_whoever_writes_it() -> None:
    """That of a score with its intervals, and that of a leaderboard; none leaves the scores."""
    scores = tidy(np.random.default_rng(14).beta(0.3, 0.5, size=(10, 3)), "GFR").assign(
        attribute=""
    )
    board = leaderboard(scores, level=0.9, resamples=499, seed=3).set_index("run")
    shuffled = scores.sample(frac=1, random_state=1)
    table = with_mean_intervals(shuffled, level=0.9, resamples=499, seed=3)
    means = table[table["topic"] == ""].set_index("run").loc[board.index]
    assert means[["value", "low", "high"]].to_numpy() == pytest.approx(
        board[["mean", "low", "high"]].to_numpy(), rel=1e-14
    )


def test_a_comparison_has_it_all_and_keeps_groups_apart() -> None:
    rng = np.random.default_rng(11)
    parts = [
        tidy(rng.normal(size=(20, 3)) + np.array([0, 0, shift]), "GF", name)
        for name, shift in (("A", 3), ("B", 0))
    ]
    scores = pd.concat([*parts, tidy(rng.normal(size=(20, 3)), "R")], ignore_index=True)
    found = compare_systems(scores, "GF", ["attribute"], resamples=999)
    assert found.leaderboard["attribute"].tolist() == ["A"] * 3 + ["B"] * 3
    assert found.leaderboard["higher_than"].tolist() == ["r0 r1", "", "", "", "", ""]
    alone = compare_systems(parts[1], "GF", resamples=999)
    pd.testing.assert_frame_equal(
        found.comparisons[found.comparisons["attribute"] == "B"]
        .drop(columns="attribute")
        .reset_index(drop=True),
        alone.comparisons,
    )
    best = found.topics[found.topics["attribute"] == "A"]
    assert sorted(set(best["run"])) == ["r0", "r1"]
    assert (best["value"] - best["difference"]).tolist() == pytest.approx(best["against"].tolist())
    assert len(compare_systems(scores, "R", baseline="r0").comparisons) == 2
    both = compare_systems(scores, "GF", ["attribute"], test="t", correction="holm").comparisons
    holm = multipletests(both["p"], method="holm")[1]  # over the tables of both sets
    np.testing.assert_allclose(both["p_corrected"], holm)
    with pytest.raises(ValueError, match=r"must be between -1e\+100 and 1e\+100, got 1e\+308"):
        compare_systems(scores.assign(value=1e308), "R")
    with pytest.raises(ValueError, match="GF has scores of several attribute sets"):
        compare_systems(scores, "GF")
    with pytest.raises(ValueError, match="no scores of MAP; the scores have GF, R"):
        compare_systems(scores, "MAP")
    with pytest.raises(ValueError, match="name one measure of GF, R"):
        compare_systems(scores)


def test_a_small_difference_says_which_run_is_better() -> None:
    """The first run of a pair, by name, is the better one by less than 1."""
    rng = np.random.default_rng(13)
    values = rng.random((30, 1)) + np.array([0.3, 0.0]) + rng.normal(scale=0.01, size=(30, 2))
    board = compare_systems(tidy(values), resamples=999).leaderboard
    assert board[["run", "higher_than"]].to_numpy().tolist() == [["r0", "r1"], ["r1", ""]]


def test_units_to_decide_shrink_the_interval_to_the_gap() -> None:
    needed = units_to_decide(60, -0.05, 0.13, 0.05)
    error = 0.18 / 2 / stats.norm.ppf(0.975) * np.sqrt(60 / needed)
    assert stats.norm.sf(stats.norm.ppf(0.975) - 0.05 / error) == pytest.approx(0.8, abs=0.005)


@pytest.mark.parametrize("test", ["t", "wilcoxon", "permutation", "bootstrap", "tukey"])
@pytest.mark.parametrize(
    ("values", "difference"), [([0.3, 0.5, 0.9, 0.2, 0.4, 0.8], 0.1), ([1, 2, 3, 0, 1, 2], 1)]
)
def test_a_difference_without_variation_has_no_t_and_no_effect(
    test: Any, values: list[float], difference: float
) -> None:
    scores = pd.DataFrame({"run": [*"aaabbb"], "topic": [*"123123"], "value": values})
    with pytest.warns(Note, match="^no variation: the difference of a and b is the same"):
        row = compare_pairs(scores, test=test, rng=np.random.default_rng(0)).iloc[0]
    assert row["difference"] == pytest.approx(difference)
    assert np.isnan(row["effect"])
    has_p = test in ("wilcoxon", "permutation", "tukey")
    assert np.isnan(row["p_corrected"]) != has_p
    if has_p:  # two of the eight exchanges of signs are as extreme
        assert row["p"] == pytest.approx(0.25, abs=0.01)
    six = pd.concat([scores, scores.assign(topic=scores["topic"] + "x")]).assign(value=1.0)
    same = compare_pairs(six, test=test, rng=np.random.default_rng(0)).iloc[0]
    assert (same["p"], same["effect"]) == (1, 0)


def test_a_pair_without_p_counts_among_the_comparisons() -> None:
    values = tidy([[1, 1.1, 2], [2, 2.1, 5], [4, 4.1, 8]])
    with pytest.warns(Note, match="no variation"):
        pairs = compare_pairs(values)
    assert np.isnan(pairs["p_corrected"]).tolist() == [True, False, False]
    assert (pairs["p_corrected"] / pairs["p"])[1:].tolist() == pytest.approx([3, 3])


@pytest.mark.parametrize("test", ["permutation", "bootstrap", "tukey"])
def test_drawn_numbers_depend_on_no_order_and_no_type_of_ids(test: Any) -> None:
    rng = np.random.default_rng(2)
    index = pd.MultiIndex.from_product([[*"abc"], range(1, 31)], names=["run", "topic"])
    scores = pd.DataFrame({"value": rng.random(90), "measure": "P"}, index).reset_index()
    found = compare_systems(scores, test=test, resamples=99)
    others = [scores.astype({"topic": "str"}), scores.sample(frac=1, random_state=3)]
    for other in others:
        again = compare_systems(other, test=test, resamples=99)
        pd.testing.assert_frame_equal(again.comparisons, found.comparisons)
        pd.testing.assert_frame_equal(again.leaderboard, found.leaderboard)
