"""The two-round protocol: plain counts, names on a list, and topic set sizes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from equipoise_studies.conversations import two_rounds
from equipoise_studies.conversations.claims import clustered_mean
from equipoise_studies.conversations.data import read_harvest


def outcomes(cells: dict[str, list[str]]) -> pd.DataFrame:
    """From ``{"B-1": ["oo", "x-"]}``: one pair of outcomes per topic."""
    rows = []
    for run, pairs in cells.items():
        for number, pair in enumerate(pairs):
            rows += [(run, f"T{number}", turn, pair[turn - 1]) for turn in (1, 2)]
    table = pd.DataFrame(rows, columns=["run", "topic", "turn", "outcome"])
    return table.assign(type=table["topic"].str[:1])


PAIRS = st.lists(st.sampled_from(["oo", "ox", "xo", "xx", "x-"]), min_size=1, max_size=12)


@given(PAIRS)
def test_statistics_agree_with_counting(pairs: list[str]) -> None:
    (row,) = two_rounds.outcome_statistics(outcomes({"r-1": pairs})).to_dict("records")
    failed = [pair for pair in pairs if pair[0] != "o"]
    recovered = [pair for pair in failed if pair[1] == "o"]
    useful = [100 * sum(pair[turn] == "o" for pair in pairs) / len(pairs) for turn in (0, 1)]
    assert [row["%useful 1"], row["%useful 2"]] == pytest.approx(useful)
    assert row["%average useful"] == pytest.approx(sum(useful) / 2)
    assert (row["topics"], row["unsuccessful"], row["recovered"]) == (
        len(pairs),
        len(failed),
        len(recovered),
    )
    if failed:
        assert row["%recovery"] == pytest.approx(100 * len(recovered) / len(failed))
    else:
        assert np.isnan(row["%recovery"])


def test_the_grid_keeps_every_outcome_in_its_place() -> None:
    cells = {"G2": ["oo", "x-"], "B1": ["xo", "ox"]}
    grid = two_rounds.outcome_grid(outcomes(cells))
    assert list(grid.columns) == ["topic", "G2 S1", "G2 S2", "B1 S1", "B1 S2"]
    for run, pairs in cells.items():
        assert (grid[f"{run} S1"] + grid[f"{run} S2"]).tolist() == pairs


@given(PAIRS, st.integers(1, 3))
@settings(deadline=None, max_examples=15)
def test_shares_of_trials_are_plain_counts(pairs: list[str], trials: int) -> None:
    cells = {f"a-b-{trial}": [*pairs, "xo"] for trial in range(1, trials + 1)}
    table = two_rounds.outcome_intervals(outcomes(cells))
    overall = table[table["type"] == "all"].set_index("measure")
    assert set(overall["trials"]) == {trials}
    failed = [pair for pair in cells["a-b-1"] if pair[0] != "o"]
    assert overall.loc["recovery", "value"] == pytest.approx(
        np.mean([pair[1] == "o" for pair in failed])
    )
    assert ((table["low"] <= table["value"]) & (table["value"] <= table["high"])).all()


def test_trials_of_a_topic_are_resampled_together() -> None:
    """Trials that repeat each other add no certainty: the interval is that of 40 topics."""
    pairs = ["oo" if number % 2 else "xo" for number in range(40)]
    widths = []
    for trials in (1, 4):
        cells = {f"a-{trial}": pairs for trial in range(trials)}
        table = two_rounds.outcome_intervals(outcomes(cells)).set_index("measure")
        row = table[table["type"] == "all"].loc["useful 1"]
        widths.append(row["high"] - row["low"])
    assert widths[1] == pytest.approx(widths[0], abs=0.03)
    low, high = stats.binom.ppf([0.025, 0.975], 40, 0.5) / 40
    assert widths[0] == pytest.approx(high - low, abs=0.05)

    values = pd.DataFrame(
        {"topic": np.repeat(np.arange(40), 4), "value": np.repeat(np.arange(40) % 2, 4)}
    )
    evidence = clustered_mean(values)
    assert (evidence.estimate, evidence.n) == (0.5, 40)
    assert (evidence.low, evidence.high) == pytest.approx((low, high), abs=0.03)
    weighted = values.assign(weight=[3.0, 1.0, 1.0, 1.0, *[1.0] * 156])
    assert clustered_mean(weighted, "weight").estimate == pytest.approx(80 / 162)


def test_pairs_of_trials_that_end_differently() -> None:
    four = outcomes({"a": ["oo", "ox"], "b": ["oo", "xx"], "c": ["ox", "xo"], "d": ["oo", "x-"]})
    table = two_rounds.changed_topics(four)
    assert table["value"].tolist() == [3 / 6, 1]
    assert table["pairs"].tolist() == [6, 6]
    assert two_rounds.changed_topics(outcomes({"a": ["oo"]})).empty


def test_urls_within_a_conversation_are_counted() -> None:
    rows = [
        ("a", "T1", 1, "see https://x/1, and [https://x/2](https://x/2)."),
        ("a", "T1", 2, "again (https://x/1)"),
        ("a", "T2", 1, "nothing"),
    ]
    turns = pd.DataFrame(rows, columns=["run", "topic", "turn", "system"])
    counts = two_rounds.repeated_urls(turns)
    assert counts.to_numpy().tolist() == [["a", "T1", 3, 1]]


KNOWN = pd.DataFrame(
    [
        ["T", "Tenet", "https://www.imdb.com/title/tt1/"],
        ["T", "Amelie", "imdb.com/title/tt2"],
        ["T", "Looper", ""],
        ["T", "Donald Knuth", ""],
        ["T", "The Matrix", ""],
    ],
    columns=["topic", "name", "url"],
)


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ("1. **Tenet** (2020): https://www.imdb.com/title/tt1/", (1, 0, 1, 0, 0)),
        ("Tenet: http://IMDb.com/title/tt1.", (1, 0, 1, 0, 0)),
        ("Amélie – https://www.imdb.com/title/tt2", (1, 0, 1, 0, 0)),
        ("AMELIE [https://imdb.com/title/tt1]", (1, 0, 1, 0, 1)),  # the address of another film
        ("Tenet: https://www.imdb.com/title/tt999/", (1, 0, 1, 1, 0)),  # an unknown address
        ("Tenets: https://www.imdb.com/title/tt1/", (1, 1, 1, 0, 0)),  # an unknown name
        ("Looper: https://www.imdb.com/title/tt9/", (1, 0, 1, 1, 0)),  # no known address
        ("Tenet is well known.", (0, 0, 0, 0, 0)),
        ("1. Tenet\n   - URL: imdb.com, https://imdb.com/title/tt1", (1, 0, 1, 0, 0)),
        ("Tenet: https://imdb.com/title/tt1\nOther: https://imdb.com/title/tt1", (2, 1, 2, 0, 0)),
        ("Donald Ervin Knuth https://a/1", (1, 0, 1, 1, 0)),  # a middle name
        ("Donald and Jill Knuth https://a/1", (1, 1, 1, 1, 0)),
        ("The Last Matrix https://a/1", (1, 1, 1, 1, 0)),  # an article is no first name
    ],
)
def test_what_a_line_names(line: str, counts: tuple[int, ...]) -> None:
    turns = pd.DataFrame({"run": "a-1", "topic": ["T", "other"], "system": line, "finish": "stop"})
    table = two_rounds.count_names(turns, KNOWN)
    assert table["topic"].tolist() == ["T"]
    assert tuple(table.iloc[0, 2:]) == counts


def test_the_last_line_of_an_answer_that_was_cut_off_does_not_count() -> None:
    text = "Tenet: https://imdb.com/title/tt1\nAmelie: https://imdb.com/ti"
    for finish, counts in (("length", [1, 0, 1, 0, 0]), ("stop", [2, 0, 2, 1, 0])):
        turns = pd.DataFrame({"run": "a-1", "topic": ["T"], "system": text, "finish": finish})
        assert two_rounds.count_names(turns, KNOWN).iloc[0, 2:].tolist() == counts


def test_topic_set_size_reaches_the_power_with_the_fewest_topics() -> None:
    values = np.array([[1, 0.5, 1], [0.5, 0.5, 0], [0, 0, 0.5]])
    size = two_rounds.topic_set_size(values, 0.3, systems=3)
    assert size["variance"] == pytest.approx(values.var(axis=0, ddof=1).mean())
    needed = size["needed"]
    assert two_rounds.power_of_anova(needed, 3, size["variance"], 0.3) >= 0.8
    assert two_rounds.power_of_anova(needed - 1, 3, size["variance"], 0.3) < 0.8


def test_a_record_with_an_incomplete_conversation_is_rejected(tmp_path: Path) -> None:
    settings = {"topics": [{"topic": "T1", "kind": "F"}]}
    turn = {"trial": 1, "topic": "T1", "turn": 1, "user": "?", "system": "!", "finish": "stop"}
    path = tmp_path / "model.jsonl"
    for breakdown in (True, False):
        line = turn | {"outcome": "x", "breakdown": breakdown}
        path.write_text(f"{json.dumps(settings)}\n{json.dumps(line)}\n")
        if breakdown:
            assert read_harvest(path)[1]["outcome"].tolist() == ["x", "-"]
        else:
            with pytest.raises(ValueError, match="topic T1, trial 1 is not complete"):
                read_harvest(path)
