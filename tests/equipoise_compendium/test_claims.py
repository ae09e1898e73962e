"""The rule of answers, the protocol, and every answer of the committed reports again."""

from __future__ import annotations

import hashlib
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from equipoise.statistics import resampled
from equipoise_compendium import project, protocol, verdicts
from equipoise_compendium.evidence import bootstrapped_mean, minus_chance, not_sampled
from equipoise_compendium.protocol import Criterion, Evidence
from equipoise_compendium.rendering import claim_answers, claim_table
from equipoise_compendium.terms import QUANTIFIERS
from equipoise_compendium.verdicts import partial_conjunction

PAPERS = ["gfrc", "gfrc2", "permutations", "thesis"]
ROWS = pd.read_csv(project.root() / "reports" / "claims.csv", keep_default_na=False)
PROTOCOL = (project.root() / "data" / "published" / "protocol.md").read_text(encoding="utf-8")


def interval(low: float, high: float, **more: Any) -> Evidence:
    return Evidence((low + high) / 2, low, high, **more)


# --- one collection -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "criterion", "tends"),
    [
        (0.1, 0.3, "> 0", "supports"),
        (-0.1, 0.3, "> 0", ""),
        (-0.3, -0.04, "> 0", "contradicts"),
        (1.0, 1.9, "<= 2", "supports"),
        (2.1, 3.0, "< 2", "contradicts"),
        (-0.5, 0.5, "in [-1, 1]", "supports"),
        (-0.5, 1.5, "in [-1, 1]", ""),
        (-2.0, 2.0, "in [-1, 1]", ""),
        (1.1, 1.5, "in [-1, 1]", "contradicts"),
    ],
)
def test_the_tails_agree_with_the_interval(
    low: float, high: float, criterion: str, tends: str
) -> None:
    support, against = Criterion.parse(criterion).tails(interval(low, high))
    assert (support < 0.025) == (tends == "supports")
    assert (against < 0.025) == (tends == "contradicts")


def test_tails_are_those_of_a_z_test() -> None:
    error = 0.1 / stats.norm.ppf(0.975)
    support, against = Criterion.parse("> 0").tails(interval(-0.3, -0.1))
    assert support == pytest.approx(stats.norm.cdf(0.2 / error))
    assert against == pytest.approx(stats.norm.sf(0.2 / error))
    # The half of the interval that faces the bound decides.
    lopsided = Evidence(0.2, 0.1, 0.9)
    assert Criterion.parse("> 0").tails(lopsided)[0] == pytest.approx(stats.norm.sf(0.2 / error))
    # Two one-sided tests: both bounds count.
    error = 0.5 / stats.norm.ppf(0.975)
    assert Criterion.parse("in [-1, 1]").tails(interval(0.2, 1.2))[0] == pytest.approx(
        stats.norm.sf(0.3 / error)
    )


def test_without_sampling_the_number_decides() -> None:
    exact = Evidence(6, reason="nothing is sampled")
    met = [Criterion.parse(text).tails(exact)[0] == 0 for text in (">= 6", "> 6", "in [7, 9]")]
    assert met == [True, False, False]


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
def test_incomplete_evidence_is_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"evidence|estimate"):
        Evidence(**wrong)


def test_a_maximum_of_noise_is_not_above_chance() -> None:
    rng = np.random.default_rng(7)
    criterion, clear = Criterion.parse("> 0"), 0
    for _ in range(400):
        draws = np.abs(rng.normal(size=(201, 8))).max(axis=1)  # the best of eight, by chance
        clear += criterion.tails(minus_chance(draws[0], draws[1:]))[0] < 0.025
    assert clear / 400 == pytest.approx(0.025, abs=0.025)
    signal = minus_chance(9.0, draws[1:], n=30, published=8.0)
    assert criterion.tails(signal) == pytest.approx(
        (1 / 201, 1.0)
    )  # the observed value is one of the draws
    assert Criterion.parse("<= 0").tails(signal) == pytest.approx((1.0, 1 / 201))
    with pytest.raises(ValueError, match="must be zero"):
        Criterion.parse("> 1").tails(signal)
    assert signal.published == pytest.approx(8 - draws[1:].mean())
    with pytest.raises(ValueError, match="needs 40 draws"):
        minus_chance(9.0, draws[:20])


