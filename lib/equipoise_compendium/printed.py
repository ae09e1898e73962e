"""Published tables, and the comparison of our tables with them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from equipoise_compendium import project
from equipoise_compendium.formatting import CSV_DIGITS, rounded
from equipoise_compendium.terms import REPLICATED

Basis = Literal["recomputed", "derived", "replicated on other data"]
"""The basis of an artefact: data of the study, other published numbers, or other data."""
PRINTED_FRACTION = re.compile(r"\d+/\d+")
EMPTY_CELLS = ("", "-", "–", "—")
"""What papers have in a cell without a value."""
WHOLE_TABLE = "*"
"""Row and column of a reason in ``explanations.csv`` that concerns a table on other data."""
_PRINTED_NUMBER = re.compile(
    r"(?P<number>[+-]?(\d{1,3}(,\d{3})+|\d+)?(\.\d+)?)\s*(?P<marks>[^\d\s.,/+-]*)"
)


# --- the published tables -------------------------------------------------------------------------


def read_text_table(path: Path) -> pd.DataFrame:
    """Read a CSV file with every field as text."""
    place = path.relative_to(project.root()) if path.is_relative_to(project.root()) else path
    try:
        # Without an index column a row that is too long is an error, not a shift.
        table = pd.read_csv(
            path, dtype=str, keep_default_na=False, index_col=False, encoding="utf-8-sig"
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise ValueError(f"{place}: must be a table in CSV and UTF-8 ({error})") from None
    is_short = table.isna().any(axis=1)
    if is_short.any():
        line = int(is_short.to_numpy().argmax()) + 2
        raise ValueError(f"{place}, line {line}: must have as many fields as the header")
    return table


def read_columns(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Read a CSV file that must have exactly these columns, in their order."""
    table = read_text_table(path)
    if set(table.columns) != set(columns):
        raise ValueError(
            f"{path.name}: columns must be {', '.join(columns)}, got {', '.join(table.columns)}"
        )
    return table[list(columns)]


def artefacts() -> pd.DataFrame:
    """Read all tables and figures of the papers, by name, such as ``anscombe/table-1``.

    Returns a table with the columns paper, artefact, kind, title, place, absent_because.
    """
    columns = ["paper", "artefact", "kind", "title", "place", "absent_because"]
    # not noted as used: the content of a report does not depend on the list
    table = read_columns(project.root() / "data" / "published" / "artefacts.csv", columns)
    return table.set_index(table["paper"] + "/" + table["artefact"])


def printed_table(artefact: str) -> pd.DataFrame:
    """Read a published table, every cell as text. ``artefact``: such as ``anscombe/table-1``."""
    return read_text_table(project.data("published", *f"{artefact}.csv".split("/")))


@dataclass(frozen=True)
class Printed:
    """A published cell: its number, half a unit of its last digit, its decimals."""

    number: float | None = None
    half_unit: float = 0.0
    decimals: int | None = None

    @classmethod
    def parse(cls, text: str) -> Printed:
        """Read a cell."""
        bare = text.strip().replace("−", "-")
        if PRINTED_FRACTION.fullmatch(bare):
            return cls(float(Fraction(bare)))
        match = _PRINTED_NUMBER.fullmatch(bare)
        if match is None or not re.search(r"\d", match["number"]):
            return cls()
        digits = match["number"].replace(",", "")
        decimals = len(digits.partition(".")[2])
        if decimals == 0:
            # A whole number is exact: a published 1 is no rounding of 0.6.
            return cls(float(digits), 0.0, decimals)
        return cls(float(digits), 0.5 * 10.0**-decimals, decimals)

    def agrees(self, ours: object, text: str, tolerance: float = 0.0) -> bool:
        """Return whether our value equals this number within its precision, or this text."""
        if self.number is None:
            return isinstance(ours, str) and ours.strip() == text.strip()
        value = as_number(ours)
        within = self.half_unit + tolerance + 1e-9 * max(1.0, abs(self.number))
        return value is not None and abs(value - self.number) <= within


def as_number(value: object) -> float | None:
    """Convert a number to a float; return None for anything else, NaN and bool included."""
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        return None if np.isnan(float(value)) else float(value)
    return None


def raw(value: object) -> str:
    """Write one of our cells as plain text, with the digits that CSV files keep."""
    number = as_number(value)
    if number is not None:
        return CSV_DIGITS % (number + 0.0)
    # A float that is no number is NaN.
    if value is None or value is pd.NA or isinstance(value, float):
        return ""
    return str(value)


# --- comparison -----------------------------------------------------------------------------------


def granularity(values: Sequence[float] | pd.Series, n: int, decimals: int) -> list[bool]:
    """Return which published means of n zeros and ones are possible (Brown and Heathers 2017).

    Such a mean is a multiple of 1/n. A value published with d decimals is possible if a multiple
    of 1/n is within half a unit of its last decimal; rounding of halves up or down is accepted.

    >>> granularity([0.388, 0.389, 0.39], 500, 3)
    [True, False, True]
    """
    means = np.asarray(values, dtype=np.float64)
    distance = np.abs(np.rint(means * n) / n - means)
    return (distance <= 0.5 * 10.0**-decimals + 1e-9).tolist()


@dataclass(frozen=True)
class Difference:
    """A cell that differs from the published one.

    ``row`` joins the values of the key columns by spaces. ``ours`` has full precision; it is empty
    without a value. ``reason`` comes from the paper's ``explanations.csv`` and is empty without an
    entry there. ``proved`` states whether the reason is proved or only likely.
    """

    row: str
    column: str
    printed: str
    ours: str
    reason: str
    proved: bool


