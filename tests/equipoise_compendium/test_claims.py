"""The rule of verdicts, the protocol, and every verdict of the committed reports again."""

from __future__ import annotations

import hashlib
import json
import math
import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from equipoise.statistics import resampled
from equipoise_compendium import ledger, project, protocol, verdicts
from equipoise_compendium.evidence import bootstrapped_mean, minus_chance, not_sampled
from equipoise_compendium.protocol import Criterion, Evidence
from equipoise_compendium.rendering import claim_label, claim_table
from equipoise_compendium.terms import KINDS, QUANTIFIERS
from equipoise_compendium.verdicts import partial_conjunction

PAPERS = ["gfrc", "gfrc2", "permutations", "thesis"]
ROWS = pd.read_csv(project.root() / "reports" / "claims.csv", keep_default_na=False)
PROTOCOL = project.root() / "data" / "published" / "protocol.md"


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


# --- verdicts -------------------------------------------------------------------------------------

CLAIM = {
    "claim": "x",
    "artefact": "table-1",
    "kind": "finding",
    "about": "the method",
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
    "reason": "",
}
CONTROL = CLAIM | {
    "claim": "c",
    "kind": "positive control",
    "bound_source": "own",
    "control": "none",
}
COLLECTIONS = [
    {"collection": "paper", "basis": "recomputed", "data": "d", "reason": "", "counted": ""},
    {
        "collection": "here",
        "basis": "replicated on other data",
        "data": "d",
        "reason": "r",
        "counted": "queries; y: topics",
    },
    {
        "collection": "there",
        "basis": "replicated on other data",
        "data": "d",
        "reason": "r",
        "counted": "queries; y: topics",
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
    ("here", "there", "verdict", "reason"),
    [
        (interval(1, 2), interval(-1, 2), "supported", ""),
        (interval(-2, -1), interval(-1, 2), "contradicted", ""),
        (interval(-2, -1), interval(1, 2), "inconclusive", "collections disagree"),
        (interval(-1, 2), interval(-1, 2), "inconclusive", "imprecise"),
        (Evidence(reason="no text"), interval(1, 2), "supported", ""),
        (Evidence(reason="no text"), Evidence(reason="no text"), "not testable", ""),
    ],
)
def test_collections_vote(
    write_protocol: Any, here: Evidence, there: Evidence, verdict: str, reason: str
) -> None:
    write_protocol(CLAIM, CONTROL)
    claim = judged(("x", {"here": here, "there": there}), ("c", PASSED))["x"]
    assert (claim["verdict"], claim["verdict_reason"]) == (verdict, reason)
    assert [row["collection"] for row in claim["evidence"]] == ["here", "there"]


def test_a_collection_whose_control_failed_does_not_vote(write_protocol: Any) -> None:
    write_protocol(CLAIM, CONTROL)
    evidence = {"here": interval(1, 2), "there": interval(-2, -1)}
    control = {"here": interval(-1, 2), "there": interval(1, 2)}
    claim = judged(("x", evidence), ("c", control))["x"]
    assert [row["result"] for row in claim["evidence"]] == ["control failed", "contradicts"]
    assert claim["verdict"] == "contradicted"
    failed = {"here": interval(-1, 2), "there": interval(-1, 2)}
    claim = judged(("x", evidence), ("c", failed))["x"]
    assert (claim["verdict"], claim["verdict_reason"]) == ("inconclusive", "control failed")


def test_holm_over_the_findings_of_a_paper_and_basis(write_protocol: Any) -> None:
    """Twenty findings, of which one has p = 0.01: not significant among so many."""
    names = [f"x{number}" for number in range(20)]
    write_protocol(*(CLAIM | {"claim": name} for name in names), CONTROL)
    weak = interval(0.1, 0.1 + 2 * 0.1 / (stats.norm.ppf(0.995) / stats.norm.ppf(0.975) - 1))
    wide = interval(-9, 10)
    alone = judged(("x0", {"here": weak, "there": wide}), ("c", PASSED))["x0"]
    assert alone["evidence"][0]["p_value"] == pytest.approx(0.01)
    assert alone["verdict"] == "supported"
    among = judged(*((name, {"here": weak, "there": wide}) for name in names), ("c", PASSED))["x0"]
    assert among["verdict"] == "inconclusive"


@pytest.mark.parametrize(
    ("quantifier", "verdict"),
    [("all", "inconclusive"), ("most", "supported"), ("exists", "supported")],
)
def test_the_part_that_decides_is_shown(write_protocol: Any, quantifier: str, verdict: str) -> None:
    row = CLAIM | {"quantifier": quantifier, "collections": "paper", "control": "none"}
    write_protocol(row, CONTROL | {"collections": "paper"})
    parts = {"a": interval(1, 2), "b": interval(2, 3), "c": interval(-0.1, 0.3)}
    claim = judged(("x", {"paper": parts}))["x"]
    assert claim["verdict"] == verdict
    assert claim["part"] == {"all": "c", "most": "a", "exists": "b"}[quantifier]
    assert (claim["parts"], claim["basis"]) == (3, "recomputed")


def test_other_data_change_the_verdict_of_every_kind(write_protocol: Any) -> None:
    rows, evidence, expected = [], [], {}
    for kind, quantifier in product(KINDS, QUANTIFIERS):
        for verdict, (low, high) in {
            "supported": (1, 2),
            "contradicted": (-2, -1),
            "inconclusive": (-1, 2),
        }.items():
            name = f"{kind}, {quantifier}, {verdict}"
            changes = {"claim": name, "kind": kind, "quantifier": quantifier}
            rows.append(CLAIM | changes | {"collections": "paper", "control": "none"})
            evidence.append((name, {"paper": {"a part": interval(low, high)}}))
            expected[name] = verdict
    write_protocol(*rows)
    assert {name: each["verdict"] for name, each in judged(*evidence).items()} == expected


@pytest.mark.parametrize("bits", [-1, 0, 1])
def test_no_verdict_hangs_on_the_last_bits(write_protocol: Any, bits: int) -> None:
    """Estimates on the bound, parts with equal support, and an estimate of zero."""
    write_protocol(CLAIM | {"quantifier": "all", "collections": "paper", "control": "none"})
    last = bits * 2.0**-54
    parts = {"a": Evidence(0.3 + last, 0.1, 0.5), "b": Evidence(0.3 - last, 0.1, 0.5)}
    (row,) = judged(("x", {"paper": parts}))["x"]["evidence"]
    assert (row["part"], row["estimate"]) == ("b", 0.3)
    (row,) = judged(("x", {"paper": Evidence(last, reason="exact")}))["x"]["evidence"]
    assert (row["met"], row["result"]) == (0, "contradicts")


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
        ({"about": ""}, "about must be"),
        ({"quantifier": ""}, "quantifier must be"),
        ({"measure": ""}, "measure and unit"),
        ({"criterion": "large"}, "criterion must be"),
        ({"bound_source": ""}, "bound_source must be"),
        ({"bound_source": "own"}, "must be text or rounding"),
        ({"collections": ""}, "must have collections"),
        ({"reason": "no data"}, "must have collections"),
        ({"collections": "elsewhere"}, "collection must be"),
        ({"control": "none"}, "must have a control"),
        ({"control": "x"}, "control must be"),
        ({"about": "these systems"}, "other data cannot judge it"),
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


def test_the_protocol_is_that_of_its_last_entry() -> None:
    """Whoever changes a row adds an entry, with what the old choice gave."""
    entries = re.findall(r"^## (\d{4}-\d{2}-\d{2})", PROTOCOL.read_text(encoding="utf-8"), re.M)
    assert entries == sorted(entries)
    last = PROTOCOL.read_text(encoding="utf-8").rpartition("\n## ")[2]
    digests = dict(re.findall(r"^\| (\w+) \| \d+ \| `([0-9a-f]{16})` \|$", last, re.M))
    for paper in PAPERS:
        folder = project.root() / "data" / "published" / paper
        content = (folder / "claims.csv").read_bytes() + (folder / "collections.csv").read_bytes()
        assert digests[paper] == hashlib.sha256(content).hexdigest()[:16], paper


# --- the committed claims -------------------------------------------------------------------------


def test_every_stated_claim_is_judged_once() -> None:
    known = [(paper, name) for paper in PAPERS for name in protocol.stated(paper).index]
    rows = ROWS.drop_duplicates(["paper", "claim"])
    assert sorted(known) == sorted(zip(rows["paper"], rows["claim"], strict=True))
    assert not ROWS.duplicated(["paper", "claim", "collection"]).any()


def test_every_committed_p_value_follows_from_its_interval() -> None:
    """By arithmetic written here, for claims about one number."""
    checked = 0
    for row in ROWS[(ROWS["parts"].astype(int) == 1) & (ROWS["low"] != "")].to_dict("records"):
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
    assert checked > 40


def test_every_committed_verdict_follows_from_its_rows() -> None:
    """Holm's method and the votes, written here without the library's code."""
    rows = ROWS.copy()
    for _, family in rows[(rows["p_value"] != "") & (rows["kind"] != "positive control")].groupby(
        ["paper", "basis", "kind"]
    ):
        ordered = family["p_value"].astype(float).sort_values()
        corrected = (ordered * np.arange(len(ordered), 0, -1)).cummax().clip(upper=1)
        holm = rows.loc[corrected.index, "p_holm"].astype(float)
        assert np.allclose(holm, corrected)
    passed = rows[(rows["kind"] == "positive control") & (rows["result"] == "supports")]
    has_passed = set(zip(passed["paper"], passed["claim"], passed["collection"], strict=True))
    for (paper, name), claim in rows.groupby(["paper", "claim"]):
        for row in claim.to_dict("records"):
            is_clear = row["p_holm"] == "" or float(row["p_holm"]) < 0.05
            if row["result"] in ("supports", "contradicts"):
                assert is_clear, name
            elif row["result"] == "imprecise":
                assert not is_clear, name
            elif row["result"] == "control failed":
                control = (paper, row["control"], row["collection"])
                assert ";" in row["control"] or control not in has_passed, name
        votes = set(claim["result"]) & {"supports", "contradicts"}
        expected = {
            frozenset({"supports"}): "supported",
            frozenset({"contradicts"}): "contradicted",
        }.get(frozenset(votes), "inconclusive")
        if set(claim["result"]) == {"not testable"}:
            expected = "not testable"
        assert set(claim["verdict"]) == {expected}, name


EXTREME = re.compile(
    r"\b(?:largest|smallest|highest|lowest|greatest|least|best|absolute|oracle|maximum|minimum)\b",
    re.IGNORECASE,
)


def test_an_extreme_of_samples_has_a_null() -> None:
    """A maximum, an absolute value or a best choice lies above zero without any effect."""
    sampled = ROWS[(ROWS["low"] != "") & ROWS["measure"].str.contains(EXTREME)]
    assert sampled.loc[sampled["null"] == "", "claim"].tolist() == []


def test_claims_are_counted_as_the_rows_say() -> None:
    table = pd.read_csv(project.root() / "reports" / "verdicts.csv", keep_default_na=False)
    counted = table[table["paper"] == "all"].groupby(["kind", "verdict"])["claims"].sum()
    expected = ROWS.drop_duplicates(["paper", "claim"]).groupby(["kind", "verdict"]).size()
    assert counted[counted > 0].to_dict() == expected.to_dict()


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


def test_a_control_passes_or_fails_and_has_no_verdict(write_protocol: Any) -> None:
    write_protocol(CLAIM, CONTROL)
    evidence = {"here": interval(1, 2), "there": interval(-2, -1)}
    control = judged(("x", evidence), ("c", evidence))["c"]
    assert claim_label(control) == "positive control"
    _, lines = claim_table(control["evidence"])
    assert [line[-1] for line in lines] == ["passed", "failed"]
    assert not any(kind == "positive control" for kind, *_ in ledger.tally(verdicts.counts(ROWS)))
