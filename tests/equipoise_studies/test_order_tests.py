"""Guards randomisation tests over orders, the mixed model: null data, statsmodels, plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy import stats

from equipoise.orders.class_structures import ClassStructure
from equipoise.orders.variance import OVER_CONVERSATIONS, anova
from equipoise_studies.permutations.order_tests import (
    model_randomisation,
    order_randomisation,
    relabelled,
    shared_by_systems,
    variance_components,
)
from random_scores import random_scores

STRUCTURES = {
    "a": ClassStructure.from_classes(["SE", "SE", "PT", "FT", "SE", "FT"]),
    "b": ClassStructure.from_classes(["SE", "FT", "FT", "SE", "PT", "PT"]),
}


def scores_of_pairs(
    rng: np.random.Generator, shared: float, systems: int = 3
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Twelve orders of each conversation, and every order's scores by a few systems.

    The context of a system is the previous utterance.

    Each system has a score of its own for each pair of neighbours, and a shared one besides.
    """
    drawn, every = {}, {}
    for topic, structure in STRUCTURES.items():
        pairs = rng.normal(size=(systems, structure.size, structure.size))
        pairs += shared * rng.normal(size=pairs.shape[1:])
        orders = structure.orders()
        every[topic] = pairs[:, orders[:, :-1], orders[:, 1:]].sum(axis=2).T
        drawn[topic] = structure.sample(12, rng, distinct=True)
    return drawn, every


def test_renaming_maps_the_valid_orders_onto_themselves() -> None:
    for structure in STRUCTURES.values():
        orders = structure.orders()
        renamed = relabelled(structure, orders, 8, np.random.default_rng(1))
        assert renamed.shape == (8, *orders.shape)
        for one in renamed:
            assert sorted(structure.rank(one).tolist()) == list(range(structure.count))
        assert len({tuple(one.ravel()) for one in renamed}) > 1
        first, second = structure.adjacency().nonzero()
        counts = [  # how often two orders share a pair of neighbours, one draw after another
            np.sort(
                np.bincount(one[:, :-1].ravel() * 9 + one[:, 1:].ravel(), minlength=81)
            ).tolist()
            for one in renamed
        ]
        assert counts[0] == counts[-1]
        assert len(first) == len(second) == np.count_nonzero(counts[0])


def test_the_level_of_the_randomisation_over_orders_is_right_where_that_of_the_f_test_is_not() -> (
    None
):
    rng = np.random.default_rng(2)
    renaming, f_test = [], []
    for _ in range(200):
        f, p = order_randomisation(STRUCTURES, *scores_of_pairs(rng, 0.0), rng, draws=39)
        renaming.append(p <= 0.05)
        f_test.append(stats.f.sf(f, 22, 44) <= 0.05)
    assert stats.binomtest(sum(renaming), 200, 0.05).pvalue > 0.01
    assert stats.binomtest(sum(f_test), 200, 0.05, alternative="greater").pvalue < 0.01
    found = [
        order_randomisation(STRUCTURES, *scores_of_pairs(rng, 1.5), rng, draws=39)[1]
        for _ in range(20)
    ]
    assert sum(p <= 0.05 for p in found) >= 15
    assert min(found) == 1 / 40  # what was observed is one of the draws


def test_both_statistics_are_those_of_the_analysis_of_variance() -> None:
    rng = np.random.default_rng(3)
    drawn, every = scores_of_pairs(rng, 0.5)
    rows = [
        (topic, number, f"m{system}", value)
        for topic, structure in STRUCTURES.items()
        for number, values in enumerate(every[topic][structure.rank(drawn[topic])])
        for system, value in enumerate(values)
    ]
    scores = pd.DataFrame(rows, columns=["topic", "permutation", "run", "value"])
    table = anova(scores, "MD1", interaction=True, against=OVER_CONVERSATIONS).set_index("source")
    assert order_randomisation(STRUCTURES, drawn, every, rng, draws=1)[0] == pytest.approx(
        table.loc["permutation(topic)", "F"]
    )
    means = scores.groupby(["run", "topic"])["value"].mean().reset_index()
    assert model_randomisation(means, rng, draws=1)[0] == pytest.approx(table.loc["model", "F"])


def test_the_level_of_the_exchange_of_systems_is_right() -> None:
    rng = np.random.default_rng(4)
    found = []
    for seed in range(300):
        skewed = random_scores(seed, [1] * 6, 3).drop(columns="permutation")
        skewed["value"] = rng.exponential(size=len(skewed)) ** 2
        found.append(model_randomisation(skewed, rng, draws=99)[1])
    assert stats.binomtest(sum(p <= 0.1 for p in found), 300, 0.1).pvalue > 0.01
    apart = random_scores(5, [1] * 12, 3).drop(columns="permutation")
    apart["value"] += apart["run"].map({"m2": 5.0}).fillna(0.0)
    assert model_randomisation(apart, rng, draws=99)[1] == 0.01


def test_components_are_those_of_restricted_maximum_likelihood() -> None:
    scores = random_scores(6, [5] * 6, 4)
    rng = np.random.default_rng(6)
    for columns, scale in [
        (["topic"], 1.0),
        (["topic", "permutation"], 0.8),
        (["topic", "run"], 0.9),
    ]:
        group = scores.groupby(columns).ngroup()
        scores["value"] += scale * rng.normal(size=group.max() + 1)[group]
    components: Any = variance_components(anova(scores, "MD1", interaction=True), 5, 4).set_index(
        "component"
    )
    formulas = {"permutation": "0 + C(permutation)", "run": "0 + C(run)"}
    fit = smf.mixedlm(
        "value ~ C(run)", scores, groups="topic", re_formula="1", vc_formula=formulas
    ).fit(reml=True)
    theirs = [float(fit.cov_re.iloc[0, 0]), *fit.vcomp.tolist(), fit.scale]
    np.testing.assert_allclose(components["variance"], theirs, rtol=2e-3)
    assert components["share"].sum() == pytest.approx(1)


def test_what_systems_share_is_one_where_they_are_alike_and_none_where_they_are_not() -> None:
    rng = np.random.default_rng(7)
    scores = random_scores(7, [30] * 6, 4).astype({"permutation": int})
    apart, low, high = shared_by_systems(scores, rng)
    assert low < apart < high
    assert low < 0 < high
    scores["value"] = scores.groupby(["topic", "permutation"])["value"].transform("first")
    assert shared_by_systems(scores, rng) == pytest.approx((1.0, 1.0, 1.0))
    noisy = scores.assign(value=scores["value"] + 0.5 * rng.normal(size=len(scores)))
    table: Any = variance_components(anova(noisy, "MD1", interaction=True), 30, 4).set_index(
        "component"
    )["variance"]
    nested = table["permutation(topic)"]
    assert shared_by_systems(noisy, rng)[0] == pytest.approx(nested / (nested + table["residual"]))
