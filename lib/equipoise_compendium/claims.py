"""Claims: statements of papers and our own, evidence on each collection, and verdicts.

``data/published/<paper>/claims.csv`` is the protocol: one row per claim, with the values that
support it and every collection that may judge it. ``collections.csv`` describes the collections.
Notebooks compute the evidence. This module computes the verdicts, over all reports of a paper.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from equipoise_compendium import project
from equipoise_compendium.printed import read_columns
from equipoise_compendium.terms import (
    ABOUT,
    BASES,
    KINDS,
    NAMED_SYSTEMS,
    QUANTIFIERS,
    REPLICATED,
    SOURCES,
    VERDICTS,
)
from equipoise_compendium.words import interval

STATED = [
    "claim",
    "artefact",
    "kind",
    "about",
    "statement",
    "quote",
    "place",
    "quantifier",
    "measure",
    "unit",
    "criterion",
    "bound_source",
    "null",
    "collections",
    "control",
    "reason",
]
"""Columns of a protocol.

``criterion`` gives the values that support the claim, and ``bound_source`` the source of its bound.
``null`` names the null distribution of a statistic that is above zero without any effect: a
maximum, an absolute value or a best choice. ``control`` is the claim that a collection must support
before it votes. ``reason`` states why a claim cannot be tested.
"""
COLLECTION = ["collection", "basis", "data", "reason", "counted"]
"""Columns of ``collections.csv``.

``reason`` states why other data may judge a claim. ``counted`` is the unit of ``n``; where a claim
has another unit, it follows: ``topics; names-listed: conversations``.
"""
COLUMNS = [
    "paper",
    *STATED[:-3],
    "control",
    "verdict",
    "verdict_reason",
    "collection",
    "basis",
    "part",
    "parts",
    "met",
    "estimate",
    "low",
    "high",
    "n",
    "counted",
    "published",
    "p_value",
    "p_holm",
    "result",
    "n_needed",
    "notebook",
    "reason",
]
"""Columns of ``reports/claims.csv``: one row per claim and collection.

