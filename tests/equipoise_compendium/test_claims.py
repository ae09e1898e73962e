"""Verdicts on claims: what an interval allows, and every verdict of the committed reports again."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from equipoise.statistics import resampled
from equipoise_compendium import claims, project
from equipoise_compendium.claims import (
    Evidence,
    as_words,
    deciding_ends,
    excludes_printed,
    judged,
    less_chance,
    p_value,
    units_needed,
    verdict,
)

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


def test_what_the_interval_excludes_is_said_and_needs_no_more_units() -> None:
    """The printed .6 lies above the whole interval: more units would not make it more excluded."""
    evidence = interval(-0.1, 0.5, n=40, printed=0.6)
    assert verdict(evidence, "<= 0") == "undecided"
    assert excludes_printed(evidence, "<= 0")
    assert units_needed(evidence, "<= 0") is None
    assert "the published effect is excluded" in as_words(record(evidence, "<= 0"))
    within = interval(-0.1, 0.5, n=40, printed=0.4)
    assert units_needed(within, "<= 0") is not None
    assert "excluded" not in as_words(record(within, "<= 0"))


def record(evidence: Evidence, contradicted_if: str) -> dict[str, Any]:
    """A claim as the reports keep it."""
    judgement = verdict(evidence, contradicted_if)
    needed = units_needed(evidence, contradicted_if) if judgement == "undecided" else None
    return vars(evidence) | {
        "contradicted_if": contradicted_if,
        "verdict": judgement,
        "n_needed": needed,
    }


def test_the_interval_shown_is_the_one_that_decides() -> None:
    sides = stats.norm.ppf(0.995) / stats.norm.ppf(0.975)
    evidence = interval(-0.3, -0.04)  # contradicts at 95 % only
    assert deciding_ends(evidence, "<= 0") == pytest.approx(
        (-0.17 - 0.13 * sides, -0.17 + 0.13 * sides, 0.99)
    )
    assert "(99%)" in as_words(record(evidence, "<= 0"))
    assert deciding_ends(interval(-0.3, 0.04), "<= 0") == (-0.3, 0.04, 0.95)
    assert "(99%)" not in as_words(record(interval(-0.3, 0.04), "<= 0"))


def test_units_that_contradict_are_reckoned_with_99_percent() -> None:
    rng = np.random.default_rng(5)
    effect, spread, n = -0.2, 1.0, 60
    reach = 1.96 * spread / math.sqrt(n)
    evidence = Evidence("a mean", -0.1, -0.1 - reach, -0.1 + reach, n=n, printed=effect)
    wanted = units_needed(evidence, "<= 0")
    assert wanted is not None
    means = rng.normal(effect, spread / math.sqrt(wanted), 20_000)
    high = means + stats.norm.ppf(0.995) * spread / math.sqrt(wanted)
    assert (high < 0).mean() == pytest.approx(0.8, abs=0.02)


def test_p_says_what_the_wider_interval_says() -> None:
    rng = np.random.default_rng(6)
    for _ in range(200):
        low, high = sorted(rng.normal(-0.5, 0.5, 2))
        evidence = interval(low, high)
        p = p_value(evidence, "<= 0")
        assert p is not None
        assert (p < 0.01) == (verdict(evidence, "<= 0") == "contradicted")
    z = 0.2 / (0.1 / stats.norm.ppf(0.975))
    assert p_value(interval(-0.3, -0.1), "<= 0") == pytest.approx(2 * stats.norm.sf(z))
    assert p_value(interval(1.1, 1.5), "outside [-1, 1]") == pytest.approx(
        2 * stats.norm.sf(0.3 / (0.2 / stats.norm.ppf(0.975)))
    )
    assert p_value(interval(0.1, 0.3), "<= 0") == 1
    assert p_value(Evidence("a count", 6, reason="nothing is sampled"), "<= 7") is None


def test_a_maximum_of_noise_does_not_hold_less_its_chance() -> None:
    rng = np.random.default_rng(7)
    verdicts = []
    for _ in range(400):
        draws = np.abs(rng.normal(size=(201, 8))).max(axis=1)  # the best of eight, by chance
        verdicts.append(verdict(less_chance("best of eight", draws[0], draws[1:]), "<= 0"))
    assert verdicts.count("holds") / 400 == pytest.approx(0.025, abs=0.02)
    signal = less_chance("best of eight", 9.0, draws[1:], n=30, printed=8.0)
    assert verdict(signal, "<= 0") == "holds"
    assert signal.printed == pytest.approx(8 - draws[1:].mean())
    with pytest.raises(ValueError, match="needs 40 draws"):
        less_chance("best of eight", 9.0, draws[:20])


STATED = {
    "claim": "x",
    "artefact": "table-1",
    "kind": "finding",
    "about": claims.METHOD,
    "statement": "s",
    "quote": "q",
    "place": "p",
    "contradicted_if": "<= 0",
    "null": "",
    "stand_in": "",
    "reason": "",
}


@pytest.mark.parametrize(
    ("changes", "data", "problem"),
    [
        ({}, "", "say on which data"),
        ({"kind": "beyond", "about": ""}, "", "say on which data"),
        ({}, "other topics", "why it can be tested"),
        ({"about": claims.NAMED_SYSTEMS, "stand_in": "why"}, "a small model", "cannot be judged"),
        ({"about": "everything"}, claims.OWN_DATA, "got 'everything'"),
        ({"about": ""}, claims.OWN_DATA, "got ''"),
    ],
)
def test_what_data_cannot_test_is_refused(
    changes: dict[str, str], data: str, problem: str, tmp_path: Path, monkeypatch: Any
) -> None:
    path = tmp_path / "claims.csv"
    monkeypatch.setattr(project, "data", lambda *_: path)
    pd.DataFrame([STATED | changes]).to_csv(path, index=False)
    with pytest.raises(ValueError, match=re.escape(problem)):
        judged("gfrc", "x", interval(1, 2), data)


def test_named_systems_are_not_testable_on_others(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "claims.csv"
    monkeypatch.setattr(project, "data", lambda *_: path)
    pd.DataFrame([STATED | {"about": claims.NAMED_SYSTEMS}]).to_csv(path, index=False)
    claim = judged("gfrc", "x", Evidence("a share", reason="it is about others"), "a small model")
    assert (claim["verdict"], claim["basis"]) == ("not testable", "replica")
    own = judged("gfrc", "x", interval(1, 2), claims.OWN_DATA)
    assert (own["verdict"], own["basis"]) == ("holds", "recomputed")


def test_a_sentence_is_judged_by_all_its_claims() -> None:
    rows = [
        {"paper": "p", "quote": quote, "basis": basis, "kind": kind, "verdict": verdict}
        for quote, basis, kind, verdict in (
            ("a", "replica", "finding", "holds"),
            ("a", "replica", "finding", "undecided"),
            ("a", "recomputed", "finding", "holds"),
            ("b", "replica", "finding", "holds"),
            ("b", "replica", "finding", "not testable"),
            ("c", "replica", "finding", "holds"),
            ("c", "replica", "finding", "contradicted"),
            ("d", "replica", "finding", "not testable"),
            ("e", "replica", "beyond", "holds"),
        )
    ]
    of = {(each["quote"], each["basis"]): each["verdict"] for each in claims.by_sentence(rows)}
    assert of == {
        ("a", "replica"): "undecided",
        ("a", "recomputed"): "holds",
        ("b", "replica"): "holds",
        ("c", "replica"): "contradicted",
        ("d", "replica"): "not testable",
    }


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
        "a,table-1,hunch,,b,c,d,<= 0,,,": "got 'hunch'",
        "a,table-1,finding,the method,b,,d,<= 0,,,": "needs the paper's words",
        "a,table-1,beyond,,b,,,bad,,,": "contradicted_if must be",
        "a,table-1,beyond,,b,,,<= 0,,,\na,table-1,beyond,,b,,,<= 0,,,": "is listed twice",
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


def test_each_committed_verdict_rests_on_data_that_can_test_it() -> None:
    for row in CLAIMS.to_dict("records"):
        own = row["data"] in ("the paper's own data", "printed numbers")
        assert row["data"]
        assert row["basis"] == ("recomputed" if own else "replica")
        if row["kind"] == "finding":
            assert row["about"] in ("these systems", "the method"), row["name"]
        if not own and row["estimate"] != "":
            assert row["about"] != "these systems", row["name"]
            assert row["stand_in"], row["name"]


EXTREME = re.compile(
    r"\b(?:largest|smallest|highest|lowest|greatest|least|best|most|absolute|oracle|maximum|minimum|"
    r"either sign)\b",
    re.IGNORECASE,
)


def test_an_extreme_is_held_against_chance() -> None:
    """A maximum, an absolute value or a best choice of samples lies above zero by chance alone."""
    sampled = CLAIMS[(CLAIMS["low"] != "") & CLAIMS["evidence"].str.contains(EXTREME)]
    without = sampled[sampled["null"] == ""]
    named = [
        f"{row.paper}/{row.name_}" for row in without.rename(columns={"name": "name_"}).itertuples()
    ]
    assert sorted(named) == sorted(NOT_BY_CHANCE)


AGAINST = "the worst of several must be beyond the edge: chance works against the claim"
NOT_BY_CHANCE = {
    "permutations/2-judged": "the best are those that a system ranks first; it is a mean",
    "thesis/5.1-fall-short": AGAINST,
    "thesis/5.3-human": AGAINST,
    "thesis/5.4-labelled-human": AGAINST,
    "thesis/5.5-human": AGAINST,
    "thesis/5.8-names": AGAINST,
    "thesis/5.9-retrievers": AGAINST,
}
"""Claims that speak of an extreme and need no chance, each with the reason."""


def test_holm_over_a_paper_is_that_of_statsmodels() -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    with_p = CLAIMS[CLAIMS["p_value"] != ""]
    contradicted = 0
    for _, rows in with_p.groupby("paper"):
        rejected = multitest.multipletests(rows["p_value"].astype(float), 0.05, "holm")[0]
        for survives, verdict_, is_rejected in zip(
            rows["survives_holm"], rows["verdict"], rejected, strict=True
        ):
            expected = ("yes" if is_rejected else "no") if verdict_ == "contradicted" else ""
            assert survives == expected
            contradicted += verdict_ == "contradicted"
    assert contradicted


def test_sentences_are_counted_as_the_claims_say() -> None:
    """Counted here from the claims by sets, not by the library."""
    table = pd.read_csv(project.root() / "reports" / "verdicts.csv")
    counted = table.set_index(["paper", "basis", "verdict"])["sentences"]
    findings = CLAIMS[CLAIMS["kind"] == "finding"]
    assert counted["all", "all", "all"] == len(findings.drop_duplicates(["paper", "quote"]))
    for basis, rows in findings.groupby("basis"):
        against = rows[rows["verdict"] == "contradicted"]
        quotes = set(zip(against["paper"], against["quote"], strict=True))
        assert counted["all", basis, "contradicted"] == len(quotes)
        assert counted["all", basis, "all"] == len(rows.drop_duplicates(["paper", "quote"]))


def test_where_stand_ins_disagree_nothing_is_decided() -> None:
    above, below = Evidence("r here", 0.84, 0.78, 0.9, 96), Evidence("r there", 0.6, 0.58, 0.63, 9)
    together = claims.joined([above, below])
    assert together.estimate == pytest.approx(0.72)
    assert (together.low, together.high) == (0.58, 0.9)
    assert together.said == "between r here: 0.84 [0.78, 0.9]; r there: 0.6 [0.58, 0.63]"
    assert claims.verdict(above, ">= 0.7") == "contradicted"
    assert claims.verdict(together, ">= 0.7") == "undecided"
    assert claims.units_needed(together, ">= 0.7") is None
    assert claims.joined([above]) is above
    untested = Evidence("r", reason="a ranker has one score")
    assert claims.joined([above, untested]) is untested