def test_an_interval_of_a_mean_is_near_the_normal_one() -> None:
    values = np.random.default_rng(7).random(40)
    error = values.std(ddof=1) / np.sqrt(40)
    expected = stats.norm.interval(0.95, values.mean(), error)
    found = bootstrapped_mean(values, published=0.4)
    assert (found.low, found.high) == pytest.approx(expected, abs=0.3 * error)
    assert found.estimate == pytest.approx(values.mean())
    assert (found.n, found.published) == (40, 0.4)


def test_cells_that_are_not_sampled_are_named_by_row_and_column() -> None:
    table = pd.DataFrame({"x": [1, 2], "y": [3, 4]}, index=["a", "b"])
    parts = not_sampled(table)
    assert {name: part.estimate for name, part in parts.items()} == {
        "a, x": 1,
        "a, y": 3,
        "b, x": 2,
        "b, y": 4,
    }
    part = not_sampled(table["x"], "counted", published=pd.Series({"b": 5.0}))["b"]
    assert part == Evidence(2.0, published=5.0, reason="counted")


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


# --- quantifiers ----------------------------------------------------------------------------------


def test_quantifiers_as_partial_conjunctions() -> None:
    """All: the largest p-value. Exists: Bonferroni's smallest. Most: in between."""
    support, against = [0.001, 0.01, 0.4], [0.999, 0.99, 0.6]
    assert partial_conjunction(support, against, 3) == pytest.approx((0.4, 1.0))
    assert partial_conjunction(support, against, 1) == pytest.approx((0.003, 0.999))
    assert partial_conjunction(support, against, 2) == pytest.approx((0.02, 1.0))
    # What contradicts "all" is one part that fails; what contradicts "exists" are all that fail.
    failing = [1 - p for p in support]
    assert partial_conjunction(failing, support, 3)[1] == pytest.approx(0.003)
    assert partial_conjunction(failing, support, 1)[1] == pytest.approx(0.4)


def test_a_partial_conjunction_is_valid_under_its_null() -> None:
    """With one effect of three, "at least two" is rejected in at most 5% of repetitions."""
    rng = np.random.default_rng(11)
    z = rng.normal(size=(4000, 3)) + np.array([6.0, 0.0, 0.0])
    rejected = 0
    for row in stats.norm.sf(z):
        rejected += partial_conjunction(list(row), list(1 - row), 2)[0] < 0.05
    assert rejected / 4000 < 0.055


# --- answers --------------------------------------------------------------------------------------

CLAIM = {
    "claim": "x",
    "artefact": "table-1",
    "kind": "finding",
    "statement": "s",
    "quote": "q",
    "place": "p",
    "quantifier": "mean",
    "measure": "a difference",
    "unit": "points",
    "criterion": "> 0",
    "bound_source": "text",
    "null": "",
    "collections": "here; there",
    "control": "c",
    "in_paper_reason": "images",
    "elsewhere_reason": "",
}
CONTROL = CLAIM | {
    "claim": "c",
    "kind": "positive control",
    "bound_source": "own",
    "control": "none",
    "in_paper_reason": "",
}
IN_PAPER = {
    "collections": "paper",
    "control": "none",
    "in_paper_reason": "",
    "elsewhere_reason": "no data",
}
"""Changes of a finding that the paper's own numbers alone judge."""
COLLECTIONS = [
    {
        "collection": "paper",
        "basis": "recomputed",
        "data": "d",
        "reason": "",
        "counted": "",
        "errors": "",
    },
    {
        "collection": "here",
        "basis": "replicated on other data",
        "data": "d",
        "reason": "r",
        "counted": "queries; y: topics",
        "errors": "",
    },
    {
        "collection": "there",
        "basis": "replicated on other data",
        "data": "d",
        "reason": "r",
        "counted": "queries; y: topics",
        "errors": "",
    },
]


