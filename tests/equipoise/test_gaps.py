"""Guards gaps between groups, against a loop over the topics that are drawn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from equipoise.statistics import group_gaps, with_groups
from equipoise.statistics.intervals import percentile_interval


def scores_of(seed: int = 1, n_topics: int = 25) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = []
    for run in ("x", "y"):
        for topic in range(n_topics):
            rows.append((run, f"q{topic}", "R", rng.random() + (run == "y") * topic / 50))
    return pd.DataFrame(rows, columns=["run", "topic", "measure", "value"])


GROUP_OF_TOPIC = {f"q{topic}": "abc"[topic % 3] for topic in range(25)}


def test_gaps_of_groups_of_topics_and_their_intervals_are_those_of_a_loop() -> None:
    scores = with_groups(scores_of(), GROUP_OF_TOPIC)
    gaps = group_gaps(scores, level=0.9, resamples=199, seed=4).set_index(["run", "gap"])
    for run, part in scores.groupby("run"):
        table = part.set_index("topic").sort_index()
        means = table.groupby("group")["value"].mean()
        row = gaps.loc[(run, "difference")]
        assert row["value"] == pytest.approx(means.max() - means.min())
        assert (row["largest"], row["smallest"]) == (means.idxmax(), means.idxmin())
        assert (row["groups"], row["topics"]) == (3, 25)
        assert gaps.loc[(run, "ratio"), "value"] == pytest.approx(means.min() / means.max())
        rng = np.random.default_rng(4)
        differences, ratios = [], []
        for _ in range(199):
            drawn = table.iloc[rng.integers(25, size=25)].groupby("group")["value"].mean()
            differences.append(drawn.max() - drawn.min())
            ratios.append(drawn.min() / drawn.max())
        for name, samples in (("difference", differences), ("ratio", ratios)):
            row = gaps.loc[(run, name)]
            assert (row["low"], row["high"]) == pytest.approx(percentile_interval(samples, 0.9))


def test_groups_that_measures_are_parts_of_share_their_topics() -> None:
    rows = [
        ("x", f"q{topic}", "A", f"D(group={group})@10", topic / 10 + (group == "f") / 2)
        for topic in range(4)
        for group in "fm"
    ]
    rows += [("x", "", "A", "D(group=f)@10", 9.0), ("x", "q0", "A", "ERR", 0.1)]
    scores = pd.DataFrame(rows, columns=["run", "topic", "attribute", "measure", "value"])
    grouped = with_groups(scores)
    assert set(grouped["measure"]) == {"D@10"}
    gaps = group_gaps(grouped, resamples=99).set_index("gap")
    # The same topics are drawn for both groups, so that their difference is the same in all draws.
    assert gaps.loc["difference", ["value", "low", "high"]].tolist() == pytest.approx([0.5] * 3)
    assert gaps.loc["ratio", "value"] == pytest.approx(0.15 / 0.65)
    assert gaps.loc["ratio", "low"] < 0.15 / 0.65 < gaps.loc["ratio", "high"]


def test_a_ratio_needs_means_that_are_not_negative_nor_all_0() -> None:
    scores = scores_of().assign(value=-0.5)
    scores.loc[0, "value"] = 3.0
    gaps = group_gaps(with_groups(scores, GROUP_OF_TOPIC), resamples=9).set_index(["run", "gap"])
    assert np.isnan(gaps.loc[("y", "ratio"), "value"])
    assert gaps.loc[("y", "difference"), "value"] == 0
    nothing = group_gaps(with_groups(scores_of().assign(value=0.0), GROUP_OF_TOPIC), resamples=9)
    assert nothing.loc[nothing["gap"] == "ratio", "value"].isna().all()


def test_a_draw_without_a_group_is_left_out() -> None:
    scores = with_groups(scores_of(n_topics=3), {"q0": "a", "q1": "b", "q2": "b"})
    scores["value"] += 1
    gaps = group_gaps(scores, resamples=199).set_index(["run", "gap"])
    assert gaps[["low", "high"]].notna().all(axis=None)
    # A mean of nothing would be 0, and the gap as large as the other mean.
    largest = scores["value"].max() - scores["value"].min()
    assert (gaps.xs("difference", level="gap")["high"] <= largest).all()


def test_what_has_no_groups_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"every topic must have a group, got none for 1 topics \(q0\)"
    ):
        with_groups(scores_of(), {name: "a" for name in GROUP_OF_TOPIC if name != "q0"})
    with pytest.raises(ValueError, match="no measure of a group"):
        with_groups(scores_of())
    with pytest.raises(ValueError, match=r"a gap needs two groups, got 1 for x, R"):
        group_gaps(with_groups(scores_of(), dict.fromkeys(GROUP_OF_TOPIC, "a")))
    twice = pd.concat([scores_of(), scores_of()])
    with pytest.raises(ValueError, match="two values of one group"):
        group_gaps(with_groups(twice, GROUP_OF_TOPIC))
