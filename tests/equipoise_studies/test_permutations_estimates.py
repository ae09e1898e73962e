"""Guards estimates from samples and for unseen systems: exact means, plain draws."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from equipoise.arrays import Floats
from equipoise.permutations.structures import ClassStructure
from equipoise_studies.permutations.estimates import (
    CALIBRATED,
    Observed,
    authors_sample,
    bootstrapped,
    pair_certainty,
    permutations_for_ranking,
    predicted_means,
    resampled_classes,
    sampling_error,
    standard_errors,
    unseen_systems,
    widening,
)

CLASSES = ["SE", "FT", "SE", "PT", "FT"]
STRUCTURE = ClassStructure.from_classes(CLASSES)
SIZE = STRUCTURE.size


# --- samples --------------------------------------------------------------------------------------


def test_the_authors_sampler_draws_ft_utterances_late() -> None:
    drawn = authors_sample(STRUCTURE, CLASSES, 40_000, np.random.default_rng(1))
    distinct, counts = np.unique(drawn, axis=0, return_counts=True)
    np.testing.assert_array_equal(distinct, STRUCTURE.permutations())
    # Blocks: first (0), FT (1), SE with its PT (2, 3), FT (4). Picking among the available ones,
    # the first is picked before the SE block with probability 1/2, and then either of three comes
    # next; else the order of the two FTs alone is left.
    shares = dict(zip(map(tuple, distinct.tolist()), counts / len(drawn), strict=True))
    se_first = shares[0, 2, 3, 1, 4] + shares[0, 2, 3, 4, 1]
    assert se_first == pytest.approx(1 / 2 + 1 / 2 * 1 / 3, abs=0.01)
    assert shares[0, 1, 4, 2, 3] == pytest.approx(1 / 2 * 1 / 6, abs=0.01)


def test_the_sampling_error_is_that_of_drawing_without_replacement() -> None:
    rng = np.random.default_rng(6)
    population = {"1": rng.random(7), "2": rng.random(5)}
    exact = pd.DataFrame(
        [("a", t, len(v), v.mean(), v.std(), v.min(), v.max()) for t, v in population.items()],
        columns=["run", "topic", "count", "mean", "sd", "minimum", "maximum"],
    )
    draws = []
    for _ in range(4000):
        means = [rng.choice(values, 3, replace=False).mean() for values in population.values()]
        draws.append(np.mean(means))
    (error,) = standard_errors(exact, [3])["standard error"]
    assert error == pytest.approx(np.std(draws), rel=0.05)
    rows = [("a", t, p, v[p % len(v)]) for t, v in population.items() for p in range(4)]
    scores = pd.DataFrame(rows, columns=["run", "topic", "permutation", "value"])
    table = sampling_error(exact, scores).iloc[0]
    assert table["standard error"] == pytest.approx(error)
    sampled_mean = np.mean([v[1:4].mean() for v in population.values()])
    assert table["sampled mean"] == pytest.approx(sampled_mean)
    assert table["error"] == pytest.approx(sampled_mean - table["mean"])
    # With one of two permutations drawn, the whole variance remains: (2 - 1) / (2 - 1).
    two = pd.DataFrame({"run": ["a"], "topic": ["1"], "count": [2], "sd": [0.3]})
    assert standard_errors(two, [1])["standard error"].tolist() == pytest.approx([0.3])


def test_probabilities_of_ranking_two_systems_are_those_of_draws() -> None:
    rng = np.random.default_rng(11)
    systems = ["a", "b", "c"]
    pairs = list(combinations(range(3), 2))
    every = {}
    for n in range(15):
        noise = 0.05 * rng.normal(size=(60 + n, 3))
        every[str(n)] = 0.4 + np.array([0.0, 0.004, 0.03]) + noise
    certainty = pair_certainty(every, systems, [1, 8])
    truth = np.mean([scores.mean(axis=0) for scores in every.values()], axis=0)
    for size in (1, 8):
        right = np.zeros(3)
        for _ in range(1500):
            drawn = []
            for scores in every.values():
                drawn.append(scores[rng.choice(len(scores), size, replace=False)].mean(axis=0))
            means = np.mean(drawn, axis=0)
            right += [(means[a] - means[b]) * (truth[a] - truth[b]) > 0 for a, b in pairs]
        names = [f"{systems[a]} and {systems[b]}" for a, b in pairs]
        assert right / 1500 == pytest.approx(certainty.loc[size, names].tolist(), abs=0.035)
    table = permutations_for_ranking(every, systems)
    needed = table.set_index("criterion")["permutations per conversation"]
    few, many = needed["expected Kendall's tau 0.8"], needed["expected Kendall's tau 0.9"]
    assert few <= many <= needed["the same ranking in 95% of samples"]
    taus = 2 * pair_certainty(every, systems, [many - 1, many]).mean(axis=1) - 1
    assert taus[many - 1] < 0.9 <= taus[many]


# --- bootstraps -----------------------------------------------------------------------------------


def known(pairs: Floats, alone: Floats) -> Observed:
    """Every valid permutation, and scores by the previous utterance (systems, n, n)."""
    every = STRUCTURE.permutations()
    scores = pairs[:, every[:, :-1], every[:, 1:]]
    first = np.broadcast_to(alone[every[:, :1]], (len(pairs), len(every), 1))
    return Observed(STRUCTURE, every, np.concatenate([first, scores], axis=2), alone)


def mean_of_pairs(pairs: Floats) -> float:
    """Mean over all permutations of the sum over adjacent pairs."""
    return STRUCTURE.spread(np.vstack([pairs, np.zeros(SIZE)])).mean


def test_bootstraps_have_the_means_that_their_definitions_give() -> None:
    rng = np.random.default_rng(3)
    pairs, alone = rng.uniform(0.3, 0.7, (3, SIZE, SIZE)), rng.uniform(0.4, 0.6, SIZE)
    observation = known(pairs, alone)
    found = bootstrapped(observation, 1, 40_000, np.random.default_rng(4))
    means = {name: values.mean() for name, values in found.items()}
    assert means["exact bootstrap"] == pytest.approx(observation.scores[1].mean(), abs=2e-3)
    # the first utterance is left out of the mean, as in the program
    reference = mean_of_pairs(pairs[1]) / (SIZE - 1)
    assert means["reference bootstrap"] == pytest.approx(reference, abs=2e-3)
    # A context adds this to the others' scores of the utterances alone; the program subtracts it.
    others = mean_of_pairs((pairs[0] + pairs[2]) / 2 - alone) / SIZE
    turned = means["mixed-models bootstrap, sign reversed"]
    assert turned == pytest.approx(alone.mean() + others, abs=2e-3)
    assert means["mixed-models bootstrap"] == pytest.approx(alone.mean() - others, abs=2e-3)


def test_bootstraps_of_the_original_order_move_each_score_by_changes_in_it() -> None:
    original, alone = np.array([0.5, 0.5, 0.6, 0.5, 0.5]), np.full(SIZE, 0.4)
    scores = np.repeat(original[None, None], 2, axis=0)
    two = Observed(STRUCTURE, np.arange(SIZE)[None], scores, alone)
    rng = np.random.default_rng(5)
    drawn = [bootstrapped(two, 0, 200, rng) for _ in range(300)]
    delta = np.concatenate([one["delta bootstrap"] for one in drawn])
    expected = original.mean() + np.diff(original, prepend=0.5).mean()
    assert delta.mean() == pytest.approx(expected, abs=2e-3)
    moved = np.concatenate([one["multiplicative bootstrap"] for one in drawn])
    assert moved.mean() == pytest.approx(2 * original.mean() - 0.4, abs=2e-3)
    high = Observed(STRUCTURE, two.permutations, two.scores + 0.39, alone)
    assert max(bootstrapped(high, 0, 200, rng)["multiplicative bootstrap"]) <= 1


def test_pairs_that_were_not_sampled_count_nothing() -> None:
    pairs, alone = np.full((2, SIZE, SIZE), 0.8), np.full(SIZE, 0.5)
    whole = known(pairs, alone)
    one = Observed(STRUCTURE, whole.permutations[:1], whole.scores[:, :1], alone)
    found = bootstrapped(one, 0, 5000, np.random.default_rng(6))
    # share of the pairs of the original order
    share = STRUCTURE.adjacency()[np.arange(SIZE - 1), np.arange(1, SIZE)].sum()
    assert found["reference bootstrap"].mean() == pytest.approx(0.8 * share / (SIZE - 1), abs=0.01)
    turned = found["mixed-models bootstrap, sign reversed"].mean()
    assert turned == pytest.approx(0.5 + 0.3 * share / SIZE, abs=0.01)


# --- unseen systems -------------------------------------------------------------------------------


def by_system(found: pd.DataFrame) -> pd.DataFrame:
    """Means over conversations, by prediction and system."""
    errors = found.drop(columns=["needs", "topic"])
    return errors.groupby(["prediction", "run"], sort=False).mean()


def predictions(every: dict[str, Floats], systems: list[str]) -> pd.DataFrame:
    """Predictions of each system, with bootstraps of the original order only."""
    observations = {}
    for topic, scores in every.items():
        original = np.repeat(scores[0][:, None, None], SIZE, axis=2)
        observations[topic] = Observed(STRUCTURE, np.arange(SIZE)[None], original, np.zeros(SIZE))
    return unseen_systems(every, systems, observations, np.random.default_rng(7), draws=50)


def test_a_system_that_moves_as_the_others_do_is_predicted_exactly_and_another_is_not() -> None:
    rng = np.random.default_rng(8)
    moves = rng.uniform(0.3, 0.5, size=(200, 1))
    every = {"1": moves + np.array([0.0, 0.05, 0.1]), "2": moves[:60] + np.array([0.2, 0.0, 0.1])}
    table = by_system(predictions(every, ["a", "b", "c"]))
    for name in ("mean change of the others", "every change of the others"):
        errors = table.loc[name, ["mean error", "sd error", "distance"]].to_numpy()
        assert errors == pytest.approx(0, abs=1e-12)
        assert table.loc[name, "coverage"].to_numpy() == pytest.approx(0.9, abs=0.02)
    alone = table.loc[("the original order alone", "a")]
    gaps = [abs(scores[0, 0] - scores[:, 0].mean()) for scores in every.values()]
    assert alone["mean error"] == pytest.approx(np.mean(gaps))
    assert alone["sd error"] == pytest.approx(np.mean([s[:, 0].std() for s in every.values()]))
    every["1"][:, 2] = rng.uniform(0, 1, size=200)
    turned = by_system(predictions(every, ["a", "b", "c"])).loc[("every change of the others", "c")]
    assert turned["coverage"] < 0.7
    changes = np.delete(every["1"], 2, axis=1) - np.delete(every["1"], 2, axis=1)[0]
    pool = np.clip(every["1"][0, 2] + changes, 0, 1).ravel()
    distances = [stats.wasserstein_distance(every["1"][:, 2], pool), 0.0]
    assert turned["distance"] == pytest.approx(np.mean(distances))


def simulated(rng: np.random.Generator, systems: int) -> dict[str, Floats]:
    """Systems share half of the effect of a permutation, more or less by conversation."""
    every = {}
    for topic in range(20):
        shared, own = rng.normal(size=(300, 1)), rng.normal(size=(300, systems))
        every[str(topic)] = 0.5 + rng.uniform(0.005, 0.06, (1, systems)) * (shared + own)
    return every


def test_the_calibrated_band_contains_nine_tenths_where_the_pooled_one_does_not() -> None:
    rng = np.random.default_rng(9)
    found = pd.concat([predictions(simulated(rng, 5), list("abcde")) for _ in range(12)])
    covered = found.groupby("prediction")["coverage"].mean()
    assert covered["every change of the others"] < 0.87
    assert 0.89 < covered[CALIBRATED] < 0.95


def test_a_band_of_systems_that_move_equally_need_not_be_wider() -> None:
    moves = np.linspace(0.3, 0.5, 201)[:, None]
    every = {str(topic): moves + np.zeros(4) for topic in range(200)}
    assert abs(widening(every)) < 0.002


def test_a_mean_over_permutations_is_predicted_with_the_largest_error_of_a_known_system() -> None:
    rng = np.random.default_rng(10)
    every = {topic: rng.uniform(0.3, 0.4, (50, 1)) + np.zeros(3) for topic in "12"}
    originals = {
        "new": pd.Series({"1": 0.2, "2": 0.3}),
        "people": pd.Series({"1": 0.5, "2": 0.7}),
    }
    table = predicted_means(originals, every, ["people"]).set_index("run")
    change = np.mean([scores[:, 0].mean() - scores[0, 0] for scores in every.values()])
    new = table.loc["new"]
    assert new[["original", "mean"]].tolist() == pytest.approx([0.25, 0.25 + change])
    assert new["high"] - new["low"] == pytest.approx(0, abs=1e-12)
    assert new["band low"] < new["mean"] < new["band high"]
    assert table.loc["people"].tolist() == pytest.approx([0.6] * 6)
    # One system has higher scores in all permutations but the original order.
    raised = np.r_[0, 0.01 * np.ones(49)][:, None] * [0, 0, 1]
    apart = {topic: scores + raised for topic, scores in every.items()}
    row = predicted_means(originals, apart).set_index("run").loc["new"]
    assert (row["high"] - row["low"]) / 2 == pytest.approx(0.01 * 49 / 50, abs=1e-9)


# --- errors of a classifier -----------------------------------------------------------------------


def test_classes_are_resampled_with_the_shares_of_the_agreement() -> None:
    utterances = pd.DataFrame(
        {"topic": ["1"] * 2000 + ["2"], "class": ["SE"] * 1000 + ["PT"] * 1001}
    )
    agreement = pd.DataFrame(
        {"SE": [3, 1, 0], "PT": [0, 0, 5]}, index=pd.Index(["SE", "FT", "PT"], name="class")
    )
    first, second = resampled_classes(utterances, agreement, 2, np.random.default_rng(3))
    assert not first.equals(second)
    for drawn in (first, second):
        assert drawn[0] == "SE"  # a first utterance keeps its class
        assert (drawn[1:1000] == "SE").mean() == pytest.approx(0.75, abs=0.05)
        assert set(drawn[1:1000]) == {"SE", "FT"}
        assert set(drawn[1000:]) == {"PT"}
    assert utterances["class"].value_counts().tolist() == [1001, 1000]


def test_other_structures_have_the_mean_over_all_their_permutations() -> None:
    scores = np.random.default_rng(5).random((SIZE + 1, SIZE))
    totals = []
    for permutation in STRUCTURE.permutations():
        before = [SIZE, *permutation[:-1]]
        totals.append(scores[before, permutation].sum())
    assert STRUCTURE.mean(scores) == pytest.approx(np.mean(totals))
    with pytest.raises(ValueError, match="scores must be shaped"):
        STRUCTURE.mean(scores[:-1])