@pytest.fixture
def write_protocol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write a protocol, and read it as that of every paper."""

    def write(*rows: dict[str, str]) -> None:
        pd.DataFrame(rows).to_csv(tmp_path / "claims.csv", index=False)
        pd.DataFrame(COLLECTIONS).to_csv(tmp_path / "collections.csv", index=False)

    monkeypatch.setattr(project, "data", lambda *parts: tmp_path / parts[-1])
    return write


def judged(*evidence: tuple[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Judge claims by their evidence; returns them by name."""
    rows = []
    for name, by_collection in evidence:
        record = protocol.evidence_of("p", name, by_collection)
        rows += [{**row, "notebook": "n"} for row in verdicts.rows_of("p", record)]
    return {each["claim"]: each for each in verdicts.as_claims(verdicts.judge(rows))}


PASSED = {"here": interval(1, 2), "there": interval(1, 2)}


@pytest.mark.parametrize(
    ("here", "there", "answer", "reason"),
    [
        (interval(1, 2), interval(-1, 2), "holds", "on here: 1.5 [1.0, 2.0]"),
        (interval(-2, -1), interval(-1, 2), "does not hold", "on here: −1.5 [−2.0, −1.0]"),
        (interval(-2, -1), interval(1, 2), "inconclusive", "collections disagree: does not hold "),
        (interval(-1, 2), interval(-1, 2), "inconclusive", "here, there: p = 1 after Holm's"),
        (Evidence(reason="no text"), interval(1, 2), "holds", "on there: 1.5 [1.0, 2.0]"),
        (Evidence(reason="no text"), Evidence(reason="lost"), "inconclusive", "here: no text; "),
        (Evidence(3, reason="no error"), interval(-1, 2), "inconclusive", "here: no interval is "),
        (interval(3, 3), interval(-1, 2), "inconclusive", "here: no interval is known; "),
    ],
)
def test_collections_vote(
    write_protocol: Any, here: Evidence, there: Evidence, answer: str, reason: str
) -> None:
    write_protocol(CLAIM, CONTROL)
    claim = judged(("x", {"here": here, "there": there}), ("c", PASSED))["x"]
    assert claim["elsewhere"] == answer
    assert claim["elsewhere_reason"].startswith(reason)
    assert (claim["in_paper"], claim["in_paper_reason"]) == ("cannot be recomputed", "images")
    assert [row["collection"] for row in claim["evidence"]] == ["here", "there"]


@pytest.mark.parametrize(
    ("parts", "answer", "reason"),
    [
        (
            [interval(1, 2), interval(3, 4)],
            "carried",
            "2 of 2 parts meet the criterion, decisive (0): 1.5 [1.0, 2.0]",
        ),
        (
            [interval(-2, -1), interval(3, 4)],
            "contradicted",
            "1 of 2 parts meet the criterion, decisive (0): −1.5 [−2.0, −1.0]",
        ),
        (
            [interval(-1, 2), interval(3, 4)],
            "not carried",
            "2 of 2 parts meet the criterion, decisive (0): 0.5 [−1.0, 2.0], p",
        ),
        (
            [Evidence(1, reason="r"), Evidence(2, reason="r")],
            "carried",
            "2 of 2 parts meet the criterion, decisive (0): 1, r",
        ),
        (
            [Evidence(-1, reason="r"), Evidence(2, reason="r")],
            "not carried",
            "1 of 2 parts meet the criterion, decisive (0): −1",
        ),
        (
            [Evidence(-1, reason="r"), Evidence(-2, reason="r")],
            "contradicted",
            "0 of 2 parts meet the criterion, decisive (1): −2",
        ),
    ],
)
def test_numbers_of_the_paper_answer(
    write_protocol: Any, parts: list[Evidence], answer: str, reason: str
) -> None:
    """Without an error, a part that fails does not contradict a sentence on every part."""
    write_protocol(CLAIM | IN_PAPER | {"quantifier": "all"}, CONTROL)
    named = {str(number): part for number, part in enumerate(parts)}
    claim = judged(("x", {"paper": named}))["x"]
    assert claim["in_paper"] == answer
    assert claim["in_paper_reason"].startswith(reason)
    assert (claim["elsewhere"], claim["elsewhere_reason"]) == ("not tested", "no data")


