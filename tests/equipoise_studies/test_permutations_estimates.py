"""Guards estimates from samples and for unseen systems: exact means, plain draws."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from equipoise.arrays import Floats
from equipoise.permutations.structures import ClassStructure
from equipoise_studies.permutations.estimates import (
    CALIBRATED,
    authors_sample,
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


# --- unseen systems -------------------------------------------------------------------------------


def by_system(found: pd.DataFrame) -> pd.DataFrame:
    """Means over conversations, by prediction and system."""
    errors = found.drop(columns="topic")
    return errors.groupby(["prediction", "run"], sort=False).mean()


def test_a_system_that_moves_as_the_others_do_is_predicted_exactly_and_another_is_not() -> None:
    rng = np.random.default_rng(8)
    moves = rng.uniform(0.3, 0.5, size=(200, 1))
    every = {"1": moves + np.array([0.0, 0.05, 0.1]), "2": moves[:60] + np.array([0.2, 0.0, 0.1])}
    table = by_system(unseen_systems(every, ["a", "b", "c"]))
    for name in ("mean change of the others", "every change of the others"):
        errors = table.loc[name, ["mean error", "sd error", "distance"]].to_numpy()
        assert errors == pytest.approx(0, abs=1e-12)
        assert table.loc[name, "coverage"].to_numpy() == pytest.approx(0.9, abs=0.02)
    alone = table.loc[("the original order alone", "a")]
    gaps = [abs(scores[0, 0] - scores[:, 0].mean()) for scores in every.values()]
    assert alone["mean error"] == pytest.approx(np.mean(gaps))
    assert alone["sd error"] == pytest.approx(np.mean([s[:, 0].std() for s in every.values()]))
    every["1"][:, 2] = rng.uniform(0, 1, size=200)
    turned = by_system(unseen_systems(every, ["a", "b", "c"])).loc[
        ("every change of the others", "c")
    ]
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
    found = pd.concat([unseen_systems(simulated(rng, 5), list("abcde")) for _ in range(12)])
    covered = found.groupby("prediction")["coverage"].mean()
    assert covered["every change of the others"] < 0.87
    assert 0.89 < covered[CALIBRATED] < 0.95


def test_a_band_of_systems_that_move_equally_need_not_be_wider() -> None:
    moves = np.linspace(0.3, 0.5, 201)[:, None]
    every = {str(topic): moves + np.zeros(4) for topic in range(200)}
    assert abs(widening(every)) < 0.002


# --- structures ---------------------------------------------------------------------------------


def test_other_structures_have_the_mean_over_all_their_permutations() -> None:
    scores = np.random.default_rng(5).random((SIZE + 1, SIZE))
    totals = []
    for permutation in STRUCTURE.permutations():
        before = [SIZE, *permutation[:-1]]
        totals.append(scores[before, permutation].sum())
    assert STRUCTURE.mean(scores) == pytest.approx(np.mean(totals))
    with pytest.raises(ValueError, match="scores must be shaped"):
        STRUCTURE.mean(scores[:-1])
