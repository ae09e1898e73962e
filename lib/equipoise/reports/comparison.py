"""Our tables beside printed ones, cell by cell, at the printed precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from equipoise import project
from equipoise.files import read_columns
from equipoise.reports.printed import NOT_PRINTED, Printed, as_number, printed_table, raw


@dataclass(frozen=True)
class Difference:
    """A cell that is not what the paper prints.

    ``row`` joins the values of the key columns by spaces. ``ours`` is at full precision, empty where there is no value;
    ``reason`` is that of ``explanations.csv``, empty where nobody has given one.
    """

    row: str
    column: str
    printed: str
    ours: str
    reason: str


@dataclass(frozen=True)
class Comparison:
    """Our table beside a printed one: the rows and columns of the printed table, in its order.

    ``labels`` name the rows, ``cells`` counts the printed cells that were compared, and ``largest`` is the largest
    absolute difference between a printed and a computed number, None where no number was compared.
    """

    against: str
    ours: pd.DataFrame
    printed: pd.DataFrame
    labels: tuple[str, ...]
    cells: int
    differences: tuple[Difference, ...]
    largest: float | None


def _explanations(artefact: str) -> dict[tuple[str, str], str]:
    table = read_columns(project.data("published", "explanations.csv"), ["artefact", "row", "column", "reason"])
    return {(row.row, row.column): row.reason for row in table[table["artefact"] == artefact].itertuples()}


def _labels(table: pd.DataFrame, keys: Sequence[str]) -> tuple[str, ...]:
    """Name of every row: the values of its key columns, or its number where there are no keys."""
    return tuple(table[list(keys)].map(raw).agg(" ".join, axis=1) if keys else map(str, range(len(table))))


def compare(ours: pd.DataFrame, against: str, keys: Sequence[str], columns: Sequence[str] | None = None) -> Comparison:
    """Hold a table against a printed one, cell by cell, at the printed precision.

    A number agrees if it lies within half a unit of the last printed place; a whole number or a fraction agrees only
    with the same number; marks of significance behind a number are not compared; other text must be the same. Cells
    that the paper leaves empty are not compared.

    ``ours`` has at least the columns and rows of the printed table ``against``, such as ``gfrc/table-1``; ``keys``
    identify a row in both. ``columns`` are the printed columns to compare where the others cannot be computed.
    """
    printed = printed_table(against)
    if columns is not None:
        printed = printed[[*keys, *columns]]
    missing = [column for column in printed.columns if column not in ours.columns]
    if missing:
        raise ValueError(f"{against}: our table has no column {', '.join(missing)}; it has {', '.join(ours.columns)}")
    labels, our_labels = _labels(printed, keys), _labels(ours, keys)
    if len(set(labels)) < len(labels) or len(set(our_labels)) < len(our_labels):
        raise ValueError(f"{against}: the keys {', '.join(keys)} do not identify a row")
    absent = [label for label in labels if label not in our_labels]
    if absent:
        raise ValueError(f"{against}: our table has no row {'; '.join(absent)}")
    aligned = ours.set_axis(pd.Index(our_labels), axis=0).loc[list(labels), list(printed.columns)]
    reasons = _explanations(against)
    cells, largest, differences = 0, None, []
    for column in [name for name in printed.columns if name not in keys]:
        for label, text, value in zip(labels, printed[column], aligned[column], strict=True):
            if text.strip() in NOT_PRINTED:
                continue
            cells += 1
            parsed, number = Printed.parse(text), as_number(value)
            if parsed.number is not None and number is not None:
                largest = max(largest or 0.0, abs(number - parsed.number))
            if not parsed.agrees(value, text):
                differences.append(Difference(label, column, text, raw(value), reasons.get((label, column), "")))
    ours = aligned.reset_index(drop=True)
    return Comparison(against, ours, printed.reset_index(drop=True), labels, cells, tuple(differences), largest)