def test_numbers_that_are_not_computed_carry_nothing(write_protocol: Any) -> None:
    write_protocol(CLAIM | IN_PAPER, CONTROL)
    claim = judged(("x", {"paper": Evidence(reason="no such cell")}))["x"]
    assert (claim["in_paper"], claim["in_paper_reason"]) == ("cannot be recomputed", "no such cell")


def test_an_analysis_has_estimates_and_no_answer(write_protocol: Any) -> None:
    question = {
        "kind": "additional analysis",
        "quantifier": "",
        "criterion": "",
        "bound_source": "",
    }
    write_protocol(CLAIM | question | {"in_paper_reason": ""}, CONTROL)
    parts = {"a": interval(1, 2), "b": interval(-1, 2)}
    claim = judged(("x", {"here": parts, "there": interval(1, 2)}), ("c", PASSED))["x"]
    assert [row["part"] for row in claim["evidence"]] == ["a", "b", ""]
    assert claim_answers(claim) == []
    assert {row["p_value"] for row in claim["evidence"]} == {None}


def test_a_collection_whose_control_failed_does_not_vote(write_protocol: Any) -> None:
    write_protocol(CLAIM, CONTROL)
    evidence = {"here": interval(1, 2), "there": interval(-2, -1)}
    control = {"here": interval(-1, 2), "there": interval(1, 2)}
    claim = judged(("x", evidence), ("c", control))["x"]
    assert [row["result"] for row in claim["evidence"]] == ["control failed", "opposite"]
    assert claim["elsewhere"] == "does not hold"
    failed = {"here": interval(-1, 2), "there": interval(-1, 2)}
    claim = judged(("x", evidence), ("c", failed))["x"]
    assert claim["elsewhere"] == "inconclusive"
    assert claim["elsewhere_reason"] == "here, there: the control failed (c)"


def test_holm_over_the_findings_of_a_paper_elsewhere(write_protocol: Any) -> None:
    """Twenty findings, of which one has p = 0.01: not significant among so many."""
    names = [f"x{number}" for number in range(20)]
    write_protocol(*(CLAIM | {"claim": name} for name in names), CONTROL)
    weak = interval(0.1, 0.1 + 2 * 0.1 / (stats.norm.ppf(0.995) / stats.norm.ppf(0.975) - 1))
    wide = interval(-9, 10)
    alone = judged(("x0", {"here": weak, "there": wide}), ("c", PASSED))["x0"]
    assert alone["evidence"][0]["p_value"] == pytest.approx(0.01)
    assert alone["elsewhere"] == "holds"
    among = judged(*((name, {"here": weak, "there": wide}) for name in names), ("c", PASSED))["x0"]
    assert among["elsewhere"] == "inconclusive"
    chapters = [
        CLAIM | {"claim": name, "artefact": f"table-{number}.1"}
        for number, name in enumerate(names)
    ]
    write_protocol(*chapters, CONTROL)
    claims = judged(*((name, {"here": weak, "there": wide}) for name in names), ("c", PASSED))
    assert claims["x0"]["elsewhere"] == "holds"  # each chapter is a study of its own


