"""The picture of the first page: a strip per table or figure, with a mark per cell or interval.

Cells that were compared are placed by ours minus published, in units of the last published digit.
Evidence on other data is placed by its distance from the criterion of its claim.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from equipoise_compendium import project
from equipoise_compendium.build import comparison_of
from equipoise_compendium.printed import EMPTY_CELLS, Comparison, Printed, as_number
from equipoise_compendium.protocol import Criterion
from equipoise_compendium.terms import RECOMPUTED, REPLICATED

CELLS = {
    "agrees": "equals the published cell",
    "explained": "differs, reason proved",
    "likely": "differs, reason likely",
}
"""Marks of compared cells, and what they mean."""
RESULTS = {
    "holds": "the finding holds there",
    "opposite": "the opposite holds",
    "inconclusive": "imprecise, or the control failed",
}
"""Marks of evidence from one collection, and what each says."""
_MARK_OF = {"met": "holds", "opposite": "opposite"}
CELL_LIMIT, CLAIM_LIMIT = 1000.0, 100.0
"""The values at both ends of a strip; what lies beyond is drawn there."""


@dataclass(frozen=True)
class Mark:
    """A mark on a strip: its kind, its place from the left in percent, address and description.

    ``span``: both ends of its interval, in percent.
    """

    kind: str
    left: float
    address: str
    text: str
    span: tuple[float, float] | None = None


@dataclass(frozen=True)
class Strip:
    """A table or figure: its ledger row, its marks, and a summary in a few words.

    ``step``: the distance of its marks from each other, downwards, in pixels.
    """

    artefact: Mapping[str, Any]
    marks: Sequence[Mark]
    summary: str
    step: int = 0

    @property
    def height(self) -> int:
        """Its height in pixels."""
        return 18 + self.step * max(len(self.marks) - 1, 0)


@dataclass(frozen=True)
class Panel:
    """Strips on one axis, with a heading, what a mark means, and the kinds of mark."""

    heading: str
    meaning: str
    strips: Sequence[Strip]
    ticks: Sequence[tuple[str, float]]
    kinds: Mapping[str, str]


def left(value: float, limit: float) -> float:
    """Place a value on a strip, in percent: linear from −1 to 1, then logarithmic."""
    size = min(abs(value), limit)
    share = size / 4 if size <= 1 else 0.25 + 0.75 * math.log10(size) / math.log10(limit)
    return round(50 + math.copysign(46 * share, value), 1)


def ticks(limit: float) -> list[tuple[str, float]]:
    """Return the labels of the axis and their places."""
    values = [0.0] + [sign * 10.0**power for sign in (-1, 1) for power in range(4)]
    shown = sorted(value for value in values if abs(value) <= limit)
    return [(f"{value:.0f}".replace("-", "−"), left(value, limit)) for value in shown]


# --- compared cells -------------------------------------------------------------------------------


def _units(printed: str, ours: object) -> float:
    """Compute ours minus published in units of the last published digit; inf for text."""
    parsed, value = Printed.parse(printed), as_number(ours)
    if parsed.number is None or value is None:
        return math.inf
    return (value - parsed.number) * 10.0 ** (parsed.decimals or 0)


def cell_name(slug: str, number: int) -> str:
    """Return the anchor of a differing cell: cells of a table are numbered row by row from 1."""
    return f"{slug}-cell-{number}"


def _compared(comparison: Comparison, address: str, slug: str) -> list[Mark]:
    """Mark each cell; those that agree share a mark where they share a place.

    ``slug`` names the table on the page, and so its differing cells; empty for a figure.
    """
    page = address.partition("#")[0]
    differences = {(each.row, each.column): each for each in comparison.differences}
    agreeing, differing = set(), list[Mark]()
    for row, cells in comparison.printed.drop(columns=comparison.asked["keys"]).iterrows():
        for column, printed in cells.items():
            ours = comparison.ours.loc[row, column]
            units = _units(printed, ours)
            each = differences.get((str(row), str(column)))
            if each is None:
                if printed.strip() not in EMPTY_CELLS:
                    agreeing.add(left(0.0 if math.isinf(units) else units, CELL_LIMIT))
                continue
            number = as_number(ours)
            computed = each.ours if number is None else f"{number:.6g}".replace("-", "−")
            anchor = cell_name(slug, len(differing) + 1)
            differing.append(
                Mark(
                    "explained" if each.proved else "likely",
                    left(units, CELL_LIMIT),
                    f"{page}#{anchor}" if slug else address,
                    f"{row}, {column}: published {printed}, computed {computed or 'nothing'}. "
                    f"{each.reason}",
                )
            )
    return [Mark("agrees", place, address, "") for place in sorted(agreeing)] + differing


# --- evidence on other data -----------------------------------------------------------------------


def _evidence(claim: Mapping[str, Any], row: Mapping[str, Any]) -> Mark:
    """Mark an estimate by its distance from the criterion, in halves of its 95% interval."""
    criterion = Criterion.parse(row["criterion"])
    edges = [edge for edge in (criterion.low, criterion.high) if math.isfinite(edge)]
    bound = min(edges, key=lambda edge: abs(row["estimate"] - edge))
    sign = 1 if bound == criterion.low else -1
    half = 0.0 if row["low"] is None else (row["high"] - row["low"]) / 2

    def place(value: float) -> float:
        gap = sign * (value - bound)
        # Without sampling there is no interval, and the estimate is at an end.
        in_halves = gap / half if half else math.copysign(math.inf, gap)
        return left(in_halves, CLAIM_LIMIT)

    ends = sorted((place(row["low"]), place(row["high"]))) if half else None
    return Mark(
        _MARK_OF.get(row["result"], "inconclusive"),
        place(row["estimate"]),
        f"claims.html#claim-{claim['paper']}-{claim['claim']}",
        f"{row['collection']}: {row['result']}. {claim['statement']}",
        (ends[0], ends[1]) if ends else None,
    )


# --- strips ---------------------------------------------------------------------------------------


def recomputed(ledger: pd.DataFrame, manifests: Sequence[Mapping[str, Any]]) -> list[Strip]:
    """Return the strips of the tables and figures that were not replicated on other data."""
    records: dict[str, Mapping[str, Any]] = {}
    comparisons: dict[str, Comparison | None] = {}
    for manifest in manifests:
        folder = project.root() / "reports" / manifest["notebook"]
        for record in manifest["artefacts"]:
            records[record["artefact"]] = record
            comparisons[record["artefact"]] = comparison_of(record, folder)
    strips = []
    for row in ledger[ledger["status"] != REPLICATED].to_dict("records"):
        name = f"{row['paper']}/{row['artefact']}"
        comparison = comparisons.get(name)
        if comparison is None:
            strips.append(Strip(row, (), row["status"]))
            continue
        is_table = any(file.startswith("tables/") for file in records[name]["files"])
        marks = _compared(comparison, row["place"], row["anchor"] if is_table else "")
        equal = comparison.cells - len(comparison.differences)
        strips.append(Strip(row, marks, f"{equal} of {comparison.cells}"))
    return strips


def replicated(ledger: pd.DataFrame, claims: Sequence[Mapping[str, Any]]) -> list[Strip]:
    """Return the strips of what was replicated on other data: the evidence on its findings."""
    strips = []
    for row in ledger[ledger["status"] == REPLICATED].to_dict("records"):
        name = (row["paper"], row["artefact"])
        findings = [
            claim
            for claim in claims
            if (claim["paper"], claim["artefact"]) == name and claim["kind"] == "finding"
        ]
        marks = []
        for claim in findings:
            for evidence in claim["evidence"]:
                if evidence["basis"] != RECOMPUTED and evidence["estimate"] is not None:
                    marks.append(_evidence(claim, evidence))
        tested = sum(claim["elsewhere"] != "not tested" for claim in findings)
        summary = f"{tested} of {len(findings)} tested" if findings else "no finding"
        strips.append(Strip(row, marks, summary, step=10))
    return strips


def panels(
    ledger: pd.DataFrame,
    manifests: Sequence[Mapping[str, Any]],
    claims: Sequence[Mapping[str, Any]],
) -> list[Panel]:
    """Return the two panels of the picture."""
    return [
        Panel(
            "Recomputed",
            "Each mark is a cell: ours minus published, in units of the last published digit. The "
            "band is the published precision.",
            recomputed(ledger, manifests),
            ticks(CELL_LIMIT),
            CELLS,
        ),
        Panel(
            "Replicated on other data",
            "Each mark is the evidence on a finding from one collection: the distance from the "
            "bound of its criterion, in halves of the 95% confidence interval (CI). The criterion "
            "is met on the right.",
            replicated(ledger, claims),
            ticks(CLAIM_LIMIT),
            RESULTS,
        ),
    ]
