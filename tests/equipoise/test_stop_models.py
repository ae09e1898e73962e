"""Guards GFRC2's stopping models and utilities: plain loops, what they share with R, GF, AP."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plain_gfrc as plain
from equipoise.attributes import attribute_sets
from equipoise.measures.gfrc import gain_values, gfrc
from equipoise.measures.gfrc2 import factors, gfrc2, user_clusters
from equipoise.measures.stop_models import STOP_MODELS, UTILITIES
from equipoise.nuggets import NuggetTable, nugget_table

PATIENCE = 60  # about a third of the random nuggets end behind it
tables = st.builds(plain.random_table, st.integers(1, 5), st.integers(1, 8), st.integers(0, 10_000))


def plain_shares(model: str, relevant: list[plain.Nugget], turns: int) -> list[float]:
    """Who leaves at each relevant nugget of one conversation, user by user or by the definition."""
    read = [nugget for nugget in relevant if nugget.end <= PATIENCE]
    if model == "words":
        shares = [1 / PATIENCE for _ in read]
    elif model == "nuggets":
        shares = [1 / len(read) for _ in read]
    elif model == "gain":
        left, shares = 1.0, []
        for nugget in read:
            shares.append(left * (2**nugget.level - 1) / 4)
            left -= shares[-1]
    elif model == "geometric":
        return [(1 - 1 / PATIENCE) ** (nugget.end - 1) / PATIENCE for nugget in relevant]
    elif model == "anywhere":  # one user for each word
        last = [
            max((k for k, n in enumerate(read) if n.end <= word), default=-1)
            for word in range(1, PATIENCE + 1)
        ]
        shares = [last.count(k) / PATIENCE for k in range(len(read))]
    else:  # one user for each turn
        last = [
            max((k for k, n in enumerate(read) if n.turn <= turn), default=-1)
            for turn in range(1, turns + 1)
        ]
        shares = [last.count(k) / turns for k in range(len(read))]
    return shares + [0.0] * (len(relevant) - len(read))


def plain_utility(name: str, relevant: list[plain.Nugget]) -> list[float]:
    if name == "gains":
        return [
            sum((2**n.level - 1) / 4 for n in relevant[: k + 1]) / PATIENCE
            for k in range(len(relevant))
        ]
    if name == "words":
        return [1 / nugget.end for nugget in relevant]
    words = [[n.end - n.start + 1 for n in relevant[: k + 1]] for k in range(len(relevant))]
    graded = [sum(n.level * w for n, w in zip(relevant, own, strict=False)) for own in words]
    return [g / (n.end - sum(own) + g) for g, n, own in zip(graded, relevant, words, strict=True)]


@given(
    given_table=tables,
    model=st.sampled_from(sorted(STOP_MODELS)),
    utility=st.sampled_from(["gnp", *UTILITIES]),
)
def test_every_stop_model_and_utility_agrees_with_a_plain_loop(
    given_table: Any, model: Any, utility: Any
) -> None:
    nuggets, sets = given_table
    options = {"patience": PATIENCE, "stop_model": model, "utility": utility}
    ours = gfrc2(nuggets, sets, **options)
    clusters = user_clusters(nuggets, sets, **options)
    expected, probabilities = [], []
    for conversation in plain.conversations(nuggets):
        relevant = [nugget for nugget in conversation if nugget.level > 0]
        shares = plain_shares(model, relevant, max(nugget.turn for nugget in conversation))
        had = [plain_utility(utility, relevant)]
        for name, attribute in sets.items():
            means = [
                plain.mean([n.membership[name] for n in relevant[: k + 1]])
                for k in range(len(relevant))
            ]
            had.append([plain.similarity(mean, attribute) for mean in means])
        parts = [sum(p * v for p, v in zip(shares, values, strict=True)) for values in had]
        expected.append([*parts, sum(parts) / 3])
        probabilities += shares
    assert ours["measure"].tolist()[:4] == [
        "EGNP" if utility == "gnp" else "EU",
        "EGF",
        "EGF",
        "GFRC2",
    ]
    np.testing.assert_allclose(
        ours["value"].to_numpy().reshape(-1, 4), expected, rtol=1e-11, atol=1e-14
    )
    np.testing.assert_allclose(clusters["probability"], probabilities, rtol=1e-11, atol=1e-15)
    assert (clusters.groupby("run")["probability"].sum() <= 1 + 1e-12).all()
    assert ours["value"].between(0, 1 + 1e-12).all()


@given(given_table=tables, model=st.sampled_from(sorted(STOP_MODELS)))
def test_the_factors_multiply_to_the_scores(given_table: Any, model: Any) -> None:
    nuggets, sets = given_table
    options = {"patience": PATIENCE, "stop_model": model}
    found = factors(user_clusters(nuggets, sets, **options)).set_index(["run", "part"])
    scores = gfrc2(nuggets, sets, **options).set_index(["run", "measure", "attribute"])["value"]
    for (run, part), row in found.iterrows():
        score = scores[run, "EGNP", ""] if part == "utility" else scores[run, "EGF", part]
        assert row["expected"] == pytest.approx(score, abs=1e-14)
        assert row["served"] * row["mean"] == pytest.approx(score, abs=1e-14) or (
            row["served"] == 0 and score == 0
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stop_model": "halves"}, "stop_model must be 'words', 'anywhere', .*, got 'halves'"),
        ({"utility": 3}, "utility must be 'gnp', 'gains' or 'words', got 3"),
    ],
)
def test_wrong_models_are_errors(options: dict[str, Any], message: str) -> None:
    sets = attribute_sets({"A": {"kind": "nominal", "groups": ["x", "y"], "target": "uniform"}})
    rows = {
        "run": "r",
        "topic": "t",
        "turn": 1,
        "start": [1, 2, 3],
        "end": [1, 2, 3],
        "level": 2,
        "A": "1 0",
    }
    with pytest.raises(ValueError, match=message):
        gfrc2(nugget_table(pd.DataFrame(rows), sets), sets, **options)


def test_gains_are_asked_for_only_where_they_are_needed() -> None:
    sets = attribute_sets({"A": {"kind": "nominal", "groups": ["x", "y"], "target": "uniform"}})
    rows = {"run": ["r"], "topic": "t", "turn": 1, "start": 1, "end": 1, "level": 3, "A": "1 0"}
    nuggets = nugget_table(pd.DataFrame(rows), sets)
    assert len(gfrc2(nuggets, sets)) == 3
    with pytest.raises(ValueError, match="gains: the gain of level"):
        gfrc2(nuggets, sets, stop_model="gain")


# --- one family -----------------------------------------------------------------------------------


@given(st.lists(st.booleans(), min_size=1, max_size=30))
def test_egnp_of_one_word_nuggets_is_average_precision(relevant: list[bool]) -> None:
    """Equal shares: AP over what was retrieved; the paper's: AP with L for how many there are."""
    words = np.flatnonzero(relevant) + 1
    if not len(words):
        return
    sets = plain.random_sets()
    rows = {"run": "r", "topic": "t", "turn": 1, "start": words, "end": words, "level": 1}
    nuggets = nugget_table(
        pd.DataFrame(rows).assign(RATINGS="1 0 0 0", ORIGIN="1 0 0 0 0 0 0 0"), sets
    )
    precisions = [sum(relevant[:k]) / k for k in words]
    for model, divisor in (("nuggets", len(words)), ("words", 100)):
        options: Any = {"patience": 100, "stop_model": model}
        found = gfrc2(nuggets, sets, **options)["value"].iloc[0]
        assert found == pytest.approx(sum(precisions) / divisor, rel=1e-12)


