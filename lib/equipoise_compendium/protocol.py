"""The protocol: statements of papers and our own, what supports them, and evidence on them.

``data/published/<paper>/claims.csv`` has one row per claim, with the values that support it and
every collection that may judge it. ``collections.csv`` describes the collections. Notebooks compute
the evidence, and `equipoise_compendium.verdicts` the verdicts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
from scipy.special import ndtr, ndtri

from equipoise_compendium import project
from equipoise_compendium.formatting import interval, rounded
from equipoise_compendium.printed import read_columns
from equipoise_compendium.terms import BASES, KINDS, QUANTIFIERS, RECOMPUTED, REPLICATED, SOURCES

STATED = [
    "claim",
    "artefact",
    "kind",
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
    "in_paper_reason",
    "elsewhere_reason",
]
"""Columns of a protocol.

``criterion`` gives the values that meet the claim, and ``bound_source`` the source of its bound.
``null`` names the null distribution of a statistic that is above zero without any effect: a
maximum, an absolute value or a best choice. ``control`` is the claim that a collection must meet
before it votes. ``in_paper_reason`` states why the paper's numbers cannot answer for a finding, and
``elsewhere_reason`` why no other data can.
"""
COLLECTION = ["collection", "basis", "data", "reason", "counted", "errors"]
"""Columns of ``collections.csv``.

``reason`` states why other data may judge a claim. ``counted`` is the unit of ``n``; where a claim
has another unit, it follows: ``topics; names-listed: conversations``. ``errors`` is ``bounded``
where marks of significance only bound the error of a published number.
"""
CHANGE = ["paper", "claim", "date", "old", "new", "why", "seen"]
"""Columns of ``changes.csv``: the changes of claims, in the order of their dates.

``claim`` may name several, or ``all``. ``old`` has the old choice and what it gave. ``seen`` is
what was known of the evidence before the criterion was written: ``yes``, ``partly`` or ``no``.
"""


@dataclass(frozen=True)
class Evidence:
    """An estimate and its confidence interval over ``n`` units, with the paper's value.

    The numbers are rounded, so that no decision depends on the last bits of the processor.
    ``reason`` states why there is no interval (nothing was sampled) or, without an estimate, why
    the collection cannot judge the claim. ``above`` and ``below`` are the shares of draws under the
    null hypothesis that are at least as high, or as low, as the estimate. ``level`` is above 95%
    for the largest of several estimates, by Bonferroni's correction.
    """

    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    published: float | None = None
    reason: str = ""
    above: float | None = None
    below: float | None = None
    level: float = 0.95

    def __post_init__(self) -> None:
        for name in ("estimate", "low", "high", "published", "above", "below"):
            number = getattr(self, name)
            if number is None:
                continue
            if math.isnan(number):
                raise ValueError(f"evidence must not be NaN, got {self}")
            object.__setattr__(self, name, rounded(number))
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
    """The values that meet a claim: ``low`` to ``high``, without both bounds if ``open``."""

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
        claim. They are shares of the draws under the null hypothesis, if there are any. Otherwise
        errors are normal, with the half of the interval that faces the bound.
        """
        if evidence.estimate is None:
            raise ValueError("evidence must have an estimate to compute p-values")
        estimate = evidence.estimate
        if evidence.low is None or evidence.high is None or evidence.low == evidence.high:
            return (0.0, 1.0) if estimate in self else (1.0, 0.0)
        if evidence.above is not None and evidence.below is not None:
            if {self.low, self.high} == {0.0, math.inf}:
                return evidence.above, evidence.below
            if {self.low, self.high} == {-math.inf, 0.0}:
                return evidence.below, evidence.above
            raise ValueError("the bound of a statistic minus chance must be zero")
        below, above = estimate - evidence.low, evidence.high - estimate
        distances = []  # in standard errors, positive on the side that meets the criterion
        if self.low > -math.inf:
            gap = estimate - self.low
            distances.append(gap / _error(below if gap > 0 else above, evidence.level))
        if self.high < math.inf:
            gap = self.high - estimate
            distances.append(gap / _error(above if gap > 0 else below, evidence.level))
        nearest = min(distances)
        tests = 0.05 / (1 - evidence.level)
        support, against = min(1.0, tests * ndtr(-nearest)), min(1.0, tests * ndtr(nearest))
        return rounded(float(support), scale=0), rounded(float(against), scale=0)


