"""Verdicts on claims: what an interval allows, and every verdict of the committed reports again."""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from equipoise.statistics import resampled
from equipoise_compendium import claims, project
from equipoise_compendium.claims import Evidence, units_needed, verdict

CLAIMS = pd.read_csv(project.root() / "reports" / "claims.csv", keep_default_na=False)


def interval(low: float, high: float, **more: Any) -> Evidence:
    return Evidence("a difference", (low + high) / 2, low, high, **more)


@pytest.mark.parametrize(
    ("low", "high", "contradicted_if", "said"),
    [
        (0.1, 0.3, "<= 0", "holds"),
        (0.0, 0.3, "<= 0", "undecided"),
        (-0.1, 0.3, "<= 0", "undecided"),
        (-0.3, 0.0, "<= 0", "undecided"),
        (-0.3, -0.04, "<= 0", "undecided"),
        (-0.3, -0.05, "<= 0", "contradicted"),
        (0.0, 0.3, "< 0", "holds"),
        (-0.3, 0.0, "< 0", "undecided"),
        (-0.3, -0.1, "< 0", "contradicted"),
        (1.0, 2.0, "> 2", "holds"),
        (2.1, 3.0, ">= 2", "undecided"),
        (2.2, 3.0, ">= 2", "contradicted"),
        (-0.5, 0.5, "outside [-1, 1]", "holds"),
        (-0.5, 1.5, "outside [-1, 1]", "undecided"),
        (-2.0, 2.0, "outside [-1, 1]", "undecided"),
        (1.1, 1.5, "outside [-1, 1]", "contradicted"),
    ],
)
def test_an_interval_decides(low: float, high: float, contradicted_if: str, said: str) -> None:
    assert verdict(interval(low, high), contradicted_if) == said


def test_what_includes_the_printed_value_never_contradicts() -> None:
    assert verdict(interval(-3, -1), "<= 0") == "contradicted"
    assert verdict(interval(-3, -1, printed=-2), "<= 0") == "undecided"
    assert verdict(interval(-3, -1, printed=2), "<= 0") == "contradicted"


def test_an_exact_number_and_none_at_all() -> None:
    exact = Evidence("a count", 6, reason="nothing is sampled")
    assert [verdict(exact, edge) for edge in ("< 6", "<= 6", "outside [7, 9]")] == [
        "holds",
        "contradicted",
        "contradicted",
    ]
    assert verdict(Evidence("trials", reason="the protocol removes it"), "<= 0") == "not testable"


def test_no_difference_needs_a_bound_not_low_power() -> None:
    assert verdict(interval(-5, 5), "outside [-1, 1]") == "undecided"


def test_units_needed_decide_the_printed_effect_four_times_in_five() -> None:
    rng = np.random.default_rng(4)
    sample = rng.normal(0.1, 1.0, 50)
    reach = 1.96 * sample.std(ddof=1) / math.sqrt(50)
    found = Evidence(
        "a mean", sample.mean(), sample.mean() - reach, sample.mean() + reach, n=50, printed=0.25
    )
    wanted = units_needed(found, "<= 0")
    assert wanted is not None
    trials = rng.normal(0.25, sample.std(ddof=1), (4000, wanted))
    low = trials.mean(axis=1) - 1.96 * trials.std(axis=1, ddof=1) / math.sqrt(wanted)
    assert (low > 0).mean() == pytest.approx(0.8, abs=0.03)
    assert units_needed(Evidence("a mean", 0.0, -1, 1, n=9), "<= 0") is None
    assert (
        units_needed(Evidence("a mean", 0.0, -1, 1, n=9, printed=0.1 + 0.2), "<= 0.3") is None
    )  # but for rounding


