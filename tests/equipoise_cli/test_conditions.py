"""Guards ``--fail-if``: what a condition is, when it holds, and which commands have it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import click
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import called
from equipoise_cli.compare import compare
from equipoise_cli.conditions import FAILED, judge, read_condition
from equipoise_cli.scoring import score

SCORES = pd.DataFrame(
    [
        ("mine", "", "A", "CAB-precision", 0.10, 0.06, 0.14),
        ("mine", "", "B", "CAB-precision", 0.10, 0.05, 0.15),
        ("mine", "", "C", "CAB-precision", 0.10, 0.01, 0.19),
        ("mine", "", "A", "R", 0.3, np.nan, np.nan),
        ("mine", "T1", "A", "GF", 0.2, np.nan, np.nan),
        ("mine", "T2", "A", "GF", 0.6, np.nan, np.nan),
        ("mine", "", "A", "undefined", np.nan, np.nan, np.nan),
    ],
    columns=["run", "topic", "attribute", "measure", "value", "low", "high"],
)


def status_of(*conditions: str) -> int:
    try:
        judge(SCORES, [read_condition(text) for text in conditions])
    except click.exceptions.Exit as end:
        return end.exit_code
    return 0


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        ("CAB-precision[A]>0.05", FAILED),  # the interval lies wholly above
        ("CAB-precision[B]>0.05", 0),  # it touches the number
        ("CAB-precision[B]>=0.05", FAILED),
        ("CAB-precision[C]>0.05", 0),  # the value is above, its interval is not wholly
        ("CAB-precision[C]<0.2", FAILED),
        ("CAB-precision[C]<0.19", 0),
        ("CAB-precision[C]<=0.19", FAILED),
        ("CAB-precision>0.05", FAILED),  # one row of three is enough
        ("CAB-precision>1/20", FAILED),
        ("CAB-precision>.06", 0),
        ("CAB-precision[A]>5 points", FAILED),
        ("CAB-precision[A]>5%", FAILED),
        ("CAB-precision[A] > 6 points", 0),
        ("R>0.29", FAILED),  # without an interval, by the value
        ("R>0.3", 0),
        ("R>=0.3", FAILED),
        ("GF>0.39", 0),  # two topics have no interval
    ],
)
def test_a_condition_holds_where_the_interval_lies_wholly_beyond(
    condition: str, status: int
) -> None:
    assert status_of(condition) == status
    assert status_of("R>=1", condition) == status
    assert status_of("R>0", condition) == FAILED


@given(
    value=st.floats(0, 1),
    reach=st.floats(0, 0.5),
    bound=st.floats(0.01, 0.99),
    sign=st.sampled_from([">", ">=", "<", "<="]),
)
def test_a_condition_is_shown_refuted_or_open(
    value: float, reach: float, bound: float, sign: str
) -> None:
    """Failing if it is shown and failing unless the opposite is shown never disagree on data."""
    low, high = max(value - reach, 0), min(value + reach, 1)
    rows = [("x", "", "precision", value, low, high, 30)]
    names = ["run", "topic", "measure", "value", "low", "high", "count"]
    scores = pd.DataFrame(rows, columns=names)
    opposite = {">": "<=", ">=": "<", "<": ">=", "<=": ">"}[sign]
    statuses = {}
    for text in (f"precision{sign}{bound}", f"precision{opposite}{bound}"):
        for is_required in (False, True):
            condition = read_condition(text)._replace(is_required=is_required)
            statuses[text.startswith(f"precision{sign}{bound}"), is_required] = 0
            with suppress(click.exceptions.Exit):
                judge(scores, [condition])
                continue
            statuses[text.startswith(f"precision{sign}{bound}"), is_required] = FAILED
    # What is shown fails the one and satisfies the other; its opposite is then refuted.
    assert (statuses[True, False] == FAILED) == (statuses[True, True] == 0)
    if statuses[True, False] == FAILED:
        assert (statuses[False, False], statuses[False, True]) == (0, FAILED)


def test_what_was_found_is_said_of_each_row(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(click.exceptions.Exit):
        judge(
            SCORES.assign(count=[4, 40, 40, 4, 4, 4, 4]),
            [
                read_condition("CAB-precision>0.05"),
                read_condition("CAB-precision[C]<0.05")._replace(is_required=True),
                read_condition("R<0.1"),
            ],
        )
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "failed: --fail-if CAB-precision>0.05: mine, A: 0.1000 [0.0600, 0.1400] lies wholly above"
        " 0.05",
        "inconclusive: --fail-if CAB-precision>0.05: mine, B: 0.1000 [0.0500, 0.1500] lies only"
        " partly above 0.05; for 80% power it needs n = 82, has 40",
        "inconclusive: --fail-if CAB-precision>0.05: mine, C: 0.1000 [0.0100, 0.1900] lies only"
        " partly above 0.05; for 80% power it needs n = 265, has 40",
        "failed: --fail-unless CAB-precision[C]<0.05: mine, C: 0.1000 [0.0100, 0.1900] lies only"
        " partly below 0.05; for 80% power it needs n = 265, has 40",
        "inconclusive: --fail-if R<0.1: mine, A: 0.3000, n = 4: an interval needs 10",
    ]


def test_topics_are_not_judged_beside_their_mean(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("T1", 0.1), ("T2", 0.9), ("", 0.45)]
    scores = pd.DataFrame(rows, columns=["topic", "value"]).assign(run="x", measure="R")
    judge(scores, [read_condition("R>0.46")])
    assert capsys.readouterr().err.splitlines() == [
        "passed: --fail-if R>0.46: x: 0.4500, without an interval, by the value"
    ]


def test_of_many_rows_the_first_are_said_and_all_are_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    runs = [f"r{number}" for number in range(13)]
    scores = pd.DataFrame({"run": runs, "topic": "", "measure": "R", "value": 0.5})
    with pytest.raises(click.exceptions.Exit):
        judge(scores, [read_condition("R>0.4")])
    lines = capsys.readouterr().err.splitlines()
    assert (len(lines), lines[-1]) == (11, "... and 3 more failed")


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("CAB-recall>0.05", "unknown measure 'CAB-recall'"),
        ("R[D]>0.05", "unknown name 'D' in 'R[D]>0.05', must be one of mine, A"),
        ("undefined>0", "undefined has a mean without a value"),
        ("CAB-precision>5", "the bound of 'CAB-precision>5' must be between -1 and 1"),
        ("R<-0.1", "the bound of 'R<-0.1' must be between 0 and 1"),
        ("GF>200%", "the bound of 'GF>200%' must be between 0 and 1"),
        ("CAB-precision>100 points", "'CAB-precision>100 points' is never met"),
        ("GF>=0", "'GF>=0' is always met: GF is between 0 and 1"),
    ],
)
def test_what_cannot_be_judged_is_refused(condition: str, told: str) -> None:
    with pytest.raises(click.BadParameter) as error:
        judge(SCORES, [read_condition("R>0.1"), read_condition(condition)])
    assert told in error.value.message
    assert error.value.param_hint == "--fail-if"


@pytest.mark.parametrize(
    "text",
    [
        *("R", "R>", ">0.5", "R>>0.5", "R=0.5", "R==0.5", "R!=0.5", "0.5<R<0.6", "R>0.5>0.4"),
        *(
            "R>nan",
            "R>inf",
            "R>1e999",
            "R>0.5x",
            "R>__import__('os')",
            "R>0.5 or 1",
            "R[]>1",
            "R[A>1",
        ),
        *("", " ", "R > 0.5; 1", "[A]>1", "R[A][B]>1", "R>=<1", "R=>1"),
    ],
)
def test_a_condition_is_read_by_its_grammar_alone(text: str) -> None:
    with pytest.raises(ValueError, match="must be a"):
        read_condition(text)
    result = called("score", "gfrc", "none.csv", "--fail-if", text)
    assert result.exit_code == 2
    assert "--fail-if" in result.stderr


@pytest.mark.parametrize(
    "name", ["GFR-iRBU+JSD+RNOD", "AWRF(groups='A',distance='jsd')@5", "P(rel=2)@5", "useful 1"]
)
def test_a_measure_may_be_called_as_others_call_theirs(name: str) -> None:
    condition = read_condition(f" {name} [a run] >= -1e-3 ")
    assert (condition.measure, condition.label, condition.bound) == (name, "a run", -0.001)


def test_no_command_of_scores_lacks_it() -> None:
    commands: dict[str, Any] = {**score.commands, "compare": compare}
    for name, command in commands.items():
        assert "--fail-if" in {flag for option in command.params for flag in option.opts}, name


@pytest.mark.parametrize(
    ("measure", "bound", "is_refused"),
    [
        ("cited-over-retrieved", "-0.5", False),
        ("cited-over-retrieved", "5", True),
        ("cited-share", "-0.5", True),
        ("AC-difference", "-0.5", False),
        ("difference-cited-share", "-0.5", False),
        ("difference-R", "-2", True),
        ("precision", "1.5", True),
        ("TED@10", "3", False),  # its range depends on the groups
        ("of my own", "70", False),
    ],
)
def test_no_bound_is_outside_the_declared_range(measure: str, bound: str, is_refused: bool) -> None:
    scores = pd.DataFrame({"run": ["x"], "topic": "", "measure": measure, "value": 0.2})
    condition = read_condition(f"{measure}<{bound}")
    if is_refused:
        with pytest.raises(click.BadParameter, match="must be between"):
            judge(scores, [condition])
        judge(scores.assign(value=50.0), [read_condition(f"{measure}<-5")])  # of another scale
        return
    with suppress(click.exceptions.Exit):
        judge(scores, [condition])


def test_a_verdict_on_some_says_what_would_overturn_it(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("a", 0.4, 0.3, 0.5, 0.8), ("b", 0.4, 0.3, 0.5, 1.0), ("c", 0.6, 0.55, 0.65, 0.9)]
    scores = pd.DataFrame(rows, columns=["run", "value", "low", "high", "read"])
    # So many units that the variance between read and unread does not count.
    scores = scores.assign(topic="", measure="R", count=10**9)
    with pytest.raises(click.exceptions.Exit):
        judge(scores, [read_condition("R>0.51")])
    assert capsys.readouterr().err.splitlines() == [
        "failed: --fail-if R>0.51: c: 0.6000 [0.5500, 0.6500] lies wholly above 0.51; this holds"
        " unless the 10% not read are more than 0.4 lower than they count",
        "passed: --fail-if R>0.51: a: 0.4000 [0.3000, 0.5000] has no part above 0.51; this holds"
        " unless the 20% not read are more than 0.05 higher than they count",
        "passed: --fail-if R>0.51: b: 0.4000 [0.3000, 0.5000] has no part above 0.51",
    ]