@given(given_table=tables)
def test_r_is_the_gain_that_those_expect_who_leave_anywhere(given_table: Any) -> None:
    """R = 2 L / (L + 1) times the expected share of gains: the share pw(n) of users reads n."""
    nuggets, sets = given_table
    gains = {1: 0.5, 2: 1.0}
    r = gfrc(nuggets, sets, patience=PATIENCE, gains=gains).query("measure == 'R'")["value"]
    ours = gfrc2(
        nuggets, sets, patience=PATIENCE, stop_model="anywhere", utility="gains", gains=gains
    )
    expected = ours.query("measure == 'EU'")["value"] * 2 * PATIENCE / (PATIENCE + 1)
    np.testing.assert_allclose(expected, r, rtol=1e-11, atol=1e-14)


@given(given_table=tables)
def test_cumulative_gf_is_the_fairness_of_those_who_leave_at_turns(given_table: Any) -> None:
    """Where every turn has a relevant nugget, and all are read."""
    nuggets, sets = given_table
    frame = plain.frame(nuggets)
    frame["turn"] = frame.groupby("run")["turn"].transform(lambda turn: pd.factorize(turn)[0] + 1)
    every = nugget_table(frame.assign(level=2), sets)
    gf = gfrc(every, sets, patience=10**6, distribution="cumulative").query(
        "measure == 'GF' and attribute != ''"
    )
    egf = gfrc2(every, sets, patience=10**6, stop_model="turns").query("measure == 'EGF'")
    np.testing.assert_allclose(gf["value"], egf["value"], rtol=1e-12, atol=1e-14)


