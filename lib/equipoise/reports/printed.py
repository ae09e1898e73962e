"""What the papers print: the list of their tables and figures, and the tables as text, cell by cell."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pandas as pd

from equipoise import project
from equipoise.files import CSV_DIGITS, read_columns

PRINTED_FRACTION = re.compile(r"\d+/\d+")
NOT_PRINTED = ("", "-", "–", "—")
_ARTEFACT_COLUMNS = ["paper", "artefact", "kind", "title", "place", "absent_because"]
_PRINTED_NUMBER = re.compile(r"(?P<number>[+-]?(\d{1,3}(,\d{3})+|\d+)?(\.\d+)?)\s*(?P<marks>[^\d\s.,/+-]*)")


def artefacts() -> pd.DataFrame:
    """All tables and figures of the four papers, indexed by name, such as ``gfrc/table-1``.

    Returns DataFrame, columns paper, artefact, kind, title, place, absent_because.
    """
    # not noted as used: the list says nothing about what a report holds
    table = read_columns(project.root() / "data" / "published" / "artefacts.csv", _ARTEFACT_COLUMNS)
    return table.set_index(table["paper"] + "/" + table["artefact"])


def printed_table(artefact: str) -> pd.DataFrame:
    """A table as the paper prints it, every cell as text; ``artefact`` is such as ``gfrc/table-1``."""
    path = project.data("published", *f"{artefact}.csv".split("/"))
    return pd.read_csv(path, dtype=str, keep_default_na=False)


@dataclass(frozen=True)
class Printed:
    """A printed cell: its number, half a unit of its last place and its decimals; text has no number."""

    number: float | None
    half_unit: float
    decimals: int | None

    @classmethod
    def parse(cls, text: str) -> Printed:
        """Read a cell."""
        bare = text.strip().replace("−", "-")
        if PRINTED_FRACTION.fullmatch(bare):
            return cls(float(Fraction(bare)), 0.0, None)
        match = _PRINTED_NUMBER.fullmatch(bare)
        if match is None or not re.search(r"\d", match["number"]):
            return cls(None, 0.0, None)
        digits = match["number"].replace(",", "")
        decimals = len(digits.partition(".")[2])
        # a whole number is taken at its word: 1 beside 0.6 is no rounding of 0.6
        return cls(float(digits), 0.5 * 10.0**-decimals if decimals else 0.0, decimals)

    def agrees(self, ours: object, text: str) -> bool:
        """Whether a value of ours is this number at its precision, or else this text."""
        if self.number is None:
            return isinstance(ours, str) and ours.strip() == text.strip()
        value = as_number(ours)
        return value is not None and abs(value - self.number) <= self.half_unit + 1e-9 * max(1.0, abs(self.number))


def as_number(value: object) -> float | None:
    """A number as a float; None for anything else, NaN and truth values too."""
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        return None if np.isnan(float(value)) else float(value)
    return None


def is_blank(value: object) -> bool:
    """Whether a cell holds nothing."""
    return value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)) or value == ""


def raw(value: object) -> str:
    """A cell of ours as plain text, at the digits that CSV files keep."""
    if is_blank(value):
        return ""
    number = as_number(value)
    return str(value) if number is None else CSV_DIGITS % (number + 0.0)