@dataclass(frozen=True)
class Comparison:
    """Our table next to a published one, with its rows and columns in its order.

    Both are indexed by the labels of the rows. ``cells`` counts the published cells that were
    compared. ``largest`` is the largest absolute difference between a published and a computed
    number, or None if no number was compared. ``asked`` are the arguments of `compare`.
    """

    ours: pd.DataFrame
    printed: pd.DataFrame
    cells: int
    differences: tuple[Difference, ...]
    largest: float | None
    asked: Mapping[str, Any]


def _labelled(table: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Index a table by its key columns, joined by spaces, or by row numbers."""
    labels = [str(number) for number in range(len(table))]
    if keys:
        rows = table[list(keys)].itertuples(index=False)
        labels = [" ".join(map(raw, row)) for row in rows]
    return table.set_axis(pd.Index(labels, dtype=object))


def reasons_of(against: str) -> dict[tuple[str, str], tuple[str, bool]]:
    """Read the reasons in ``explanations.csv``, by row and column, with whether proved."""
    paper = against.partition("/")[0]
    path = project.data("published", paper, "explanations.csv")
    table = read_columns(path, ["artefact", "row", "column", "reason", "proved"])
    strangers = table.loc[~table["artefact"].str.startswith(f"{paper}/"), "artefact"]
    if len(strangers):
        found = strangers.iloc[0]
        raise ValueError(f"{paper}/{path.name}: an artefact must be named {against}, got {found!r}")
    reasons = {}
    for cell in table[table["artefact"] == against].itertuples():
        if cell.proved not in ("yes", "no"):
            raise ValueError(f"{path.name}, {against}, {cell.row}: proved must be yes or no")
        reasons[str(cell.row), str(cell.column)] = str(cell.reason), cell.proved == "yes"
    return reasons


def compare(
    ours: pd.DataFrame,
    against: str,
    keys: Sequence[str],
    columns: Sequence[str] | None = None,
    where: Mapping[str, str] | None = None,
    tolerance: float | Mapping[str, float] = 0.0,
) -> Comparison:
    """Compare a table with a published one, cell by cell, at the published precision.

    A number agrees if it is within half a unit of the last published digit. A whole number or a
    fraction agrees only with the same number. Other text must be the same. Marks of significance
    after a number, and cells that the paper leaves empty, are not compared.

    ``ours`` has at least the columns and rows of the published table ``against``, such as
    ``anscombe/table-1``; ``keys`` identify a row in both. ``columns`` selects published columns,
    and ``where`` selects published rows by the text of a column, if the others cannot be computed
    or are the input of our table. ``tolerance`` is added to the precision of a published number;
    one per column, or the same for all.
    """
    asked = {
        "against": against,
        "keys": list(keys),
        "columns": columns,
        "where": where,
        "tolerance": tolerance,
    }
    printed = printed_table(against)
    for column, text in (where or {}).items():
        printed = printed[printed[column] == text]
    if printed.empty:
        raise ValueError(f"{against}: no published row matches where={where}")
    if columns is not None:
        printed = printed[[*keys, *columns]]
    missing = [column for column in printed.columns if column not in ours.columns]
    if missing:
        raise ValueError(
            f"{against}: our table has no column {', '.join(missing)}, only "
            f"{', '.join(map(str, ours.columns))}; set columns= to the columns to compare"
        )
    printed, ours = _labelled(printed, keys), _labelled(ours, keys)
    if not (printed.index.is_unique and ours.index.is_unique):
        raise ValueError(f"{against}: the keys {', '.join(keys)} must identify one row")
    absent = printed.index.difference(ours.index, sort=False)
    if len(absent):
        first_rows = "; ".join(ours.index[:10])
        raise ValueError(
            f"{against}: row {'; '.join(absent)} is missing from our table, "
            f"which begins with {first_rows}"
        )
    ours = ours.loc[printed.index, printed.columns]

    reasons = reasons_of(against)
    n_cells, largest, differences = 0, None, []
    for column in printed.columns.drop(list(keys)):
        allowed = tolerance.get(column, 0.0) if isinstance(tolerance, Mapping) else tolerance
        for label, text, value in zip(printed.index, printed[column], ours[column], strict=True):
            if text.strip() in EMPTY_CELLS:
                continue
            n_cells += 1
            parsed, number = Printed.parse(text), as_number(value)
            if parsed.number is not None and number is not None:
                difference = rounded(number - parsed.number, max(1.0, abs(parsed.number)))
                largest = max(largest or 0.0, abs(difference))
            if not parsed.agrees(value, text, allowed):
                reason, is_proved = reasons.get((label, column), ("", False))
                differences.append(Difference(label, column, text, raw(value), reason, is_proved))
    return Comparison(ours, printed, n_cells, tuple(differences), largest, asked)


def status_of(basis: Basis, comparison: Comparison | None) -> str:
    """Decide the status of an artefact, one of `STATUSES`."""
    if basis == REPLICATED:
        return REPLICATED
    if basis == "derived":
        return "redrawn" if comparison is None else "cross-checked"
    differences = comparison.differences if comparison is not None else ()
    if not differences:
        return "reproduced"
    is_proved = all(difference.proved for difference in differences)
    return "reproduced, differences explained" if is_proved else "partly reproduced"