def test_no_stop_model_gives_the_two_round_gf_of_turns_by_themselves() -> None:
    """None fits three conversations: nuggets of one place and gain have one pair of shares."""
    sets = attribute_sets({"A": {"kind": "nominal", "groups": ["x", "y"], "target": "uniform"}})
    groups = {"xx": ["1 0", "1 0"], "xy": ["1 0", "0 1"], "mx": ["1/2 1/2", "1 0"]}
    rows = [
        {
            "run": run,
            "topic": "t",
            "turn": turn + 1,
            "start": 10 * turn + 5,
            "end": 10 * turn + 5,
            "level": 2,
            "A": group,
        }
        for run, both in groups.items()
        for turn, group in enumerate(both)
    ]
    nuggets = nugget_table(pd.DataFrame(rows), sets)
    met = user_clusters(nuggets, sets)["DistrSim A"].to_numpy().reshape(3, 2)
    gf = gfrc(nuggets, sets).query("measure == 'GF' and attribute == 'A'")["value"].to_numpy()
    best, _, rank, _ = np.linalg.lstsq(met, gf, rcond=None)
    assert rank == 2
    assert np.abs(met @ best - gf).max() > 0.05


def test_gf_can_ignore_what_lies_beyond_the_patience() -> None:
    sets = attribute_sets({"A": {"kind": "nominal", "groups": ["x", "y"], "target": "uniform"}})
    rows = {
        "run": "r",
        "topic": "t",
        "turn": [1, 2],
        "start": [5, 101],
        "end": [5, 101],
        "level": 2,
        "A": ["1 0", "0.5 0.5"],
    }
    both = nugget_table(pd.DataFrame(rows), sets)
    first = nugget_table(pd.DataFrame(rows).iloc[:1], sets)

    def scores(table: NuggetTable, **options: Any) -> list[float]:
        return gfrc(table, sets, patience=100, **options)["value"].tolist()

    assert scores(both)[0] == scores(first)[0]
    assert scores(both)[1] > scores(first)[1]
    assert scores(both, beyond_patience="ignored") == scores(first)
    # The last word that a user reads is not beyond.
    on_the_edge = nugget_table(pd.DataFrame(rows).replace(101, 100), sets)
    assert scores(on_the_edge, beyond_patience="ignored") == scores(on_the_edge)
    uniform = {"beyond_patience": "ignored", "empty_turns": "uniform"}
    assert scores(both, **uniform)[1] == pytest.approx((scores(first)[1] + 1) / 2)
    assert gain_values([2]).tolist() == [1.0]
