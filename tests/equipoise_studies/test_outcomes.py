"""Useful turns and recovery, intervals and tests, names in a list: plain counts and SciPy."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import good_files
from commands import called
from equipoise_cli import main
from equipoise_studies.pilot.outcomes import (
    count_names,
    outcome_intervals,
    outcome_scores,
    outcome_tests,
)


def turns_of(outcomes: dict[tuple[str, str], str]) -> pd.DataFrame:
    """Turns from run and topic to the marks of their turns."""
    rows = [
        [run, topic, turn, mark]
        for (run, topic), marks in outcomes.items()
        for turn, mark in enumerate(marks, start=1)
    ]
    return pd.DataFrame(rows, columns=["run", "topic", "turn", "outcome"])


MARKS = st.text(alphabet="ox", min_size=3, max_size=3)


@given(st.lists(MARKS, min_size=2, max_size=6), st.integers(1, 3))
@settings(deadline=None, max_examples=40)
def test_shares_are_plain_counts(marks: list[str], trials: int) -> None:
    marks = [*marks, "x--"]
    said = {
        (f"a-b-{trial}", f"T{i}"): mark
        for trial in range(1, trials + 1)
        for i, mark in enumerate(marks)
    }
    table = outcome_intervals(turns_of(said), resamples=9).set_index("measure")
    assert set(table["system"]) == {"a-b"}
    assert set(table["trials"]) == {trials}
    for turn in (1, 2, 3):
        assert table.loc[f"useful {turn}", "value"] == pytest.approx(
            np.mean([m[turn - 1] == "o" for m in marks])
        )
    of_each = []
    for mark in marks:
        chances = [mark[turn + 1] == "o" for turn in (0, 1) if mark[turn] != "o"]
        of_each += [np.mean(chances)] if chances else []
    assert table.loc["recovery", "value"] == pytest.approx(np.mean(of_each))
    assert (table["low"] <= table["value"]).all()
    assert (table["value"] <= table["high"]).all()


def test_trials_of_a_topic_are_drawn_together() -> None:
    """Trials that repeat each other add no certainty: as wide as one, or a binomial of topics."""
    topics = {f"T{i}": "oo" if i % 2 else "xo" for i in range(40)}
    widths = []
    for trials in (1, 4):
        said = {
            (f"a-{trial}", topic): marks
            for trial in range(1, trials + 1)
            for topic, marks in topics.items()
        }
        row = outcome_intervals(turns_of(said)).set_index("measure").loc["useful 1"]
        widths.append(row["high"] - row["low"])
    assert widths[1] == pytest.approx(widths[0], abs=0.03)
    low, high = stats.binom.ppf([0.025, 0.975], 40, 0.5) / 40
    assert widths[0] == pytest.approx(high - low, abs=0.05)


def test_types_come_behind_all() -> None:
    turns = turns_of({("a-1", "F1"): "oo", ("a-1", "F2"): "xo", ("a-1", "S1"): "xx"})
    table = outcome_intervals(turns.assign(type=turns["topic"].str[0]), resamples=9)
    first = table[table["measure"] == "useful 1"]
    assert first["type"].tolist() == ["", "F", "S"]
    assert first["value"].tolist() == pytest.approx([1 / 3, 1 / 2, 0])
    assert first["topics"].tolist() == [3, 2, 1]


def test_systems_are_paired_by_topic() -> None:
    rng = np.random.default_rng(3)
    marks = {
        (f"{system}-{trial}", f"T{i}"): "".join(rng.choice(["o", "x"], 2, p=[share, 1 - share]))
        for system, share in (("a", 0.8), ("b", 0.4))
        for trial in (1, 2)
        for i in range(12)
    }
    tests = outcome_tests(turns_of(marks)).set_index("measure")
    mean = {
        system: [
            np.mean([marks[f"{system}-{trial}", f"T{i}"][0] == "o" for trial in (1, 2)])
            for i in range(12)
        ]
        for system in "ab"
    }
    wanted = stats.ttest_rel(mean["a"], mean["b"])
    assert tests.loc["useful 1", "p"] == pytest.approx(wanted.pvalue)
    assert tests.loc["useful 1", "statistic"] == pytest.approx(wanted.statistic)
    scores = outcome_scores(turns_of(marks)).query("measure == 'recovery'")
    both = scores.pivot_table(index="topic", columns="system", values="value").dropna()
    assert tests.loc["recovery", "units"] == len(both) < 12
    assert tests.loc["recovery", "p"] == pytest.approx(stats.ttest_rel(both["a"], both["b"]).pvalue)
    rounds = outcome_tests(turns_of(marks), between="round").set_index("measure")
    assert (rounds.loc["a", "a"], rounds.loc["a", "b"]) == ("useful 1", "useful 2")
    with pytest.raises(ValueError, match="needs two systems"):
        outcome_tests(turns_of({("a-1", "T1"): "oo", ("a-1", "T2"): "ox"}))


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ("1. **Tenet** (2020): https://www.imdb.com/title/tt1/", (1, 0, 1, 0, 0)),
        ("Tenet: http://IMDb.com/title/tt1.", (1, 0, 1, 0, 0)),
        ("Amélie – https://www.imdb.com/title/tt2", (1, 0, 1, 0, 0)),
        ("AMELIE [https://imdb.com/title/tt1]", (1, 0, 1, 0, 1)),  # the address of another film
        (
            "Tenet: https://www.imdb.com/title/tt999/",
            (1, 0, 1, 1, 0),
        ),  # an address that nobody knows
        ("Tenets: https://www.imdb.com/title/tt1/", (1, 1, 1, 0, 0)),  # a name that nobody knows
        (
            "Looper: https://www.imdb.com/title/tt9/",
            (1, 0, 1, 1, 0),
        ),  # a name without a known address
        ("[https://imdb.com/title/tt1](https://imdb.com/title/tt1) Tenet", (1, 0, 1, 0, 0)),
        ("Tenet is well known.", (0, 0, 0, 0, 0)),
        (
            "1. Tenet\n   - URL: imdb.com, https://imdb.com/title/tt1",
            (1, 0, 1, 0, 0),
        ),  # the name stands before it
        ("Tenet: https://imdb.com/title/tt1\nOther: https://imdb.com/title/tt1", (2, 1, 2, 0, 0)),
    ],
)
def test_what_a_line_names(line: str, counts: tuple[int, ...]) -> None:
    turns = pd.DataFrame({"run": "a-1", "topic": ["T", "other"], "turn": 1, "system": line})
    known = [
        ["T", "Tenet", "https://www.imdb.com/title/tt1/"],
        ["T", "Amelie", "imdb.com/title/tt2"],
        ["T", "Looper", ""],
    ]
    table = count_names(turns, pd.DataFrame(known, columns=["topic", "name", "url"]))
    assert table["topic"].tolist() == ["T"]
    assert (
        tuple(table.loc[0, ["named", "unlisted", "addresses", "unlisted_addresses", "wrong"]])
        == counts
    )


@pytest.mark.parametrize(
    ("line", "unlisted"),
    [
        ("Donald Knuth", 0),
        ("Donald E. Knuth", 0),
        ("Donald Ervin Knuth", 0),
        ("donald e. ervin knuth (1974)", 0),
        ("Donald Duck and Daniel Knuth", 1),
        ("Donald and Jill Knuth", 1),
        ("Donald one two three Knuth", 1),
        ("Knuth, Donald", 1),
        ("The Matrix", 0),
        ("The Last Matrix", 1),
        ("Back to the Future", 0),
        ("Back to the Bright Future", 1),
    ],
)
def test_middle_names_do_not_make_a_name_another(line: str, unlisted: int) -> None:
    turns = pd.DataFrame({"run": ["a-1"], "topic": "T", "turn": 1, "system": f"{line} https://a/1"})
    known = pd.DataFrame(
        {"topic": "T", "name": ["Donald Knuth", "The Matrix", "Back to the Future"]}
    )
    assert count_names(turns, known.assign(url="")).loc[0, "unlisted"] == unlisted


def test_the_last_line_of_an_answer_that_was_cut_off_is_left_out() -> None:
    text = "Tenet: https://imdb.com/title/tt1\nAmelie: https://imdb.com/ti"
    known = pd.DataFrame(
        {
            "topic": "T",
            "name": ["Tenet", "Amelie"],
            "url": ["imdb.com/title/tt1", "imdb.com/title/tt2"],
        }
    )
    for finish, counts in (("length", [1, 0, 1, 0, 0]), ("stop", [2, 0, 2, 1, 0])):
        turns = pd.DataFrame(
            {"run": "a-1", "topic": "T", "turn": [1], "system": text, "finish": finish}
        )
        assert count_names(turns, known).iloc[0, 2:].tolist() == counts


def test_the_command_writes_all_three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good_files.lay(tmp_path)
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(main, good_files.COMMANDS["outcomes"])
    assert said.exit_code == 0, said.output
    shares = (
        pd.read_csv("out.csv", keep_default_na=False)
        .query("type == ''")
        .set_index("measure")["value"]
    )
    assert shares[["useful 1", "useful 2"]].tolist() == [1, 0]
    assert pd.read_csv("names.csv")[
        ["named", "unlisted", "addresses", "unlisted_addresses", "wrong"]
    ].to_numpy().tolist() == [[1, 0, 1, 0, 0]]
    alone = called("score", "outcomes", "record.jsonl", "--known", "known.csv")
    assert (alone.exit_code, "give both" in alone.output) == (2, True)


def test_what_a_record_and_a_list_do_not_have_is_told_and_nothing_at_all_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    both = {
        **good_files.RECORD[0],
        "topics": [{"topic": "T1", "kind": "T"}, {"topic": "T2", "kind": "T"}],
    }
    (tmp_path / "a.jsonl").write_text(good_files.lines(both, *good_files.RECORD[1:]))
    (tmp_path / "known.csv").write_text("topic,name,url\nT1,Looper,\n")
    words = ["score", "outcomes", "a.jsonl", "--known", "known.csv", "--names", "names.csv"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert (
        "seen: every turn for 1 of 2 conversations of the trials (50%); not for T2 in trial 1"
        in done.stderr
    )
    assert "seen: a name in the list for 1 of 1 topics" in done.stderr
    (tmp_path / "known.csv").write_text("topic,name,url\nX1,Looper,\n")
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert (
        "found a name in the list for none of 1 topics, such as T1, "
        "wanted the same ids on both sides; the" in (done.stderr)
    )


def test_two_records_of_one_name_are_two_systems(tmp_path: Path) -> None:
    """Their turns were taken for one system's, of which the second record's were ignored."""
    good_files.lay(tmp_path)
    record = (tmp_path / "record.jsonl").read_text()
    for folder, outcome in (("a", "o"), ("b", "x")):
        (tmp_path / folder).mkdir()
        text = re.sub('"outcome": "."', f'"outcome": "{outcome}"', record)
        (tmp_path / folder / "rec.jsonl").write_text(text)
    files = [str(tmp_path / folder / "rec.jsonl") for folder in "ab"]
    done = called("score", "outcomes", *files, "-o", str(tmp_path / "shares.csv"))
    assert done.exit_code == 0, done.output
    shares = pd.read_csv(tmp_path / "shares.csv").query("measure == 'useful 1'")
    assert dict(zip(shares["system"], shares["value"], strict=True)) == {"a/rec": 1, "b/rec": 0}
    assert called("score", "outcomes", files[0], files[0]).exit_code == 2