``parts`` are the parts with evidence, of which ``met`` have an estimate that meets the criterion.
"""
ERROR = 0.05
"""Error rate of a family: all findings (or checks, or analyses) of one paper and basis."""
_95 = stats.norm.ppf(0.975)
_COUNTS = ["parts", "met", "n", "n_needed"]
_NUMBERS = [*_COUNTS, "estimate", "low", "high", "published", "p_value", "p_holm"]


@dataclass(frozen=True)
class Evidence:
    """An estimate and its 95% confidence interval over ``n`` units, with the paper's value.

    ``reason`` states why there is no interval (nothing was sampled) or, without an estimate, why
    the collection cannot judge the claim.
    """

    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    published: float | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        numbers = [self.estimate, self.low, self.high, self.published]
        if any(number is not None and math.isnan(number) for number in numbers):
            raise ValueError(f"evidence must not be NaN, got {self}")
        has_interval = self.low is not None
        if has_interval != (self.high is not None) or has_interval == bool(self.reason):
            raise ValueError(f"evidence must have an interval, or a reason for none, got {self}")
        if self.low is None or self.high is None:
            return
        if self.estimate is None or not self.low <= self.estimate <= self.high:
            raise ValueError(f"the estimate must be in its interval, got {self}")

    def words(self, decimals: int = 3) -> str:
        """Write the estimate with its interval, or why there is none."""
        if self.estimate is None or self.low is None or self.high is None:
            return self.reason
        return interval(self.estimate, self.low, self.high, decimals)


@dataclass(frozen=True)
class Criterion:
    """The values that support a claim: ``low`` to ``high``, without both bounds if ``open``."""

    low: float
    high: float
    open: bool = False

    @classmethod
    def parse(cls, text: str) -> Criterion:
        """Read ``> 1``, ``>= 1``, ``< 1``, ``<= 1`` or ``in [-1, 1]``."""
        number = r"([+-]?\d+(?:\.\d+)?)"
        bound = re.fullmatch(rf"(<|>)(=?) {number}", text)
        span = re.fullmatch(rf"in \[{number}, {number}\]", text)
        if bound:
            edge = float(bound[3])
            low, high = (edge, math.inf) if bound[1] == ">" else (-math.inf, edge)
            return cls(low, high, open=not bound[2])
        if span:
            return cls(float(span[1]), float(span[2]))
        raise ValueError(f"criterion must be > 1, >= 1, < 1, <= 1 or in [-1, 1], got {text!r}")

    def __contains__(self, value: float) -> bool:
        if self.open:
            return self.low < value < self.high
        return self.low <= value <= self.high

    def margin(self, value: float) -> float:
        """Compute the distance from the nearest bound; negative outside the criterion."""
        return min(value - self.low, self.high - value)

    def tails(self, evidence: Evidence) -> tuple[float, float]:
        """Compute two one-sided p-values: of meeting the criterion, and of not meeting it.

        The first is small if the interval supports the claim, the second if it contradicts the
        claim. Errors are normal, with the half of the interval that faces the bound.
        """
        if evidence.estimate is None:
            raise ValueError("evidence must have an estimate to compute p-values")
        estimate = evidence.estimate
        if evidence.low is None or evidence.high is None or evidence.low == evidence.high:
            return (0.0, 1.0) if estimate in self else (1.0, 0.0)
        below, above = estimate - evidence.low, evidence.high - estimate
        distances = []  # in standard errors, positive on the side that meets the criterion
        if self.low > -math.inf:
            gap = estimate - self.low
            distances.append(_in_errors(gap, below if gap > 0 else above))
        if self.high < math.inf:
            gap = self.high - estimate
            distances.append(_in_errors(gap, above if gap > 0 else below))
        nearest = min(distances)
        return float(stats.norm.sf(nearest)), float(stats.norm.cdf(nearest))


def _in_errors(gap: float, half: float) -> float:
    """Divide a distance by the standard error, computed from half of a 95% interval."""
    if half == 0:
        return math.copysign(math.inf, gap) if gap else 0.0
    return float(gap / (half / _95))


def minus_chance(
    observed: float,
    draws: ArrayLike,
    *,
    n: int | None = None,
    published: float | None = None,
) -> Evidence:
    """Compute a statistic minus its mean under the null hypothesis, with an interval.

    ``draws``: the statistic under the null hypothesis, shaped (draws,). The interval lies above
    zero if fewer than 2.5% of the draws reach the observed value. The same mean is subtracted from
    ``published``, the value of the paper.
    """
    values = np.asarray(draws, dtype=float)
    if values.ndim != 1 or len(values) < 40:
        raise ValueError(f"an interval of 95% needs 40 draws, got {values.size}")
    expected = float(values.mean())
    lowest, highest = np.quantile(values, [0.025, 0.975])
    estimate = observed - expected
    return Evidence(
        estimate,
        min(observed - float(highest), estimate),
        max(observed - float(lowest), estimate),
        n,
        None if published is None else published - expected,
    )


# --- the protocol ---------------------------------------------------------------------------------


def stated(paper: str) -> pd.DataFrame:
    """Read the protocol of a paper, by the name of the claim."""
    paths = [project.data("published", paper, name) for name in ("claims.csv", "collections.csv")]
    return _stated(paper, tuple(project.sha256(path) for path in paths))


@cache  # checked again only if the content has changed
def _stated(paper: str, _digests: tuple[str, ...]) -> pd.DataFrame:
    table = read_columns(project.data("published", paper, "claims.csv"), STATED)
    bases = collections(paper)["basis"].to_dict()
    controls = set(table.loc[table["kind"] == "positive control", "claim"])
    for row in table.itertuples():
        _check(f"claim {row.claim} of {paper}", row, bases, controls)
    repeated = table["claim"].duplicated()
    if repeated.any():
        raise ValueError(f"{paper}: claim {table.loc[repeated, 'claim'].iloc[0]} is listed twice")
    return table.set_index("claim")


def _check(claim: str, row: Any, bases: Mapping[str, str], controls: Collection[str]) -> None:
    """Reject a row of a protocol that leaves a choice open or needs unsuitable data.

    ``bases``: the basis of each collection.
    """
    _one_of(f"{claim}: kind", row.kind, KINDS)
    _one_of(f"{claim}: quantifier", row.quantifier, QUANTIFIERS)
    if row.kind == "finding":
        _one_of(f"{claim}: about", row.about, ABOUT)
        if not (row.quote and row.place):
            raise ValueError(f"{claim}: a finding must have a quotation and its place")
    names = names_in(row.collections)
    if bool(row.reason) == bool(names):
        raise ValueError(f"{claim}: must have collections, or a reason why it cannot be tested")
    if row.reason:
        return
    if not (row.measure and row.unit):
        raise ValueError(f"{claim}: measure and unit are missing")
    Criterion.parse(str(row.criterion))
    _one_of(f"{claim}: bound_source", row.bound_source, SOURCES)
    if row.kind == "finding" and row.bound_source == "own":
        raise ValueError(f"{claim}: the bound_source of a finding must be text or rounding")
    for name in names:
        _one_of(f"{claim}: collection", name, bases)
    is_replicated = any(bases[name] == REPLICATED for name in names)
    if is_replicated and row.about == NAMED_SYSTEMS:
        raise ValueError(f"{claim}: is about {NAMED_SYSTEMS}, so other data cannot judge it")
    if is_replicated and row.kind != "positive control":
        if not names_in(row.control):
            raise ValueError(f"{claim}: a claim judged on other data must have a control")
    for name in names_in(row.control):
        _one_of(f"{claim}: control", name, controls)


def collections(paper: str) -> pd.DataFrame:
    """Read the collections that judge the claims of a paper, by name."""
    table = read_columns(project.data("published", paper, "collections.csv"), COLLECTION)
    for row in table.itertuples():
        collection = f"collection {row.collection} of {paper}"
        _one_of(f"{collection}: basis", row.basis, BASES)
        if row.basis == REPLICATED and not row.reason:
            raise ValueError(f"{collection}: reason must state why it may judge a claim")
    return table.set_index("collection")


def names_in(cell: object) -> list[str]:
    """Split names at semicolons; ``none`` is not a name."""
    names = [name.strip() for name in str(cell).split(";")]
    return [name for name in names if name not in ("", "none")]


def unit_of(counted: str, claim: str) -> str:
    """Return the unit of ``n`` of a claim; ``counted`` is the cell of ``collections.csv``."""
    unit, *others = names_in(counted) or [""]
    return dict(other.split(": ", 1) for other in others).get(claim, unit)


def _one_of(place: str, value: object, known: Any) -> None:
    if value not in known:
        raise ValueError(f"{place} must be one of {', '.join(known)}, got {value!r}")


def evidence_of(
    paper: str, name: str, evidence: Mapping[str, Evidence | Mapping[str, Evidence]]
) -> dict[str, Any]:
    """Check the evidence on a claim against the protocol; return its entry in a manifest.

    ``evidence``: by collection, one number or a mapping by part (system, setting, cell).
    """
    claims = stated(paper)
    if name not in claims.index:
        raise ValueError(f"claim {name!r} is missing from data/published/{paper}/claims.csv")
    expected = names_in(claims.loc[name, "collections"])
    if set(evidence) != set(expected):
        raise ValueError(
            f"claim {name} of {paper}: collections must be {'; '.join(expected)}, "
            f"got {'; '.join(evidence)}"
        )
    by_collection = {}
    for collection in expected:
        given = evidence[collection]
        parts = {"": given} if isinstance(given, Evidence) else given
        if not parts or (len(parts) > 1 and claims.loc[name, "quantifier"] == "mean"):
            raise ValueError(f"claim {name} of {paper}, {collection}: a mean must be one number")
        by_collection[collection] = [{"part": part, **asdict(parts[part])} for part in parts]
    return {"name": name, "evidence": by_collection}


# --- the rule -------------------------------------------------------------------------------------


def rows_of(paper: str, record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a claim as rows, one per collection, with p-values before Holm's correction.

    A row has the decisive part. If ``u`` parts must meet the criterion, this is the ``u``-th part
    in the order of their support.
    """
    claim = stated(paper).loc[record["name"]].to_dict()
    common = {"paper": paper, "claim": record["name"], **claim}
    if not record["evidence"]:
        empty = asdict(Evidence(reason=claim["reason"]))
        return [{**common, "collection": "", "basis": "", "part": "", "parts": 0, **empty}]
    criterion, known = Criterion.parse(claim["criterion"]), collections(paper)
    rows = []
    for collection, entries in record["evidence"].items():
        parts = [dict(entry) for entry in entries]
        row = {**common, "collection": collection, "basis": known.loc[collection, "basis"]}
        row |= {
            "parts": len(parts),
            "counted": unit_of(known.loc[collection, "counted"], row["claim"]),
        }
        if any(part["estimate"] is None for part in parts):
            missing = next(part for part in parts if part["estimate"] is None)
            rows.append({**row, **missing})
            continue
        for part in parts:
            numbers = {key: value for key, value in part.items() if key != "part"}
            part["support"], part["against"] = criterion.tails(Evidence(**numbers))
        row["met"] = sum(part["estimate"] in criterion for part in parts)
        needed = {"exists": 1, "most": len(parts) // 2 + 1}.get(claim["quantifier"], len(parts))
        for_it, against_it = partial_conjunction(
            [part["support"] for part in parts], [part["against"] for part in parts], needed
        )
        parts.sort(key=lambda part: (part["support"], -criterion.margin(part["estimate"])))
        row |= parts[needed - 1]
        row["tends"] = "supports" if for_it <= against_it else "contradicts"
        if any(part["low"] is not None for part in parts):
            row["p_value"] = min(1.0, 2 * min(for_it, against_it))
        rows.append(row)
    return rows


def partial_conjunction(
    support: Sequence[float], against: Sequence[float], needed: int
) -> tuple[float, float]:
    """Combine one-sided p-values of parts, of which ``needed`` must meet the criterion.

    Returns the p-value for at least ``needed`` parts that meet it, and the p-value for fewer parts
    (Benjamini and Heller, 2008). Bonferroni's bound allows any dependence between the parts.
    """
    parts = len(support)
    for_it = (parts - needed + 1) * sorted(support)[needed - 1]
    against_it = needed * sorted(against)[parts - needed]
    return min(1.0, for_it), min(1.0, against_it)


def judge(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Judge all claims by Holm's correction, controls and votes; columns `COLUMNS`."""
    from statsmodels.stats.multitest import multipletests

    table = pd.DataFrame([dict(row) for row in rows], columns=[*COLUMNS, "tends"]).astype(object)
    is_control = table["kind"] == "positive control"
    table["p_holm"] = table["p_value"]
    tested = table[table["p_value"].notna() & ~is_control]
    for _, family in tested.groupby(["paper", "basis", "kind"]):
        corrected = multipletests(family["p_value"].astype(float), method="holm")[1]
        table.loc[family.index, "p_holm"] = corrected
    pairs = zip(table["tends"], table["p_holm"], strict=True)
    table["result"] = [result_of(tends, p_value) for tends, p_value in pairs]

    shown = table.loc[is_control & (table["result"] == "supports")]
    passed = set(zip(shown["paper"], shown["claim"], shown["collection"], strict=True))
    for index, row in table.iterrows():
        needed = names_in(row["control"]) if row["basis"] == REPLICATED else []
        if any((row["paper"], name, row["collection"]) not in passed for name in needed):
            if row["result"] != "not testable":
                table.loc[index, "result"] = "control failed"

    for _, of_claim in table.groupby(["paper", "claim"], sort=False):
        verdict, reason = verdict_of(of_claim["result"].tolist())
        if verdict == "inconclusive" and of_claim["kind"].iloc[0] == "positive control":
            reason = "a control counts for each collection separately"
        table.loc[of_claim.index, "verdict"] = verdict
        table.loc[of_claim.index, "verdict_reason"] = reason
        if reason != "imprecise":
            continue
        for index, row in of_claim.iterrows():
            table.loc[index, "n_needed"] = units_needed(row)
    text = table.columns.difference(_NUMBERS)
    table[text] = table[text].fillna("")
    table = table.astype(dict.fromkeys(_COUNTS, "Int64"))
    return table.sort_values(["paper", "artefact"], kind="stable")[COLUMNS]


def result_of(tends: Any, p_value: Any) -> str:
    """Return the result on one collection; without sampling there is no p-value."""
    if pd.isna(tends):
        return "not testable"
    return str(tends) if pd.isna(p_value) or p_value < ERROR else "imprecise"


def verdict_of(results: Sequence[str]) -> tuple[str, str]:
    """Return the verdict from the results on the collections, and the reason if it has none."""
    seen = set(results)
    if seen == {"not testable"}:
        return "not testable", ""
    votes = seen & {"supports", "contradicts"}
    if votes == {"supports"}:
        return "supported", ""
    if votes == {"contradicts"}:
        return "contradicted", ""
    if votes:
        return "inconclusive", "collections disagree"
    return "inconclusive", "imprecise" if "imprecise" in seen else "control failed"


def units_needed(row: Mapping[str, Any]) -> int | None:
    """Compute the sample size to detect the published effect, or else the observed effect.

    It applies to one test at 5% with a power of 0.8, if the interval shrinks with the root of the
    number of units. Returns None without an interval, or if the effect is on the bound itself.
    """
    if any(pd.isna(row[name]) for name in ("n", "low", "estimate")):
        return None
    effect = row["estimate"] if pd.isna(row["published"]) else row["published"]
    criterion = Criterion.parse(row["criterion"])
    gap = min(abs(effect - edge) for edge in (criterion.low, criterion.high))
    if gap <= 1e-9 * max(1.0, abs(effect)) or row["high"] == row["low"]:
        return None
    standard_error = (row["high"] - row["low"]) / (2 * _95)
    return math.ceil(row["n"] * ((_95 + stats.norm.ppf(0.8)) * standard_error / gap) ** 2)


# --- all claims -----------------------------------------------------------------------------------


def table_of(manifests: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Judge every claim of these reports; return one row per claim and collection."""
    rows = []
    for manifest in manifests:
        for record in [*manifest["artefacts"], *manifest["beyond"]]:
            paper = record["artefact"].partition("/")[0]
            for claim in record["claims"]:
                for row in rows_of(paper, claim):
                    rows.append({**row, "notebook": manifest["notebook"]})
    return judge(rows)


def read() -> list[dict[str, Any]]:
    """Read ``reports/claims.csv`` as claims, each with its rows under ``evidence``."""
    path = project.root() / "reports" / "claims.csv"
    texts = dict.fromkeys(set(COLUMNS) - set(_NUMBERS), str)
    empty = dict.fromkeys(_NUMBERS, "")
    table = pd.read_csv(path, dtype=texts, keep_default_na=False, na_values=empty)
    return as_claims(table)


def as_claims(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Group rows of claims: one entry per claim, with one row per collection as ``evidence``."""
    plain = table.astype(object).where(table.notna(), None)
    claims = []
    for _, rows in plain.groupby(["paper", "claim"], sort=False):
        evidence = rows.to_dict("records")
        bases = [basis for basis in BASES if basis in set(rows["basis"])]
        claims.append({**evidence[0], "basis": bases[0] if bases else "", "evidence": evidence})
    return claims


def counts(table: pd.DataFrame) -> pd.DataFrame:
    """Count claims by paper (``all``: over all papers), kind, basis and verdict.

    A claim counts once, for the first of its bases in the order of `BASES`. A claim that no
    collection judges has no basis.
    """
    rows = []
    for claim in as_claims(table):
        for paper in (claim["paper"], "all"):
            rows.append((paper, claim["kind"], claim["basis"], claim["verdict"]))
    names = ["paper", "kind", "basis", "verdict"]
    counted = pd.DataFrame(rows, columns=names).value_counts().to_dict()
    listed = []
    for paper in [*table["paper"].unique(), "all"]:
        for kind in KINDS:
            for basis in [*BASES, ""]:
                for verdict in VERDICTS:
                    number = counted.get((paper, kind, basis, verdict), 0)
                    if number or paper == "all":
                        listed.append((paper, kind, basis or "none", verdict, number))
    return pd.DataFrame(listed, columns=[*names, "claims"])