def _error(half: float, level: float) -> float:
    """Compute the standard error from half of an interval."""
    return max(half, 1e-300) / float(ndtri(0.5 + level / 2))


def stated(paper: str) -> pd.DataFrame:
    """Read the protocol of a paper, by the name of the claim."""
    paths = [project.data("published", paper, name) for name in ("claims.csv", "collections.csv")]
    return _stated(paper, paths[0], *map(project.sha256, paths)).copy()


@cache  # a build needs it once per claim
def _stated(paper: str, path: Path, *_digests: str) -> pd.DataFrame:
    table = read_columns(path, STATED)
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
    if row.kind == "finding" and not (row.quote and row.place):
        raise ValueError(f"{claim}: a finding must have a quotation and its place")
    names = names_in(row.collections)
    for name in names:
        _one_of(f"{claim}: collection", name, bases)
    _check_data(claim, row, [bases[name] for name in names])
    if row.kind == "additional analysis":
        if row.criterion or row.quantifier or row.bound_source:
            raise ValueError(f"{claim}: an additional analysis has no criterion and no quantifier")
    elif names:
        _one_of(f"{claim}: quantifier", row.quantifier, QUANTIFIERS)
        Criterion.parse(str(row.criterion))
        _one_of(f"{claim}: bound_source", row.bound_source, SOURCES)
    if row.bound_source == "own" and row.kind != "positive control":
        raise ValueError(f"{claim}: the bound_source must be text or rounding")
    for name in names_in(row.control):
        _one_of(f"{claim}: control", name, controls)


def _check_data(claim: str, row: Any, bases: Collection[str]) -> None:
    """Reject a claim without data and without a reason; ``bases``: of its collections."""
    if row.kind == "finding":
        has_others = any(basis != RECOMPUTED for basis in bases)
        for place, has_data, reason in (
            ("in the paper", RECOMPUTED in bases, row.in_paper_reason),
            ("elsewhere", has_others, row.elsewhere_reason),
        ):
            if has_data == bool(reason):
                raise ValueError(f"{claim}: must have data {place}, or a reason for none")
    elif not bases or row.in_paper_reason or row.elsewhere_reason:
        raise ValueError(f"{claim}: must have collections, and no reason for none")
    if bases and not (row.measure and row.unit):
        raise ValueError(f"{claim}: measure and unit are missing")
    if REPLICATED in bases and row.kind != "positive control" and not names_in(row.control):
        raise ValueError(f"{claim}: a claim judged on other data must have a control")


def collections(paper: str) -> pd.DataFrame:
    """Read the collections that judge the claims of a paper, by name."""
    path = project.data("published", paper, "collections.csv")
    return _collections(paper, path, project.sha256(path))


@cache
def _collections(paper: str, path: Path, _digest: str) -> pd.DataFrame:
    table = read_columns(path, COLLECTION)
    for row in table.itertuples():
        collection = f"collection {row.collection} of {paper}"
        _one_of(f"{collection}: basis", row.basis, BASES)
        if row.basis == REPLICATED and not row.reason:
            raise ValueError(f"{collection}: reason must state why it may judge a claim")
    return table.set_index("collection")


def seen(paper: str) -> dict[str, str]:
    """Return what was known of the evidence on each claim before its criterion was written."""
    claims = stated(paper).index
    known = dict.fromkeys(claims, "no")
    path = project.root() / "data" / "published" / "changes.csv"
    if not path.is_file():
        return known
    changes = read_columns(path, CHANGE)
    for change in changes[changes["paper"] == paper].itertuples():
        names = claims if change.claim == "all" else claims.intersection(names_in(change.claim))
        known |= dict.fromkeys(names, change.seen)
    return known


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