@pytest.mark.parametrize(
    ("quantifier", "answer"),
    [("all", "not carried"), ("most", "carried"), ("exists", "carried")],
)
def test_the_part_that_decides_is_shown(write_protocol: Any, quantifier: str, answer: str) -> None:
    row = CLAIM | IN_PAPER | {"quantifier": quantifier}
    write_protocol(row, CONTROL | {"collections": "paper"})
    parts = {"a": interval(1, 2), "b": interval(2, 3), "c": interval(-0.1, 0.3)}
    claim = judged(("x", {"paper": parts}))["x"]
    assert claim["in_paper"] == answer
    assert claim["part"] == {"all": "c", "most": "a", "exists": "b"}[quantifier]
    assert (claim["parts"], claim["basis"]) == (3, "recomputed")


def test_other_numbers_change_the_answer_for_every_quantifier(write_protocol: Any) -> None:
    rows, evidence, expected = [], [], {}
    for quantifier in QUANTIFIERS:
        for answer, (low, high) in {
            "carried": (1, 2),
            "contradicted": (-2, -1),
            "not carried": (-1, 2),
        }.items():
            name = f"{quantifier}, {answer}"
            rows.append(CLAIM | IN_PAPER | {"claim": name, "quantifier": quantifier})
            evidence.append((name, {"paper": {"a part": interval(low, high)}}))
            expected[name] = answer
    write_protocol(*rows)
    assert {name: each["in_paper"] for name, each in judged(*evidence).items()} == expected


@pytest.mark.parametrize("bits", [-1, 0, 1])
def test_no_answer_hangs_on_the_last_bits(write_protocol: Any, bits: int) -> None:
    """Estimates on the bound, parts with equal support, and an estimate of zero."""
    write_protocol(CLAIM | IN_PAPER | {"quantifier": "all"})
    last = bits * 2.0**-54
    parts = {"a": Evidence(0.3 + last, 0.1, 0.5), "b": Evidence(0.3 - last, 0.1, 0.5)}
    (row,) = judged(("x", {"paper": parts}))["x"]["evidence"]
    assert (row["part"], row["estimate"]) == ("b", 0.3)
    (row,) = judged(("x", {"paper": Evidence(last, reason="exact")}))["x"]["evidence"]
    assert (row["met"], row["result"]) == (0, "opposite")


def test_units_needed_detect_the_published_effect_four_times_in_five() -> None:
    rng = np.random.default_rng(4)
    sample = rng.normal(0.1, 1.0, 50)
    reach = 1.96 * sample.std(ddof=1) / math.sqrt(50)
    mean = sample.mean()
    row = {"estimate": mean, "low": mean - reach, "high": mean + reach, "n": 50}
    row |= {"published": 0.25, "criterion": "> 0"}
    needed = verdicts.units_needed(row)
    assert needed is not None
    trials = rng.normal(0.25, sample.std(ddof=1), (4000, needed))
    low = trials.mean(axis=1) - 1.96 * trials.std(axis=1, ddof=1) / math.sqrt(needed)
    assert (low > 0).mean() == pytest.approx(0.8, abs=0.03)
    assert verdicts.units_needed(row | {"published": 0.0}) is None
    assert verdicts.units_needed(row | {"n": None}) is None


# --- the protocol ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"kind": "hunch"}, "got 'hunch'"),
        ({"quote": ""}, "must have a quotation"),
        ({"quantifier": ""}, "quantifier must be"),
        ({"measure": ""}, "measure and unit"),
        ({"criterion": "large"}, "criterion must be"),
        ({"bound_source": ""}, "bound_source must be"),
        ({"bound_source": "own"}, "must be text or rounding"),
        ({"collections": ""}, "must have data elsewhere, or a reason"),
        ({"elsewhere_reason": "no data"}, "must have data elsewhere, or a reason"),
        ({"in_paper_reason": ""}, "must have data in the paper, or a reason"),
        ({"kind": "additional analysis"}, "and no reason for none"),
        ({"kind": "additional analysis", "in_paper_reason": ""}, "no criterion and no quantifier"),
        ({"collections": "elsewhere"}, "collection must be"),
        ({"control": "none"}, "must have a control"),
        ({"control": "x"}, "control must be"),
    ],
)
def test_a_claim_that_leaves_a_choice_open_is_rejected(
    write_protocol: Any, changes: dict[str, str], problem: str
) -> None:
    write_protocol(CLAIM | changes, CONTROL)
    with pytest.raises(ValueError, match=re.escape(problem)):
        protocol.stated("p")


