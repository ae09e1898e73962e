"""Rounded numbers, numbers as text, and error messages of the operating system."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

CSV_DIGITS = "%.12g"
PARQUET_MARK = "written by equipoise"
"""Key of the metadata of Parquet files; a CSV file has no place for a mark."""


def rounded(number: float, scale: float = 1.0) -> float:
    """Round to 12 significant digits; what is below 1e-12 of the scale becomes 0.

    The last bits of a sum or a logarithm depend on the processor. So numbers are rounded where they
    are recorded, before anything is decided from them.
    """
    return 0.0 if abs(number) <= 1e-12 * scale else float(CSV_DIGITS % number)


def number(value: float, decimals: int) -> str:
    """Write a number with a minus sign; thousands are separated from 10,000."""
    text = f"{value:,.{decimals}f}" if abs(value) >= 10_000 else f"{value:.{decimals}f}"
    if not text.strip("-0."):
        text = text.lstrip("-")  # no negative zero
    return text.replace("-", "−")


def decimals_of(row: Mapping[str, Any]) -> int:
    """Return the decimals that show two digits of an interval, or 4 without an interval."""
    low, high, estimate = row["low"], row["high"], abs(row["estimate"])
    has_interval = low is not None and not math.isnan(low)
    width = high - low if has_interval else estimate % 1 and estimate / 100
    if width == 0 or math.isinf(width):
        return 0 if estimate % 1 == 0 else 3
    return min(max(1 - math.floor(math.log10(width)), 0), 8)


def interval(value: float, low: float, high: float, decimals: int) -> str:
    """Write an estimate and its interval, such as ``−0.01 [−0.02, 0.01]``."""
    return f"{number(value, decimals)} [{number(low, decimals)}, {number(high, decimals)}]"


def reason(error: OSError) -> str:
    """Return the message of the operating system, in lower case."""
    return (error.strerror or "an error of the operating system").lower()
