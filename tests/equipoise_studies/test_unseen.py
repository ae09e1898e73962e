"""Guards predictions of unseen systems, and how many orders suffice: exact means, plain draws."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from equipoise.arrays import Floats
from equipoise.orders.class_structures import ClassStructure
from equipoise_studies.permutations.bootstraps import NEEDS, Observed, bootstrapped
from equipoise_studies.permutations.needed import orders_for_ranking, pair_certainty
from equipoise_studies.permutations.unseen import (
    CALIBRATED,
    predicted_means,
    unseen_systems,
    widening,
)

STRUCTURE = ClassStructure.from_classes(["SE", "FT", "SE", "PT", "FT"])
SIZE = STRUCTURE.size


def known(pairs: Floats, alone: Floats) -> Observed:
    """Every valid order, and scores by the previous utterance (systems, n, n)."""
    orders = STRUCTURE.orders()
    scores = pairs[:, orders[:, :-1], orders[:, 1:]]
    first = np.broadcast_to(alone[orders[:, :1]], (len(pairs), len(orders), 1))
    return Observed(STRUCTURE, orders, np.concatenate([first, scores], axis=2), alone)


def test_bootstraps_have_the_means_that_their_definitions_give() -> None:
    rng = np.random.default_rng(3)
    pairs, alone = rng.uniform(0.3, 0.7, (3, SIZE, SIZE)), rng.uniform(0.4, 0.6, SIZE)
    held, draws = known(pairs, alone), 40_000
    found = bootstrapped(held, 1, draws, np.random.default_rng(4))
    assert {*found} == {*NEEDS}
    means = {name: values.mean() for name, values in found.items()}
    assert {len(values) for values in found.values()} == {draws}
    assert means["exact bootstrap"] == pytest.approx(held.scores[1].mean(), abs=2e-3)
    # the first utterance is left out of the mean, as in the program
    assert means["reference bootstrap"] == pytest.approx(
        STRUCTURE.mean_score(pairs[1]) / (SIZE - 1), abs=2e-3
    )
    # what a context adds to the others, to the scores alone; the program takes it away
    others = STRUCTURE.mean_score((pairs[0] + pairs[2]) / 2 - alone, np.zeros(SIZE)) / SIZE
    assert means["mixed-models bootstrap, sign turned"] == pytest.approx(
        alone.mean() + others, abs=2e-3
    )
    assert means["mixed-models bootstrap"] == pytest.approx(alone.mean() - others, abs=2e-3)


def test_bootstraps_of_the_script_move_each_score_by_changes_of_the_conversation() -> None:
    script, alone = np.array([0.5, 0.5, 0.6, 0.5, 0.5]), np.full(SIZE, 0.4)
    held = Observed(STRUCTURE, np.arange(SIZE)[None], script[None, None], alone)
    two = Observed(STRUCTURE, held.orders, np.repeat(held.scores, 2, axis=0), alone)
    rng = np.random.default_rng(5)
    drawn = [bootstrapped(two, 0, 200, rng) for _ in range(300)]
    delta = np.concatenate([one["delta bootstrap"] for one in drawn])
    assert delta.mean() == pytest.approx(
        script.mean() + np.diff(script, prepend=0.5).mean(), abs=2e-3
    )
    moved = np.concatenate([one["multiplicative bootstrap"] for one in drawn])
    assert moved.mean() == pytest.approx(2 * script.mean() - 0.4, abs=2e-3)
    high = Observed(STRUCTURE, two.orders, two.scores + 0.39, alone)
    assert max(bootstrapped(high, 0, 200, rng)["multiplicative bootstrap"]) <= 1


def test_pairs_that_were_not_sampled_count_nothing() -> None:
    pairs, alone = np.full((2, SIZE, SIZE), 0.8), np.full(SIZE, 0.5)
    whole = known(pairs, alone)
    one = Observed(STRUCTURE, whole.orders[:1], whole.scores[:, :1], alone)
    found = bootstrapped(one, 0, 5000, np.random.default_rng(6))
    share = STRUCTURE.adjacency()[
        np.arange(SIZE - 1), np.arange(1, SIZE)
    ].sum()  # of the pairs of the script
    assert found["reference bootstrap"].mean() == pytest.approx(0.8 * share / (SIZE - 1), abs=0.01)
    turned = found["mixed-models bootstrap, sign turned"].mean()
    assert turned == pytest.approx(0.5 + 0.3 * share / SIZE, abs=0.01)


def by_system(found: pd.DataFrame) -> pd.DataFrame:
    """Means over conversations, by prediction and system."""
    errors = found.drop(columns=["needs", "topic"])
    return errors.groupby(["prediction", "run"], sort=False).mean()


def predictions(every: dict[str, Floats], systems: list[str]) -> pd.DataFrame:
    """Predictions of each system, with bootstraps that know the script only."""
    observed = {}
    for topic, scores in every.items():
        script = np.repeat(scores[0][:, None, None], SIZE, axis=2)
        observed[topic] = Observed(STRUCTURE, np.arange(SIZE)[None], script, np.zeros(SIZE))
    return unseen_systems(every, systems, observed, np.random.default_rng(7), draws=50)


def test_a_system_that_moves_as_the_others_do_is_predicted_exactly_and_another_is_not() -> None:
    rng = np.random.default_rng(8)
    moves = rng.uniform(0.3, 0.5, size=(200, 1))
    every = {"1": moves + np.array([0.0, 0.05, 0.1]), "2": moves[:60] + np.array([0.2, 0.0, 0.1])}
    table = by_system(predictions(every, ["a", "b", "c"]))
    for name in ("mean change of the others", "every change of the others"):
        assert table.loc[name, ["mean error", "sd error", "distance"]].to_numpy() == pytest.approx(
            0, abs=1e-12
        )
        assert table.loc[name, "coverage"].to_numpy() == pytest.approx(0.9, abs=0.02)
    alone = table.loc["the script alone"]
    gap = [abs(scores[0, 0] - scores[:, 0].mean()) for scores in every.values()]
    assert alone.loc["a", "mean error"] == pytest.approx(np.mean(gap))
    assert alone.loc["a", "sd error"] == pytest.approx(
        np.mean([scores[:, 0].std() for scores in every.values()])
    )
    every["1"][:, 2] = rng.uniform(0, 1, size=200)
    turned = by_system(predictions(every, ["a", "b", "c"]))
    assert turned.loc[("every change of the others", "c"), "coverage"] < 0.7
    changes = np.delete(every["1"], 2, axis=1) - np.delete(every["1"], 2, axis=1)[0]
    pool = np.clip(every["1"][0, 2] + changes, 0, 1).ravel()
    both = [stats.wasserstein_distance(every["1"][:, 2], pool), 0.0]
    assert turned.loc[("every change of the others", "c"), "distance"] == pytest.approx(
        np.mean(both)
    )


def simulated(rng: np.random.Generator, systems: int, conversations: int = 20) -> dict[str, Floats]:
    """Systems share half of what an order does, and move more or less by conversation."""
    every = {}
    for topic in range(conversations):
        shared, own = rng.normal(size=(300, 1)), rng.normal(size=(300, systems))
        every[str(topic)] = 0.5 + rng.uniform(0.005, 0.06, (1, systems)) * (shared + own)
    return every


def test_the_calibrated_band_holds_nine_tenths_where_the_pooled_one_does_not() -> None:
    rng = np.random.default_rng(9)
    found = pd.concat([predictions(simulated(rng, 5), list("abcde")) for _ in range(12)])
    covered = found.groupby("prediction")["coverage"].mean()
    assert covered["every change of the others"] < 0.87
    assert 0.89 < covered[CALIBRATED] < 0.95
    assert found["prediction"].unique().tolist()[: len(NEEDS)] == list(NEEDS)
    needs = found.drop_duplicates("prediction").set_index("prediction")["needs"]
    assert needs[CALIBRATED] == "the script, all orders of others"


def test_a_band_of_systems_that_move_alike_need_not_be_wider() -> None:
    moves = np.linspace(0.3, 0.5, 201)[:, None]
    every = {str(topic): moves + np.zeros(4) for topic in range(200)}
    assert abs(widening(every)) < 0.002
    assert widening(every, 1.0) == pytest.approx(
        0.01, abs=1e-3
    )  # the ends of the range lie outside the band by so much


def test_a_mean_over_orders_is_predicted_with_the_largest_error_of_a_known_system() -> None:
    rng = np.random.default_rng(10)
    every = {topic: rng.uniform(0.3, 0.4, (50, 1)) + np.zeros(3) for topic in "12"}
    scripts = {"new": {"1": 0.2, "2": 0.3}, "people": {"1": 0.5, "2": 0.7}}
    table = predicted_means(scripts, every, ["people"]).set_index("run")
    change = np.mean([scores[:, 0].mean() - scores[0, 0] for scores in every.values()])
    assert table.loc["new", ["script", "mean"]].tolist() == pytest.approx([0.25, 0.25 + change])
    assert table.loc["new", "high"] - table.loc["new", "low"] == pytest.approx(0, abs=1e-12)
    assert table.loc["new", "band low"] < table.loc["new", "mean"] < table.loc["new", "band high"]
    assert table.loc["people"].tolist() == pytest.approx([0.6] * 6)
    apart = {
        topic: scores + np.r_[0, 0.01 * np.ones(49)][:, None] * [0, 0, 1]
        for topic, scores in every.items()
    }
    row = predicted_means(scripts, apart).set_index("run").loc["new"]
    assert (row["high"] - row["low"]) / 2 == pytest.approx(0.01 * 49 / 50, abs=1e-9)


def test_chances_of_ranking_two_systems_are_those_of_draws() -> None:
    rng = np.random.default_rng(11)
    systems = ["a", "b", "c"]
    every = {
        str(n): 0.4 + np.array([0.0, 0.004, 0.03]) + 0.05 * rng.normal(size=(60 + n, 3))
        for n in range(15)
    }
    chances = pair_certainty(every, systems, [1, 8]).set_index(["pair", "permutations"])
    truth = np.mean([scores.mean(axis=0) for scores in every.values()], axis=0)
    for size in (1, 8):
        right = np.zeros(3)
        for _ in range(1500):
            drawn = [
                scores[rng.choice(len(scores), size, replace=False)].mean(axis=0)
                for scores in every.values()
            ]
            gaps = [
                np.mean(drawn, axis=0)[a] - np.mean(drawn, axis=0)[b]
                for a, b in combinations(range(3), 2)
            ]
            right += (
                np.array(gaps) * [truth[a] - truth[b] for a, b in combinations(range(3), 2)] > 0
            )
        expected = [
            chances.loc[(f"{a} and {b}", size), "chance"] for a, b in combinations(systems, 2)
        ]
        assert right / 1500 == pytest.approx(expected, abs=0.035)
    table = orders_for_ranking(every, systems, [0.5, 0.9]).set_index("wanted")[
        "orders of each conversation"
    ]
    few, many = table["expected Kendall's tau 0.5"], table["expected Kendall's tau 0.9"]
    assert few <= many <= table["the same ranking, 19 times in 20"]
    taus = (
        2
        * pair_certainty(every, systems, [many - 1, many]).groupby("permutations")["chance"].mean()
        - 1
    )
    assert taus[many - 1] < 0.9 <= taus[many]
