"""Names that have moved to `equipoise.options`."""

from __future__ import annotations

from typing import Any

from equipoise.options import (
    MEASURES,
    Direction,
    Measure,
    Option,
    checked,
    checked_value,
    choices_of,
    field_of,
    measure,
    options_of,
)

__all__ = [
    "MEASURES",
    "Direction",
    "Measure",
    "Option",
    "checked",
    "choices_of",
    "fit",
    "measure",
    "option_of",
    "options_of",
]
OpenChoice = Option
option_of = field_of


def fit(value: Any, hint: Any, name: str) -> Any:
    """The value as the annotated type wants it."""
    return checked_value(value, hint, name)