@pytest.mark.parametrize(
    "wrong",
    [
        {"estimate": 1.0},
        {"estimate": 1.0, "low": 0.0},
        {"estimate": 2.0, "low": 0.0, "high": 1.0},
        {"low": 0.0, "high": 1.0},
        {"estimate": float("nan"), "reason": "x"},
        {"estimate": 0.5, "low": 0.0, "high": 1.0, "reason": "both"},
    ],
)
def test_what_is_no_evidence(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="a number"):
        Evidence("a number", **wrong)


def test_what_is_no_claim(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "claims.csv"
    monkeypatch.setattr(project, "data", lambda *_: path)
    head = ",".join(claims.STATED) + "\n"
    for row, told in {
        "a,table-1,hunch,b,c,d,<= 0": "kind 'hunch'",
        "a,table-1,finding,b,,d,<= 0": "needs the paper's words",
        "a,table-1,beyond,b,,,bad": "says not what contradicts",
        "a,table-1,beyond,b,,,<= 0\na,table-1,beyond,b,,,<= 0": "stands twice",
    }.items():
        path.write_text(head + row + "\n")
        with pytest.raises(ValueError, match=re.escape(told)):
            claims.stated("gfrc")


def test_resampling_clusters_by_unit() -> None:
    """The same answers asked three times over make the interval no narrower."""
    values = np.random.default_rng(1).normal(size=40)
    thrice = np.repeat(values[:, None], 3, axis=1)
    once = resampled(lambda units: float(values[units].mean()), 40, np.random.default_rng(2))
    again = resampled(lambda units: float(thrice[units].mean()), 40, np.random.default_rng(2))
    assert again == pytest.approx(once)
    error = values.std(ddof=1) / math.sqrt(40)
    assert once[1:] == pytest.approx(
        stats.norm.interval(0.95, values.mean(), error), abs=0.15 * error
    )


# --- the committed claims -------------------------------------------------------------------------


@pytest.mark.parametrize("row", CLAIMS.to_dict("records"), ids=CLAIMS["name"].tolist())
def test_every_committed_verdict_follows_from_its_numbers(row: dict[str, Any]) -> None:
    """By arithmetic written here, not by the library's."""
    assert row["kind"] in ("finding", "consistency", "beyond")
    assert row["kind"] != "finding" or (row["quote"] and row["place"])
    if row["estimate"] == "":
        assert row["verdict"] == "not testable"
        assert row["reason"]
        return
    assert (row["low"] == "") == bool(row["reason"])
    ends = [float(row[end] if row[end] != "" else row["estimate"]) for end in ("low", "high")]
    sign, *numbers = re.findall(r"outside|[<>]=?|[-+]?\d+(?:\.\d+)?", row["contradicted_if"])
    edges = [float(number) for number in numbers]
    contradicts: dict[str, Callable[[float], bool]] = {
        "<": lambda x: x < edges[0],
        "<=": lambda x: x <= edges[0],
        ">": lambda x: x > edges[0],
        ">=": lambda x: x >= edges[0],
        "outside": lambda x: not edges[0] <= x <= edges[1],
    }
    estimate, wider = float(row["estimate"]), stats.norm.ppf(0.995) / stats.norm.ppf(0.975)
    wide = [estimate + wider * (end - estimate) for end in ends]
    against = all(contradicts[sign](end) for end in wide)
    across = sign == "outside" and wide[0] < edges[0] and wide[1] > edges[1]
    printed = row["printed"] != "" and wide[0] <= float(row["printed"]) <= wide[1]
    holds = not any(contradicts[sign](end) for end in ends)
    expected = (
        "holds"
        if holds
        else "contradicted"
        if against and not across and not printed
        else "undecided"
    )
    assert row["verdict"] == expected
    assert row["n_needed"] == "" or row["verdict"] == "undecided"


def test_every_stated_claim_is_judged_once() -> None:
    papers = ["gfrc", "gfrc2", "permutations", "thesis"]
    known = [(paper, name) for paper in papers for name in claims.stated(paper).index]
    assert sorted(known) == sorted(zip(CLAIMS["paper"], CLAIMS["name"], strict=True))