def test_evidence_comes_from_the_collections_of_the_protocol(write_protocol: Any) -> None:
    write_protocol(CLAIM, CONTROL, CLAIM)
    with pytest.raises(ValueError, match="is listed twice"):
        protocol.stated("p")
    write_protocol(CLAIM, CONTROL)
    with pytest.raises(ValueError, match="collections must be here; there, got here"):
        protocol.evidence_of("p", "x", {"here": interval(1, 2)})
    parts = {"a": interval(1, 2), "b": interval(1, 2)}
    with pytest.raises(ValueError, match="a mean must be one number"):
        protocol.evidence_of("p", "x", {"here": parts, "there": interval(1, 2)})
    with pytest.raises(ValueError, match="'y' is missing"):
        protocol.evidence_of("p", "y", {})


def test_no_quotation_is_tested_twice() -> None:
    """A sentence with two statements has two rows, which must differ in what is measured."""
    for paper in PAPERS:
        stated = protocol.stated(paper)
        findings = stated[stated["kind"] == "finding"]
        repeated = findings.duplicated(["quote", "measure", "criterion"])
        assert not repeated.any(), findings.index[repeated]


def test_the_protocol_has_the_digests_of_its_rows() -> None:
    """Whoever changes a row adds one to changes.csv, with what the old choice gave."""
    digests = dict(re.findall(r"^\| (\w+) \| \d+ \| `([0-9a-f]{16})` \|$", PROTOCOL, re.M))
    for paper in PAPERS:
        folder = project.root() / "data" / "published" / paper
        content = (folder / "claims.csv").read_bytes() + (folder / "collections.csv").read_bytes()
        assert digests[paper] == hashlib.sha256(content).hexdigest()[:16], paper


def test_changes_are_dated_and_say_what_was_seen() -> None:
    changes = pd.read_csv(project.root() / "data" / "published" / "changes.csv", dtype=str)
    assert list(changes) == protocol.CHANGE
    assert changes.notna().all().all()
    assert changes["date"].is_monotonic_increasing
    assert set(changes["seen"]) <= {"yes", "partly", "no"}
    assert set(changes["paper"]) == set(PAPERS)
    last = changes.assign(claim=changes["claim"].str.split("; ")).explode("claim")
    last = last.drop_duplicates(["paper", "claim"], keep="last").set_index(["paper", "claim"])
    rows = ROWS.drop_duplicates(["paper", "claim"]).set_index(["paper", "claim"])
    both = rows.index.intersection(last.index)
    assert len(both) > 100
    assert (rows.loc[both, "seen"] == last.loc[both, "seen"]).all()


# --- the committed claims -------------------------------------------------------------------------


def test_every_stated_claim_is_judged_once() -> None:
    known = [(paper, name) for paper in PAPERS for name in protocol.stated(paper).index]
    rows = ROWS.drop_duplicates(["paper", "claim"])
    assert sorted(known) == sorted(zip(rows["paper"], rows["claim"], strict=True))
    assert not ROWS.duplicated(["paper", "claim", "collection", "part"]).any()


