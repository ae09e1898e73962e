"""The picture of all cells: a strip per table or figure, with a mark per cell.

Cells that were compared are placed by ours minus published, in units of the last published digit.
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
from equipoise_compendium.rendering import CLAIM_COLUMNS, claim_cells
from equipoise_compendium.terms import REPLICATED

CELLS = {
    "agrees": "equals the published cell",
    "explained": "differs, reason proved",
    "likely": "differs, reason likely",
}
"""Marks of compared cells, and what they mean."""
LIMIT = 1000.0
"""The value at both ends of a strip; what lies beyond is drawn there."""


@dataclass(frozen=True)
class Mark:
    """A mark on a strip: its kind, its place from the left in percent, address and description."""

    kind: str
    left: float
    address: str
    text: str


@dataclass(frozen=True)
class Strip:
    """A table or figure: its ledger row, its marks, and a summary in a few words."""

    artefact: Mapping[str, Any]
    marks: Sequence[Mark]
    summary: str


def left(value: float) -> float:
    """Place a value on a strip, in percent: linear from −1 to 1, then logarithmic."""
    size = min(abs(value), LIMIT)
    share = size / 4 if size <= 1 else 0.25 + 0.75 * math.log10(size) / math.log10(LIMIT)
    return round(50 + math.copysign(46 * share, value), 1)


def ticks() -> list[tuple[str, float]]:
    """Return the labels of the axis and their places."""
    values = [-1000, -100, -10, -1, 0, 1, 10, 100, 1000]
    return [(str(value).replace("-", "−"), left(value)) for value in values]


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
                    agreeing.add(left(0.0 if math.isinf(units) else units))
                continue
            number = as_number(ours)
            computed = each.ours if number is None else f"{number:.6g}".replace("-", "−")
            anchor = cell_name(slug, len(differing) + 1)
            differing.append(
                Mark(
                    "explained" if each.proved else "likely",
                    left(units),
                    f"{page}#{anchor}" if slug else address,
                    f"{row}, {column}: published {printed}, computed {computed or 'nothing'}. "
                    f"{each.reason}",
                )
            )
    return [Mark("agrees", place, address, "") for place in sorted(agreeing)] + differing


# --- strips ---------------------------------------------------------------------------------------


def strips(ledger: pd.DataFrame, manifests: Sequence[Mapping[str, Any]]) -> list[Strip]:
    """Return the strips of the tables and figures that were not replicated on other data."""
    records: dict[str, Mapping[str, Any]] = {}
    comparisons: dict[str, Comparison | None] = {}
    for manifest in manifests:
        folder = project.root() / "reports" / manifest["notebook"]
        for record in manifest["artefacts"]:
            records[record["artefact"]] = record
            comparisons[record["artefact"]] = comparison_of(record, folder)
    made = []
    for row in ledger[ledger["status"] != REPLICATED].to_dict("records"):
        name = f"{row['paper']}/{row['artefact']}"
        comparison = comparisons.get(name)
        if comparison is None:
            made.append(Strip(row, (), row["status"]))
            continue
        is_table = any(file.startswith("tables/") for file in records[name]["files"])
        marks = _compared(comparison, row["place"], row["anchor"] if is_table else "")
        equal = comparison.cells - len(comparison.differences)
        made.append(Strip(row, marks, f"{equal} of {comparison.cells}"))
    return made


# --- the evidence on a finding --------------------------------------------------------------------


def intervals(claim: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Place the evidence on a claim, and the bounds of its criterion, on one axis in percent.

    An estimate without interval that is far from all intervals, such as a count of marks next to
    differences, has no place.
    """
    rows = [row for row in claim["evidence"] if row["estimate"] is not None]
    if not rows:
        return {"lines": [], "bounds": []}
    bounds = []
    if claim["criterion"]:
        criterion = Criterion.parse(claim["criterion"])
        bounds = [edge for edge in (criterion.low, criterion.high) if math.isfinite(edge)]
    estimates = [row["estimate"] for row in rows]
    known = [row[end] for row in rows if row["low"] is not None for end in ("low", "high")]
    known = [*bounds, *(known or estimates)]
    reach = max(known) - min(known) or 1.0
    known += [each for each in estimates if min(known) - reach <= each <= max(known) + reach]
    first, last = min(known), max(known)

    def place(value: float | None) -> float | None:
        if value is None or not first <= value <= last:
            return None
        return round(3 + 94 * (value - first) / (last - first or 1.0), 1)

    lines = []
    for row in rows:
        at = [place(row[name]) for name in ("estimate", "low", "high")]
        lines.append(
            {"row": row, "at": at, "cells": dict(zip(CLAIM_COLUMNS, claim_cells(row), strict=True))}
        )
    return {"lines": lines, "bounds": [(place(bound), f"{bound:g}") for bound in bounds]}
