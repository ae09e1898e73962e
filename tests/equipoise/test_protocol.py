"""Outcome grids and their statistics (gfrc, section 5)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise.measures.protocol import shares
from equipoise_cli.harvest import judge_answer
from equipoise_compendium import project
from equipoise_studies.pilot.tables import (
    changed_topics,
    failures_after_useful,
    failures_in_sequence,
    outcome_grid,
    outcome_statistics,
    repeated_urls,
    sample_size_said,
    sample_sizes,
    statistics_by_type,
    statistics_of_counts,
    worst_of_trials,
)
from equipoise_studies.recorded_conversations import parse_record, read_harvest


def outcomes(cells: dict[str, list[str]]) -> pd.DataFrame:
    """From ``{"B1": ["oo", "x-"]}``: one pair of outcomes per topic."""
    rows = [
        (run, f"T{number}", turn, pair[turn - 1])
        for run, pairs in cells.items()
        for number, pair in enumerate(pairs)
        for turn in (1, 2)
    ]
    return pd.DataFrame(rows, columns=["run", "topic", "turn", "outcome"])


def test_hand_worked_statistics() -> None:
    table = outcome_statistics(
        outcomes({"G2": ["oo", "xo", "xo", "xx", "x-"], "B1": ["oo", "ox", "oo", "oo", "ox"]})
    )
    assert table["run"].tolist() == ["G2", "B1"]
    g2, b1 = (row for _, row in table.iterrows())
    assert (g2["useful 1"], g2["useful 2"], g2["average useful"]) == pytest.approx((0.2, 0.6, 0.4))
    assert (g2["unsuccessful"], g2["recovered"], g2["recovery"]) == (
        4,
        2,
        0.5,
    )  # a breakdown counts as unsuccessful
    assert (b1["useful 1"], b1["useful 2"], b1["average useful"]) == pytest.approx((1.0, 0.6, 0.8))
    assert (b1["unsuccessful"], b1["recovered"]) == (0, 0)
    assert np.isnan(b1["recovery"])


def test_the_grid_keeps_every_outcome_in_its_place() -> None:
    cells = {"G2": ["oo", "x-"], "B1": ["xo", "ox"]}
    grid = outcome_grid(outcomes(cells))
    assert grid["topic"].tolist() == ["T0", "T1"]
    for run, pairs in cells.items():
        assert [a + b for a, b in zip(grid[f"{run} S1"], grid[f"{run} S2"], strict=True)] == pairs
    assert list(grid.columns) == ["topic", "G2 S1", "G2 S2", "B1 S1", "B1 S2"]


PAIRS = st.lists(st.sampled_from(["oo", "ox", "xo", "xx", "x-"]), min_size=1, max_size=12)


@given(PAIRS)
def test_statistics_agree_with_counting(pairs: list[str]) -> None:
    (row,) = outcome_statistics(outcomes({"r": pairs})).to_dict("records")
    failed = [pair for pair in pairs if pair[0] != "o"]
    assert row["useful 1"] == pytest.approx(sum(pair[0] == "o" for pair in pairs) / len(pairs))
    assert row["useful 2"] == pytest.approx(sum(pair[1] == "o" for pair in pairs) / len(pairs))
    assert row["unsuccessful"] == len(failed)
    assert row["recovered"] == sum(pair[1] == "o" for pair in failed)
    if failed:
        assert row["recovery"] == row["recovered"] / len(failed)


@pytest.mark.parametrize(
    ("cells", "complaint"),
    [
        ({"r": ["oz"]}, "o, x or -"),
        ({"r": ["-o"]}, "only a second turn can be missing"),
        ({"r": ["o-"]}, "only a second turn can be missing"),
    ],
)
def test_contradictory_outcomes_are_refused(cells: dict[str, list[str]], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        outcome_grid(outcomes(cells))


def test_incomplete_outcomes_are_refused() -> None:
    table = outcomes({"r": ["oo", "xx"]})
    with pytest.raises(ValueError, match="comes twice"):
        outcome_grid(pd.concat([table, table]))
    with pytest.raises(ValueError, match="needs an outcome of both turns"):
        outcome_grid(table.iloc[:-1])
    with pytest.raises(ValueError, match="no column outcome"):
        outcome_grid(table.drop(columns="outcome"))
    with pytest.raises(ValueError, match="the same topics"):
        outcome_statistics(pd.concat([table, table.assign(run="s").iloc[:2]]))
    with pytest.raises(ValueError, match="the same topics"):
        shares([True], [True, False])


def test_what_the_findings_of_gfrc_ask_of_two_trials() -> None:
    table = outcomes({"a": ["oo", "ox", "x-", "xo"], "b": ["oo", "oo", "x-", "oo"]})
    assert changed_topics(table)["value"].tolist() == [0, 1, 0, 1]
    four = outcomes({"a": ["oo", "ox"], "b": ["oo", "xx"], "c": ["ox", "xo"], "d": ["oo", "x-"]})
    assert changed_topics(four)["value"].tolist() == [3 / 6, 1]  # of six pairs of trials
    assert changed_topics(four)["pairs"].tolist() == [6, 6]
    assert changed_topics(outcomes({"a": ["oo"]})).empty
    sequence = failures_in_sequence(table).set_index("failed_before")
    assert sequence.loc[False].to_dict() == {
        "share": 0.5,
        "turns": 4,
    }  # after a success: o, x and o, x
    assert sequence.loc[True].to_dict() == {"share": 0.5, "turns": 2}
    after = failures_after_useful(table)
    assert after["failed"].tolist() == [False, True, False, False, False]
    assert after["run"].tolist() == ["a", "a", "b", "b", "b"]


def test_the_worst_trial_of_each_topic() -> None:
    table = outcomes({"a-1": ["oo", "ox"], "a-2": ["xo", "ox"], "a-3": ["oo", "xx"]})
    worst = worst_of_trials(table).set_index("measure")
    first = (
        1 * 0 + 0.5 * 1
    ) / 1.5  # each topic fails once in three trials: the worst half is one trial and a half
    assert worst.loc["useful 1"].to_dict() == pytest.approx(
        {"mean": 2 / 3, "worst": 0, "worst 0.5": first}
    )
    assert worst.loc["useful 2"].to_dict() == pytest.approx(
        {"mean": 1 / 2, "worst": 1 / 2, "worst 0.5": 1 / 2}
    )


def test_sample_sizes_are_of_the_variance_within_trials_and_within_means_of_two() -> None:
    table = outcomes(
        {"a-1": ["oo", "ox", "xx"], "a-2": ["xo", "ox", "xx"], "a-3": ["oo", "xx", "xo"]}
    )
    sizes = sample_sizes(table, systems=3)
    useful = np.array(
        [[1, 0.5, 0], [0.5, 0.5, 0], [1, 0, 0.5]]
    )  # of each trial, the share of useful turns by topic
    assert sizes["trials"].tolist() == [1, 1]  # an odd trial has no other
    assert sizes["variance"].tolist() == pytest.approx([useful.var(axis=1, ddof=1).mean()] * 2)
    assert sample_sizes(table[table["run"] == "a-1"], systems=3).empty


def test_a_pair_of_trials_has_the_mean_of_both() -> None:
    cells = {
        "a-1": ["oo", "xx", "oo"],
        "a-2": ["xx", "xx", "oo"],
        "a-3": ["oo", "oo", "xx"],
        "a-4": ["ox", "oo", "xx"],
    }
    sizes = sample_sizes(outcomes(cells), systems=3)
    means = np.array([[0.5, 0, 1], [0.75, 1, 0]])
    assert sizes.loc[sizes["trials"] == 2, "variance"].tolist() == pytest.approx(
        [means.var(axis=1, ddof=1).mean()] * 2
    )
    said = sample_size_said(sizes, 3)
    assert f"{sizes['needed'].iloc[0]:,} [" in said
    assert said.endswith("The 3 topics of this record are enough for none of these.")
    assert "are enough for 5 points" in sample_size_said(sizes, 10**6)


def test_statistics_by_type_are_those_of_each_part_in_percent() -> None:
    table = outcomes({"r": ["oo", "xo", "xx"]})
    table["type"] = table["topic"].map({"T0": "A", "T1": "A", "T2": "B"})
    statistics = statistics_by_type(table).set_index("run")
    assert statistics.index.tolist() == ["r", "r, A topics", "r, B topics"]
    assert statistics["%recovery"].tolist() == [50, 100, 0]
    assert statistics.loc["r, A topics", "%useful 1"] == 50


def test_counts_alone_give_the_recovery() -> None:
    counts = pd.DataFrame({"run": ["p", "q"], "unsuccessful": [14, 0], "recovered": [9, 0]})
    found = statistics_of_counts(counts, topics=15)
    assert found["unsuccessful"].tolist() == [14, 0]
    assert found["recovered"].tolist() == [9, 0]
    assert found["%recovery"].iloc[0] == 100 * 9 / 14
    assert np.isnan(found["%recovery"].iloc[1])


def test_repeated_urls_are_counted_once_for_each_link() -> None:
    table = outcomes({"r": ["oo", "ox"]})
    table["system"] = [
        "A https://a.org/1, B (https://a.org/2).",
        "A [https://a.org/1](https://a.org/1)",
        "C https://a.org/1",
        "none",
    ]
    assert repeated_urls(table).to_numpy().tolist() == [["r", "T0", 3, 1], ["r", "T1", 1, 0]]
    assert repeated_urls(table, useful=True).to_numpy().tolist() == [["r", "T0", 3, 1]]


def test_the_committed_harvest_holds_what_its_rules_say() -> None:
    """Judging the recorded answers again gives the recorded outcomes, of every conversation."""
    path = project.data("conversations", "harvest", "qwen-1.5b.jsonl")
    settings, turns = parse_record(path)
    sites = {topic["topic"]: topic["site"] for topic in settings["topics"]}
    for turn in turns:
        judgement = judge_answer(
            turn["system"], sites[turn["topic"]], settings["protocol"]["refusals"]
        )
        assert (judgement.mark, judgement.breakdown) == (turn["outcome"], turn["breakdown"])
    table = read_harvest(path)
    assert len(outcome_statistics(table)) == 4
    assert len(table) == 4 * 2 * len(sites)
    assert table.groupby("type")["topic"].nunique().to_dict() == {"F": 20, "S": 20, "V": 20}