def test_every_committed_p_value_follows_from_its_interval() -> None:
    """By arithmetic written here, for claims about one number."""
    checked = 0
    for row in ROWS[(ROWS["parts"] == "1") & (ROWS["low"] != "")].to_dict("records"):
        sign, *edges = re.findall(r"in|[<>]=?|[-+]?\d+(?:\.\d+)?", row["criterion"])
        estimate, low, high = (float(row[name]) for name in ("estimate", "low", "high"))
        if low == high or row["null"]:  # draws under the null hypothesis give a p-value, too
            continue
        z = []
        if sign in (">", ">=", "in"):
            gap = estimate - float(edges[0])
            z.append(gap / ((estimate - low) if gap > 0 else (high - estimate)))
        if sign in ("<", "<=", "in"):
            gap = float(edges[-1]) - estimate
            z.append(gap / ((high - estimate) if gap > 0 else (estimate - low)))
        p = 2 * stats.norm.sf(abs(1.959963985 * min(z)))
        assert float(row["p_value"]) == pytest.approx(min(1, p), rel=1e-6, abs=1e-12), row["claim"]
        checked += 1
    assert checked > 30


def test_every_committed_answer_elsewhere_follows_from_its_rows() -> None:
    """Holm's method and the votes, written here without the library's code."""
    chapter = ROWS["artefact"].str.extract(r"-(\d)\.", expand=False).fillna("")
    is_elsewhere = (ROWS["kind"] == "finding") & ~ROWS["basis"].isin(["", "recomputed"])
    rows = ROWS[is_elsewhere].assign(chapter=chapter[is_elsewhere])
    for _, family in rows[rows["p_value"] != ""].groupby(["paper", "chapter"]):
        ordered = family["p_value"].astype(float).sort_values()
        corrected = (ordered * np.arange(len(ordered), 0, -1)).cummax().clip(upper=1)
        holm = rows.loc[corrected.index, "p_holm"].astype(float)
        assert np.allclose(holm, corrected)
    controls = ROWS[(ROWS["kind"] == "positive control") & (ROWS["result"] == "passed")]
    has_passed = set(zip(controls["paper"], controls["claim"], controls["collection"], strict=True))
    for (paper, name), claim in rows.groupby(["paper", "claim"]):
        votes = set()
        for row in claim.to_dict("records"):
            needed = row["control"].split("; ") if row["basis"].startswith("replicated") else []
            if any((paper, control, row["collection"]) not in has_passed for control in needed):
                assert row["result"] in ("control failed", "not computed"), name
            elif row["p_holm"] != "" and float(row["p_holm"]) < 0.05:
                assert row["result"] in ("met", "opposite"), name
                votes.add(row["result"])
            else:
                assert row["result"] in ("imprecise", "no interval", "not computed"), name
        expected = {frozenset({"met"}): "holds", frozenset({"opposite"}): "does not hold"}
        assert set(claim["elsewhere"]) == {expected.get(frozenset(votes), "inconclusive")}, name


