"""Guards exposure over relevance: by hand, for rankers that are fair by construction, and not."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

import equipoise
from equipoise.errors import InputError
from equipoise.measures.exposure import exposure_verdicts

door: Any = equipoise  # its names come when they are first used
exposure_over_relevance = door.exposure_over_relevance

TOPICS, POOL = 40, 100
BASE_RATE = {"PhD": 0.1, "Prof": 0.4}


def track(seed: int, penalty: float = 0.0) -> dict[str, Any]:
    """A run that ranks by relevance and noise; a penalty makes it unfair to PhD students.

    Professors have more documents, more relevant ones and higher levels.
    """
    rng = np.random.default_rng(seed)
    index = pd.MultiIndex.from_product([range(TOPICS), range(POOL)], names=["topic", "document"])
    table = index.to_frame(index=False).astype("str")
    table["group"] = rng.choice(["PhD", "Prof"], len(table), p=[0.3, 0.7])
    table["document"] = table["topic"] + "-" + table["document"]
    is_relevant = rng.random(len(table)) < table["group"].map(BASE_RATE)
    is_high = rng.random(len(table)) < np.where(table["group"] == "Prof", 0.6, 0.2)
    table["level"] = is_relevant * (1 + is_high)
    noise = rng.normal(size=len(table))
    table["score"] = table["level"] + noise - penalty * (table["group"] == "PhD")
    return {
        "runs": table[["topic", "document", "score"]],
        "qrels": table[["topic", "document", "level"]],
        "memberships": {"stage": table[["document", "group"]]},
    }


def by_hand(data: dict[str, Any], cutoff: int) -> dict[str, float]:
    """Sums document by document."""
    group = dict(data["memberships"]["stage"].itertuples(index=False))
    received, expected = dict.fromkeys(BASE_RATE, 0.0), dict.fromkeys(BASE_RATE, 0.0)
    for topic, judged in data["qrels"].groupby("topic"):
        run = data["runs"][data["runs"]["topic"] == topic].sort_values("score", ascending=False)
        ranked = {name: rank for rank, name in enumerate(run["document"], start=1)}
        for level in (1, 2):
            documents = judged.loc[judged["level"] == level, "document"].tolist()
            given = [
                1 / math.log2(ranked[name] + 1) if ranked[name] <= cutoff else 0.0
                for name in documents
            ]
            for name, exposure in zip(documents, given, strict=True):
                received[group[name]] += exposure
                expected[group[name]] += sum(given) / len(given)
    return {name: received[name] / expected[name] for name in received}


def test_it_is_the_sum_over_documents() -> None:
    data = track(1, penalty=0.5)
    table = exposure_over_relevance(**data, cutoff=15, resamples=9).set_index("group")
    assert table["value"].to_dict() == pytest.approx(by_hand(data, 15))
    relevant = data["qrels"]["level"] > 0
    shares = data["memberships"]["stage"].loc[relevant, "group"].value_counts(normalize=True)
    assert table["share"].to_dict() == pytest.approx(shares.to_dict())


def test_of_one_level_it_is_the_share_of_exposure_over_the_share_of_documents() -> None:
    run = {"q1": {"a": 5.0, "b": 4.0, "c": 3.0, "d": 2.0}}
    qrels = {"q1": {"a": 1, "c": 1, "d": 1}}
    groups = {"a": "x", "b": "y", "c": "y", "d": "y"}
    table = exposure_over_relevance(run, qrels, {"G": groups}, resamples=9).set_index("group")
    exposure = {"a": 1.0, "c": 0.5, "d": 1 / math.log2(5)}
    share = exposure["a"] / sum(exposure.values())
    assert table["value"].to_dict() == pytest.approx({"x": 3 * share, "y": 1.5 * (1 - share)})


def test_a_ranker_that_is_fair_by_construction_is_not_called_unfair() -> None:
    n_outside, values = 0, []
    for seed in range(60):
        table = exposure_over_relevance(**track(seed), resamples=299)
        row = table[table["group"] == "PhD"].iloc[0]
        n_outside += not row["low"] <= 1 <= row["high"]
        values.append(row["value"])
    assert n_outside <= 8  # 3 are expected at 95%
    assert np.mean(values) == pytest.approx(1, abs=0.03)


def test_an_unfair_ranker_is_named_with_its_group() -> None:
    table = exposure_over_relevance(**track(3, penalty=1.5), resamples=299)
    sentences = exposure_verdicts(table)
    assert sentences[0].startswith("run: PhD is under-exposed, 0.")
    assert "of its relevant share [0." in sentences[0]
    assert sentences[-1].endswith("groups of 100% of the relevant documents are known")


def hidden(groups: pd.DataFrame, *, is_hidden: Any) -> pd.DataFrame:
    return groups.assign(group=groups["group"].mask(is_hidden, "unknown"))


@pytest.mark.filterwarnings("ignore:the memberships in stage:equipoise.errors.Note")
def test_a_verdict_says_how_many_of_the_unknown_would_overturn_it() -> None:
    data = track(3, penalty=1.5)
    groups = data["memberships"]["stage"]
    few = hidden(groups, is_hidden=np.arange(len(groups)) % 8 == 0)
    table = exposure_over_relevance(**data | {"memberships": {"stage": few}}, resamples=299)
    sentence, *_, last = exposure_verdicts(table)
    told = re.search(
        r"; this holds unless more than (\d+)% of the documents of unknown stage are PhD"
        r" \((\d+)% of the known are\)$",
        sentence,
    )
    assert told is not None
    assert int(told[2]) < int(told[1]) < 100
    assert last.endswith("groups of 88% of the relevant documents are known")
    point = table.set_index("group").loc["PhD", "tipping_high"]
    assert math.floor(100 * point) == int(told[1])


@pytest.mark.filterwarnings("ignore:the memberships in stage:equipoise.errors.Note")
def test_a_topic_of_which_nothing_is_known_is_counted_out_and_reported() -> None:
    data = track(3, penalty=1.5)
    groups = data["memberships"]["stage"]
    few = hidden(groups, is_hidden=groups["document"].str.startswith("7-"))
    table = exposure_over_relevance(**data | {"memberships": {"stage": few}}, resamples=99)
    assert exposure_verdicts(table)[-1].endswith("; 1 topics of which none is known are left out")
    without = {**data, "qrels": data["qrels"][data["qrels"]["topic"] != "7"]}
    expected = exposure_over_relevance(**without, resamples=99)
    assert table["value"].tolist() == expected["value"].tolist()


def test_numbers_depend_on_no_order_and_on_no_other_run() -> None:
    data = track(4)
    found = exposure_over_relevance(**data, resamples=99)
    shuffled = {
        name: table.sample(frac=1, random_state=1)
        for name, table in data.items()
        if name != "memberships"
    }
    again = exposure_over_relevance(**data | shuffled, resamples=99)
    pd.testing.assert_frame_equal(again, found)
    other = data["runs"].assign(score=0.0, run="other")
    both = pd.concat([data["runs"].assign(run="run"), other])
    pair = exposure_over_relevance(**data | {"runs": both}, resamples=99)
    first = pair[pair["run"] == "run"].reset_index(drop=True)
    pd.testing.assert_frame_equal(first, found, check_dtype=False)
    wider = exposure_over_relevance(**data, resamples=99, mean_intervals="simultaneous")
    assert (wider["low"] < found["low"]).all()


def test_a_run_without_relevant_documents_is_an_error() -> None:
    data = track(5)
    elsewhere = data["runs"].assign(document="x" + data["runs"]["document"])
    with pytest.raises(InputError, match="one of the first 20 ranks"):
        exposure_over_relevance(**data | {"runs": elsewhere})


def test_an_interval_needs_six_topics() -> None:
    data = track(3)
    few = {**data, "qrels": data["qrels"][data["qrels"]["topic"].astype(int) < 5]}
    assert exposure_over_relevance(**few, resamples=50)[["low", "high"]].isna().all(axis=None)
    six = {**data, "qrels": data["qrels"][data["qrels"]["topic"].astype(int) < 6]}
    assert exposure_over_relevance(**six, resamples=50)[["low", "high"]].notna().all(axis=None)
