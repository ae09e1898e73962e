"""Guards Tables 2 and 3 and Figures 1 and 2 of the permutation study by loops in plain Python."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise.measures.orders import preference
from equipoise.orders.effects import (
    conversation_spread,
    largest_differences,
    performance,
    sampling_error,
    standard_errors,
)
from equipoise_studies.permutations.scoring import score_alternatives


def random_scores(seed: int, sizes: dict[str, int], runs: int) -> pd.DataFrame:
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
    scores = random_scores(seed, sizes, runs)
    known: dict[tuple[str, str, int], float] = scores.set_index(["run", "topic", "permutation"])[
        "value"
    ].to_dict()
    names = [f"r{run}" for run in range(runs)]

    def over(run: str, topic: str) -> list[float]:
        return [known[run, topic, permutation] for permutation in range(sizes[topic])]

    table = performance(scores).set_index("run")
    leads = largest_differences(scores).set_index("model")
    wins = preference(scores).set_index(["topic", "a", "b"])
    for run in names:
        assert table.loc[run, "original"] == pytest.approx(
            np.mean([known[run, topic, 0] for topic in sizes])
        )
        assert table.loc[run, "minimum"] == pytest.approx(
            np.mean([min(over(run, topic)) for topic in sizes])
        )
        assert table.loc[run, "mean"] == pytest.approx(
            np.mean([np.mean(over(run, topic)) for topic in sizes])
        )
        assert table.loc[run, "maximum"] == pytest.approx(
            np.mean([max(over(run, topic)) for topic in sizes])
        )
        rivals = [other for other in names if other != run]
        apart = [
            max(
                known[run, t, p] - np.mean([known[other, t, p] for other in rivals])
                for p in range(sizes[t])
            )
            for t in sizes
        ]
        assert leads.loc[run, run] == pytest.approx(np.mean(apart))
    for (a, b), topic in itertools.product(itertools.permutations(names, 2), sizes):
        gaps = np.subtract(over(a, topic), over(b, topic))
        assert wins.loc[(topic, a, b), "wins"] == pytest.approx((gaps > 1e-12).mean())
        assert wins.loc[(topic, a, b), "ties"] == pytest.approx((np.abs(gaps) <= 1e-12).mean())
    for a, b in itertools.permutations(names, 2):
        largest = [max(np.subtract(over(a, topic), over(b, topic))) for topic in sizes]
        assert leads.loc[a, b] == pytest.approx(np.mean(largest))
    spread = conversation_spread(scores).set_index(["topic", "permutation"])
    for topic in sizes:
        means = np.mean([over(run, topic) for run in names], axis=0)
        for permutation, mean in enumerate(means):
            assert spread.loc[(topic, permutation), "value"] == pytest.approx(mean)
            assert spread.loc[(topic, permutation), "rank"] == pytest.approx(
                (means > mean + 1e-12).mean()
            )


def test_alternatives_of_a_query_are_scored_one_by_one() -> None:
    rng = np.random.default_rng(3)
    documents = [f"d{number}" for number in range(6)]
    qrels = pd.DataFrame(
        [
            (q, d, int(rng.integers(0, 5)))
            for q in ("a", "b", "c")
            for d in [*documents, "elsewhere"]
        ],
        columns=["query", "document", "grade"],
    )
    grades = qrels.set_index(["query", "document"])["grade"].to_dict()
    queries = rng.choice(["a", "b", "c"], 40).tolist()
    rankings = np.array([rng.permutation(6)[:3] for _ in queries])
    discount = 1 / np.log2([2, 3, 4])
    expected = [
        np.dot([grades[query, documents[column]] for column in ranking], discount)
        / np.dot(
            sorted((g for (q, _), g in grades.items() if q == query), reverse=True)[:3], discount
        )
        for query, ranking in zip(queries, rankings, strict=True)
    ]
    np.testing.assert_allclose(score_alternatives(queries, rankings, documents, qrels), expected)
    with pytest.raises(ValueError, match="no judgement for x, y"):
        score_alternatives(["y", "a", "x"], rankings[:3], documents, qrels)
    with pytest.raises(ValueError, match="2 rankings are wanted"):
        score_alternatives(["a", "b"], rankings[:3], documents, qrels)
    with pytest.raises(ValueError, match="no measure 'nDGC@3'"):
        score_alternatives(["a"], rankings[:1], documents, qrels, "nDGC@3")
    with pytest.raises(ValueError, match="nDCG@4 looks further than the 3 ranks"):
        score_alternatives(["a"], rankings[:1], documents, qrels, "nDCG@4")
    every = np.arange(6)[np.newaxis]
    assert (
        score_alternatives(["a"], every, documents, qrels, "nDCG@10") < 1
    )  # one more document cannot be retrieved


def test_the_sampling_error_is_that_of_drawing_without_replacement() -> None:
    rng = np.random.default_rng(6)
    population = {"1": rng.random(7), "2": rng.random(5)}
    exact = pd.DataFrame(
        [("a", t, len(v), v.mean(), v.std(), v.min(), v.max()) for t, v in population.items()],
        columns=["run", "topic", "orders", "mean", "sd", "minimum", "maximum"],
    )
    draws = [
        np.mean([rng.choice(values, 3, replace=False).mean() for values in population.values()])
        for _ in range(4000)
    ]
    assert standard_errors(exact, [3])["standard error"].tolist() == pytest.approx(
        [np.std(draws)], rel=0.05
    )
    rows = [("a", t, p, v[p % len(v)]) for t, v in population.items() for p in range(4)]
    scores = pd.DataFrame(rows, columns=["run", "topic", "permutation", "value"])
    table = sampling_error(exact, scores).iloc[0]
    assert table["standard error"] == pytest.approx(
        standard_errors(exact, [3])["standard error"].iloc[0]
    )
    assert table["sampled mean"] == pytest.approx(
        np.mean([v[1:4].mean() for v in population.values()])
    )
    assert table["error"] == pytest.approx(table["sampled mean"] - table["mean"])
    with pytest.raises(ValueError, match="no exact row of a for topics 2"):
        sampling_error(exact.iloc[:1], scores)


def test_one_order_of_two_leaves_the_whole_variance() -> None:
    """With one of two orders drawn, nothing of the variance is gone: (2 - 1) / (2 - 1)."""
    row = {"run": "a", "topic": "1", "mean": 0.5, "minimum": 0.2, "maximum": 0.8}
    exact = pd.DataFrame([row | {"orders": 2, "sd": 0.3}])
    assert standard_errors(exact, [1])["standard error"].tolist() == pytest.approx([0.3])


def test_refuses_tables_with_holes() -> None:
    scores = random_scores(9, {"1": 3}, 2)
    with pytest.raises(
        ValueError, match="topic 1: every system needs one score for the same permutations"
    ):
        performance(scores.iloc[1:])
    with pytest.raises(ValueError, match="topic 1: every system needs one score"):
        performance(scores[scores["permutation"] > 0])
    with pytest.raises(ValueError, match="topic 1: every system needs one score"):
        performance(pd.concat([scores, scores.iloc[:1]]))
    with pytest.raises(ValueError, match="columns permutation wanted"):
        performance(scores.drop(columns="permutation"))
    with pytest.raises(ValueError, match="at least two systems"):
        largest_differences(scores[scores["run"] == "r0"])