def test_every_committed_answer_in_the_paper_follows_from_its_rows() -> None:
    """Written here without the library's code; a finding without such rows has a reason."""
    findings = ROWS[ROWS["kind"] == "finding"]
    is_bounded = {}  # a bound of the error that gives no small p decides nothing
    for paper in PAPERS:
        for collection, errors in protocol.collections(paper)["errors"].items():
            is_bounded[paper, collection] = errors == "bounded"
    for (paper, name), claim in findings.groupby(["paper", "claim"]):
        of_paper = claim[claim["basis"] == "recomputed"].to_dict("records")
        shown = []
        for row in of_paper:
            met, parts = int(row["met"]), int(row["parts"])
            needed = {"most": parts // 2 + 1, "exists": 1}.get(row["quantifier"], parts)
            is_open = row["p_value"] != "" and float(row["p_value"]) >= 0.05
            if is_open and not is_bounded[paper, row["collection"]]:
                shown.append("not carried")
            elif met >= needed:
                shown.append("carried")
            else:
                is_clear = (row["p_value"] != "" and not is_open) or met < parts / 2
                shown.append("contradicted" if is_clear else "not carried")
        expected = shown[0] if len(set(shown)) == 1 else "not carried"
        assert set(claim["in_paper"]) == {expected if shown else "cannot be recomputed"}, name
        assert claim["in_paper_reason"].iloc[0], (paper, name)
        assert claim["elsewhere_reason"].iloc[0], (paper, name)


def test_the_page_unlock_names_each_finding_that_cannot_be_recomputed() -> None:
    listed = pd.read_csv(project.root() / "data" / "published" / "unlock.csv")
    named = set()
    for row in listed.itertuples():
        named |= {(row.paper, name) for name in row.findings.split(", ")}
    is_open = ROWS["in_paper"] == "cannot be recomputed"
    assert named == set(zip(ROWS.loc[is_open, "paper"], ROWS.loc[is_open, "claim"], strict=True))


EXTREME = re.compile(
    r"\b(?:largest|smallest|highest|lowest|greatest|least|best|absolute|oracle|maximum|minimum)\b",
    re.IGNORECASE,
)


def test_an_extreme_of_samples_has_a_null() -> None:
    """A maximum, an absolute value or a best choice lies above zero without any effect."""
    is_judged = (ROWS["low"] != "") & (ROWS["criterion"] != "")
    sampled = ROWS[is_judged & ROWS["measure"].str.contains(EXTREME)]
    assert sampled.loc[sampled["null"] == "", "claim"].tolist() == []


def test_claims_are_counted_as_the_rows_say() -> None:
    table = pd.read_csv(project.root() / "reports" / "answers.csv", keep_default_na=False)
    counted = table[table["paper"] == "all"].set_index(["question", "answer"])["claims"]
    claims = ROWS.drop_duplicates(["paper", "claim"])
    findings = claims[claims["kind"] == "finding"]
    checks = claims[claims["kind"] == "consistency check"]
    for question, answers in (
        ("in the paper", findings["in_paper"]),
        ("elsewhere", findings["elsewhere"]),
        ("check", checks["in_paper"]),
    ):
        numbers = counted[question]
        assert numbers[numbers > 0].to_dict() == answers.value_counts().to_dict()


def test_parts_that_meet_the_criterion_are_counted() -> None:
    """By plain code from the manifests, and every number of units has its unit."""
    signs = {"> ": float.__gt__, ">=": float.__ge__, "< ": float.__lt__, "<=": float.__le__}
    met = {}
    for path in (project.root() / "reports").glob("*/manifest.json"):
        manifest = json.loads(path.read_text(encoding="utf-8"))
        for record in [*manifest["artefacts"], *manifest["beyond"]]:
            for claim in record["claims"]:
                for collection, parts in claim["evidence"].items():
                    key = (record["artefact"].partition("/")[0], claim["name"], collection)
                    met[key] = [part["estimate"] for part in parts]
    seen = 0
    for row in ROWS[ROWS["met"] != ""].to_dict("records"):
        values = met[row["paper"], row["claim"], row["collection"]]
        criterion = row["criterion"]
        if criterion.startswith("in "):
            low, high = map(float, criterion[4:-1].split(", "))
            count = sum(low <= value <= high for value in values)
        else:
            bound = float(criterion[2:])
            count = sum(signs[criterion[:2]](float(value), bound) for value in values)
        assert (int(row["met"]), int(row["parts"])) == (count, len(values)), row["claim"]
        seen += 1
    assert seen > 200
    assert ROWS.loc[(ROWS["n"] != "") & (ROWS["counted"] == ""), "claim"].tolist() == []


def test_the_unit_of_n_depends_on_collection_and_claim() -> None:
    assert protocol.unit_of("topics; a: trials; b: models", "x") == "topics"
    assert protocol.unit_of("topics; a: trials; b: models", "b") == "models"
    assert protocol.unit_of("", "x") == ""


def test_a_control_passes_or_fails_and_has_no_answer(write_protocol: Any) -> None:
    write_protocol(CLAIM, CONTROL)
    evidence = {"here": interval(1, 2), "there": interval(-2, -1)}
    control = judged(("x", evidence), ("c", evidence))["c"]
    assert claim_answers(control) == []
    _, lines = claim_table(control["evidence"])
    assert [line[-1] for line in lines] == ["passed", "failed"]
